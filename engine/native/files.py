"""Files as kernels see them: pwrite, pwritev2 with RWF_DSYNC, fdatasync, fsync, open, close and errno.

Each returns what libc returns, or minus the errno; the errno is read on the same thread right after the
call, and no Python code runs in between. Addresses are plain integers: the caller has checked bounds.
"""

from __future__ import annotations

import os

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.native.kernel import inner

_fd, _address, _size = types.int32, types.uintp, types.uintp
_pwrite = types.ExternalFunction("pwrite64", types.int64(_fd, _address, _size, types.int64))
_pread = types.ExternalFunction("pread64", types.int64(_fd, _address, _size, types.int64))
_fdatasync = types.ExternalFunction("fdatasync", types.int32(_fd))
_fsync = types.ExternalFunction("fsync", types.int32(_fd))
_openat = types.ExternalFunction("openat64", types.int32(_fd, _address, types.int32, types.int32))
_close = types.ExternalFunction("close", types.int32(_fd))
_errno_location = types.ExternalFunction("__errno_location", _address())

RWF_DSYNC = np.int32(os.RWF_DSYNC)
OPEN_WRITE = np.int32(os.O_WRONLY | os.O_CLOEXEC)


@inner
def pwrite(descriptor, address, length, offset):  # type: ignore[no-untyped-def]
    """Write at most `length` bytes from `address` at `offset`; return bytes written (may be fewer) or -errno."""
    written = _pwrite(np.int32(descriptor), address, length, offset)
    return written if written >= 0 else -np.int64(errno())


@inner
def pread(descriptor, address, length, offset):  # type: ignore[no-untyped-def]
    """Read at most `length` bytes to `address` from `offset`; return bytes read, 0 at the end, or -errno."""
    count = _pread(np.int32(descriptor), address, length, offset)
    return count if count >= 0 else -np.int64(errno())


@inner
def pwrite_dsync(descriptor, address, length, offset):  # type: ignore[no-untyped-def]
    """Write as pwrite does and make those bytes durable before returning (RWF_DSYNC, Linux 4.7)."""
    written = _pwritev2_one(np.int32(descriptor), address, length, offset, RWF_DSYNC)
    return written if written >= 0 else -np.int64(errno())


@inner
def fdatasync(descriptor):  # type: ignore[no-untyped-def]
    """Make the file's data durable; return 0 or -errno."""
    return np.int64(0) if _fdatasync(np.int32(descriptor)) == 0 else -np.int64(errno())


@inner
def fsync(descriptor):  # type: ignore[no-untyped-def]
    """Make the file's data and inode durable; return 0 or -errno."""
    return np.int64(0) if _fsync(np.int32(descriptor)) == 0 else -np.int64(errno())


@inner
def open_for_writing(folder_descriptor, name_address):  # type: ignore[no-untyped-def]
    """Open an existing file below a folder by its NUL-ended name; return a new descriptor or -errno."""
    descriptor = np.int64(_openat(np.int32(folder_descriptor), name_address, OPEN_WRITE, np.int32(0)))
    return descriptor if descriptor >= 0 else -np.int64(errno())


@inner
def close(descriptor):  # type: ignore[no-untyped-def]
    """Close a descriptor; return 0 or -errno."""
    return np.int64(0) if _close(np.int32(descriptor)) == 0 else -np.int64(errno())


@inner
def errno():  # type: ignore[no-untyped-def]
    """Return this thread's errno."""
    return _load_int32(_errno_location())


@intrinsic
def _load_int32(typing_context, address):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(32).as_pointer()))

    return types.int32(types.uintp), build


@intrinsic
def _pwritev2_one(typing_context, descriptor, address, length, offset, flags):  # type: ignore[no-untyped-def]
    """Call pwritev2 with one buffer; the iovec lives on the stack."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        i32, i64 = ir.IntType(32), ir.IntType(64)
        pair = ir.ArrayType(i64, 2)  # struct iovec: base, length
        vector = cgutils.alloca_once(builder, pair)
        zero, one = ir.Constant(i32, 0), ir.Constant(i32, 1)
        builder.store(arguments[1], builder.gep(vector, [zero, zero]))
        builder.store(arguments[2], builder.gep(vector, [zero, one]))
        kind = ir.FunctionType(i64, [i32, pair.as_pointer(), i32, i64, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "pwritev64v2")
        return builder.call(function, [arguments[0], vector, one, arguments[3], arguments[4]])

    return types.int64(types.int32, types.uintp, types.uintp, types.int64, types.int32), build
