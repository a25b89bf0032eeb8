"""Asking a file system for room ahead of a growing file: fallocate, without glibc's stand-in for it.

Python has posix_fallocate alone, which where the file system cannot do it writes a byte to every block instead: slower
than what it is meant to speed up.
"""

from __future__ import annotations

import numpy as np
from numba import types

from engine.native.files import errno
from engine.native.kernel import kernel

_fallocate = types.ExternalFunction("fallocate", types.int32(types.int32, types.int32, types.int64, types.int64))


@kernel(types.int64(types.int64, types.int64, types.int64))
def preallocate(descriptor, offset, length):  # type: ignore[no-untyped-def]
    """Give the file blocks for [offset, offset + length), which read as zeros, and that size; return 0 or -errno."""
    if _fallocate(np.int32(descriptor), np.int32(0), offset, length) == 0:
        return np.int64(0)
    return -np.int64(errno())
