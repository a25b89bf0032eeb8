"""Sealing: the last thing a clean close writes. It says that everything before it was durable."""

from __future__ import annotations

import numpy as np
from numba import types

from engine.native.clock import monotonic_ns
from engine.native.kernel import kernel, u8_matrix
from engine.native.locks import lock, unlock
from engine.storage.device import DEVICE, DSYNC, NO_SYNC, sync_file, sync_in_any_mode, write_bytes
from engine.wal.meter import note_sync
from engine.wal.record import HEADER_SIZE, SEAL, payload_crc, put_record
from engine.wal.state import AT_SYNC, AT_WRITE, LOG, METERS
from engine.wal.stop import poison


@kernel(types.int64(LOG, DEVICE, u8_matrix, METERS, types.int64))
def seal(log, device, buffers, meters, row):  # type: ignore[no-untyped-def]
    """Write and sync a SEAL behind the last record; return 0 or minus an errno. No other kernel uses the log.

    It is synced in mode none too, since it says that all is durable; all before it is by now (settle.py).

    A segment without room for it goes unsealed: it is only full if its last record ends where the file does.
    """
    if log.segment_used + HEADER_SIZE > log.segment_size:
        return np.int64(0)
    nothing = buffers[0][:0]
    size, _ = put_record(buffers[0], 0, SEAL, log.appended, 0, nothing, payload_crc(nothing, log.seed))
    began = monotonic_ns()
    site = AT_WRITE
    error = -write_bytes(device, log.segment, log.descriptor, buffers[0].ctypes.data, size, log.segment_used)
    if error == 0:
        site = AT_SYNC
        if device.sync_mode == NO_SYNC:
            error = -sync_in_any_mode(device, log.segment, log.descriptor)
        else:
            error = -sync_file(device, log.segment, log.descriptor)
        if device.sync_mode < DSYNC:
            note_sync(log, meters[row], monotonic_ns() - began, error)
    if error == 0:
        log.segment_used += size
        return np.int64(0)
    lock(log, "mutex")
    poison(log, error, site)
    unlock(log, "mutex")
    return -error
