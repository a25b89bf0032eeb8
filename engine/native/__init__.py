"""The native substrate: libc for nogil kernels, atomics, CRC32C and the kernel cache."""
