"""Writing a batch, and rolling to the next segment before it where the batch does not fit.

Only one thread at a time has the right to write: the leader, the AsyncWriter, or who holds log.flush.
"""

from __future__ import annotations

import errno

import numpy as np

from engine.native import files
from engine.native.atomics import add, load
from engine.native.clock import monotonic_ns
from engine.native.kernel import inner
from engine.native.locks import broadcast, lock, unlock, wait_until
from engine.storage.device import DSYNC, sync_file, write_bytes
from engine.wal.meter import note_group, note_sync, note_write
from engine.wal.segment import HEADER_BLOCK, put_segment_header
from engine.wal.state import AT_ROLL, AT_SYNC, AT_WRITE, PIPELINE

_PREPARE_PATIENCE_NS = 30_000_000_000
_ETIMEDOUT = errno.ETIMEDOUT


@inner
def write_batch(log, device, buffers, meter, side, length, last, chain):  # type: ignore[no-untyped-def]
    """Write one batch at the end of the segment; return (error, site). No lock of the log but flush is held.

    length: bytes of buffers[side]; 0 writes nothing. last: the batch's last txid; chain: the chain after it.
    In sync mode dsync the batch is durable on return and the time counts as a sync.
    """
    if length == 0:
        return np.int64(0), AT_WRITE
    records = last - log.written
    due = (log.roll_records > 0 and log.segment_records >= log.roll_records) or load(log, "roll_asked") != 0
    if log.segment_used + length > log.segment_size or (due and log.segment_used > HEADER_BLOCK):
        error, site = _roll(log, device, meter)
        if error != 0:
            return error, site
    began = monotonic_ns()
    error = -write_bytes(device, log.segment, log.descriptor, buffers[side].ctypes.data, length, log.segment_used)
    took = monotonic_ns() - began
    note_write(meter, took, length, error)
    if error != 0:
        return error, AT_WRITE
    if device.sync_mode == DSYNC:
        note_sync(log, meter, took, error)
        note_group(meter, records)
    log.segment_used += length
    log.segment_records += records
    log.written_chain = chain
    return np.int64(0), AT_WRITE


@inner
def _roll(log, device, meter):  # type: ignore[no-untyped-def]
    """Make the old segment durable, take the prepared one and write its header; return (error, site).

    Nothing is acked in the new segment while the old one holds un-synced records. The header becomes durable with the
    sync of the first batch behind it.
    """
    began = monotonic_ns()
    error = -sync_file(device, log.segment, log.descriptor)
    if device.sync_mode < DSYNC:
        note_sync(log, meter, monotonic_ns() - began, error)
    if error != 0:
        return error, AT_SYNC
    first_txid = log.written + 1
    lock(log, "mutex")
    gained = log.written - log.flushed
    log.flushed = max(log.flushed, log.written)
    if log.model == PIPELINE:
        broadcast(log, "flushed_news")  # the notifier moves durable and wakes the handlers
    else:
        log.durable = max(log.durable, log.flushed)
    old = log.descriptor
    error = _take_prepared(log, first_txid)
    unlock(log, "mutex")
    if device.sync_mode < DSYNC:
        note_group(meter, gained)
    if error != 0:
        return error, AT_ROLL
    files.close(old)
    put_segment_header(
        log.header,
        log.log_id,
        log.segment,
        log.segment_size,
        first_txid,
        log.previous_used,
        log.written_chain,
        log.created_ns,
    )
    error = -write_bytes(device, log.segment, log.descriptor, log.header.ctypes.data, HEADER_BLOCK, 0)
    log.segment_used = HEADER_BLOCK
    log.segment_records = 0
    note_write(meter, np.int64(0), HEADER_BLOCK, error)
    return error, AT_ROLL


@inner
def _take_prepared(log, first_txid):  # type: ignore[no-untyped-def]
    """Switch to the prepared segment, waiting for it if need be; return 0 or an errno. log.mutex is held."""
    deadline = monotonic_ns() + _PREPARE_PATIENCE_NS
    while log.next_descriptor < 0:
        if log.prepare_error != 0:
            return log.prepare_error
        if wait_until(log, "segment_offered", "mutex", deadline) == _ETIMEDOUT:
            return np.int64(_ETIMEDOUT)
    add(log, "roll_version", 1)  # odd: watchers, who take no lock, read again
    log.descriptor, log.next_descriptor = log.next_descriptor, np.int64(-1)
    log.segment, log.created_ns, log.segment_size = log.next_segment, log.next_created_ns, log.next_size
    for k in range(log.segment_name.size):
        log.segment_name[k] = log.next_name[k]
    log.segment_first, log.previous_used = first_txid, log.segment_used
    log.roll_asked = 0
    log.rolls += 1
    add(log, "roll_version", 1)
    broadcast(log, "segment_taken")
    return np.int64(0)
