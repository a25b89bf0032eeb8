"""Models `handler` and `handler-recheck`: the log before HBASE-8755, where each handler does everything itself.

A handler appends under the update lock (log.mutex), takes all that is pending and writes it under the flush lock,
then syncs, outside both, so syncs overlap and each covers what its caller wrote and all before. It skips that if
its txid is already synced when it looks, which it does before it waits for anything: by the time a busy device comes
to it, another sync has often covered it, and it syncs all the same. `handler-recheck` is the fair baseline: one lock
around the sync, given in the order asked for, and the watermark looked at again once the lock is won.

Each handler syncs through an open file description of its own, since Linux reports a write-back error once per
description: with one for all, a second handler's sync could succeed past the first one's failure.
"""

from __future__ import annotations

import errno

import numpy as np

from engine.native import files
from engine.native.atomics import load, store
from engine.native.clock import monotonic_ns
from engine.native.kernel import inner
from engine.native.locks import lock, unlock
from engine.native.turns import pass_turn, take_turn
from engine.storage.device import DSYNC, sync_file
from engine.wal.append import take_batch
from engine.wal.meter import note_group, note_sync
from engine.wal.roll import write_batch
from engine.wal.stamps import stamp_sync, stamp_write
from engine.wal.state import AT_SYNC, HANDLER_RECHECK
from engine.wal.stop import poison

_ENOENT = errno.ENOENT


@inner
def commit_alone(log, device, buffers, meter, txid):  # type: ignore[no-untyped-def]
    """Return once `txid` is durable or the log is poisoned. log.mutex is held on entry and on return."""
    if log.durable >= txid or log.poison != 0:
        return
    unlock(log, "mutex")
    lock(log, "flush")
    lock(log, "mutex")
    batch, side, length, last, chain = take_batch(log)
    stopped = log.poison != 0
    unlock(log, "mutex")
    if not stopped:
        began = monotonic_ns()
        error, site = write_batch(log, device, buffers, meter, side, length, last, chain)
        ended = monotonic_ns()
        lock(log, "mutex")
        if error != 0:
            poison(log, error, site)
        else:
            log.written, log.written_batch = max(log.written, last), batch
            stamp_write(log, batch, last, began, ended)
        unlock(log, "mutex")
        stopped = error != 0
    segment = log.segment
    unlock(log, "flush")
    if not stopped:
        _sync_for_all(log, device, meter, txid, batch, last, segment)
    lock(log, "mutex")


@inner
def _sync_for_all(log, device, meter, txid, batch, last, segment):  # type: ignore[no-untyped-def]
    """Sync what is written up to `last` in `segment`, unless that was done or the log stopped. No lock is held."""
    one_at_a_time = log.model == HANDLER_RECHECK
    if one_at_a_time:
        take_turn(log, "one_sync", "one_sync_turns", "one_sync_next", "one_sync_served")
        # A sync that began after our write, and ended while we waited, covered us; one that begins now covers all
        # that is written now.
        lock(log, "mutex")
        batch, last, segment = log.written_batch, log.written, log.segment
        unlock(log, "mutex")
    if load(log, "durable") < txid and load(log, "poison") == 0:
        _sync(log, device, meter, batch, last, segment)
    if one_at_a_time:
        pass_turn(log, "one_sync", "one_sync_turns", "one_sync_served")


@inner
def _sync(log, device, meter, batch, last, segment):  # type: ignore[no-untyped-def]
    """Sync `segment` through the row's own description; move the watermark to `last`. No lock but one_sync is held."""
    error = own_description(log, device, meter, segment)
    began = monotonic_ns()
    if error == 0:
        error = -sync_file(device, segment, meter.descriptor)
    ended = monotonic_ns()
    gained = np.int64(0)
    lock(log, "mutex")
    if error != 0:
        poison(log, error, AT_SYNC)
    elif log.poison == 0:
        gained = max(gained, last - log.durable)
        stamp_sync(log, batch, log.durable, began, ended)
        log.flushed = max(log.durable, last)
        store(log, "durable", log.flushed)
    unlock(log, "mutex")
    if device.sync_mode < DSYNC:
        note_sync(log, meter, ended - began, error)
        note_group(meter, gained)


@inner
def own_description(log, device, meter, segment):  # type: ignore[no-untyped-def]
    """Make the row's open file description that of `segment`; return 0 or an errno. No lock is held.

    Where the sync mode calls for no sync, none is needed.

    A segment that was rolled away meanwhile was synced by the roll, so the one that is current now serves as well. It
    may even be gone before it is opened: checkpointed, and recycled under another name.
    """
    if device.sync_mode >= DSYNC or (meter.descriptor >= 0 and meter.descriptor_segment == segment):
        return np.int64(0)
    if meter.descriptor >= 0:
        files.close(meter.descriptor)
        meter.descriptor = np.int64(-1)
    current, descriptor = np.int64(-1), np.int64(-_ENOENT)
    while descriptor == -_ENOENT and load(log, "segment") != current:
        lock(log, "mutex")
        current = log.segment
        for k in range(log.segment_name.size):
            meter.name[k] = log.segment_name[k]
        unlock(log, "mutex")
        descriptor = files.open_for_writing(log.folder, meter.name.ctypes.data)
    if descriptor < 0:
        return -descriptor
    meter.descriptor, meter.descriptor_segment = descriptor, current
    return np.int64(0)
