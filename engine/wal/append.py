"""Appending: what every model does first and in the same way. A record gets its txid and its place in one step."""

from __future__ import annotations

import numpy as np

from engine.native.crc32c import crc_update_u64
from engine.native.kernel import inner
from engine.native.locks import broadcast, wait
from engine.storage.device import NO_SYNC
from engine.wal.record import DATA, put_record, record_bytes
from engine.wal.state import CLOSED, WAIT_SLOTS


@inner
def has_space(log, payload_bytes):  # type: ignore[no-untyped-def]
    """Return whether the filling buffer takes a record of that payload. log.mutex is held."""
    return log.used + record_bytes(payload_bytes) <= log.buffer_bytes


@inner
def wait_for_space(log):  # type: ignore[no-untyped-def]
    """Wait until the buffers were swapped or the log stopped. log.mutex is held on entry and on return."""
    log.space_waiters += 1
    wait(log, "space", "mutex")
    log.space_waiters -= 1


@inner
def refusal(log):  # type: ignore[no-untyped-def]
    """Return why no record may be appended now, or 0. log.mutex is held."""
    if log.poison != 0:
        return -log.poison
    return np.int64(CLOSED) if log.closed != 0 else np.int64(0)


@inner
def append(log, device, buffers, payload, payload_state):  # type: ignore[no-untyped-def]
    """Copy one record into the filling buffer; return its txid. log.mutex is held and `has_space` was true.

    buffers: uint8[2, buffer_bytes]. payload_state: the checksum's state after the payload, computed before the lock.
    """
    txid = log.appended + 1
    # What nobody synced may not vouch for itself: recovery would take its loss for damage.
    durable = log.durable if device.sync_mode != NO_SYNC else np.int64(0)
    size, crc = put_record(buffers[log.side], log.used, DATA, txid, txid - durable, payload, payload_state)
    log.used += size
    log.chain = np.int64(crc_update_u64(np.uint32(log.chain), np.uint64(crc)))
    log.appended = txid
    return txid


@inner
def take_batch(log):  # type: ignore[no-untyped-def]
    """Take what is appended for writing; return (batch, side, length, last txid, chain). log.mutex is held.

    Bytes and watermark are taken together: with the watermark read later, a record appended in between would be
    acked by a sync that did not hold it.
    """
    batch, side, length, last, chain = log.filling, log.side, log.used, log.appended, log.chain
    log.filling, log.side, log.used = batch + 1, 1 - side, 0
    if log.space_waiters > 0:
        broadcast(log, "space")
    return batch, side, length, last, chain


@inner
def wait_slot(batch):  # type: ignore[no-untyped-def]
    """Return the condition that handlers of a batch wait on."""
    return batch % WAIT_SLOTS
