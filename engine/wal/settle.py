"""Settling: making durable what sync mode none left to the operating system.

A record that is acked as durable stands on all before it. So before a log goes on in another mode than none, before it
is sealed and when it is opened again, every segment is synced; on segments that were synced before, that costs little.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numba import types

from engine.errors import FileTrouble
from engine.native.kernel import kernel
from engine.native.locks import lock, unlock
from engine.storage.contents import sync_contents
from engine.storage.descriptors import close_descriptor, open_for_writing
from engine.storage.device import DEVICE, sync_in_any_mode
from engine.wal.contents import LogContents
from engine.wal.state import AT_SYNC, LOG
from engine.wal.stop import poison


@kernel(types.int64(LOG, DEVICE, types.int64, types.int64))
def settle_segment(log, device, segment, descriptor):  # type: ignore[no-untyped-def]
    """Sync one segment in any sync mode; return 0, or minus the errno that stopped the log."""
    error = -sync_in_any_mode(device, segment, descriptor)
    if error != 0:
        lock(log, "mutex")
        poison(log, error, AT_SYNC)
        unlock(log, "mutex")
    return -error


def settle(log: npt.NDArray[np.void], device: npt.NDArray[np.void], closed: Iterable[tuple[int, Path]]) -> int:
    """Sync the closed segments and the current one; return 0, or minus the errno that stopped the log.

    Nobody is inside commit. A segment that was recycled meanwhile is needed no more. Raises FileTrouble.
    """
    for number, path in closed:
        try:
            descriptor = open_for_writing(path)
        except FileTrouble as trouble:
            if trouble.errno == errno.ENOENT:
                continue
            raise
        try:
            code = int(settle_segment(log[0], device[0], number, descriptor))
        finally:
            close_descriptor(descriptor)
        if code:
            return code
    return int(settle_segment(log[0], device[0], int(log["segment"][0]), int(log["descriptor"][0])))


def settle_closed(contents: LogContents) -> None:
    """Sync the segments before the last one of a log that is being opened. Raises FileTrouble."""
    for segment in contents.segments[:-1]:
        sync_contents(segment.path)
