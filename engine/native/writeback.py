"""Telling the disk to begin: sync_file_range, which Python does not have. It starts writing and does not wait.

Nothing is durable by it; it leaves the sync at the end of a long file little to do.
"""

from __future__ import annotations

import numpy as np
from numba import types

from engine.native.files import errno
from engine.native.kernel import kernel

_START = np.uint32(2)  # SYNC_FILE_RANGE_WRITE
_sync_file_range = types.ExternalFunction(
    "sync_file_range", types.int32(types.int32, types.int64, types.int64, types.uint32)
)


@kernel(types.int64(types.int64, types.int64, types.int64))
def start_writeback(descriptor, offset, length):  # type: ignore[no-untyped-def]
    """Start writing [offset, offset + length) of a file's dirty pages to its disk; return 0 or -errno."""
    if _sync_file_range(np.int32(descriptor), offset, length, _START) == 0:
        return np.int64(0)
    return -np.int64(errno())
