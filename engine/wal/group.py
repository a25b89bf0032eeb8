"""Model `group`, ours: leader/follower group commit with a window. The default.

The first handler that finds nobody leading leads: it takes all that is appended, writes and syncs it once, and wakes
those whose records that made durable, and one of the next group to lead it. There is no thread between a handler
and its disk, so one handler alone costs a write and a sync and nothing else.

Without the window groups settle at half the handlers: while one half syncs the other half queues, and they take
turns. So a leader waits until as many records are there as took part lately (its group and those that queued
during its sync), at most half the recent sync time and at most 1 ms; alone, it does not wait at all.

    handler A            handler B            handler C
    append 7, lead
    write 7, sync        append 8, wait
      |                                       append 9, wait
    durable 7, wake B -> lead: window of 3 (7's handler comes back with 10)
    append 10, wait      write 8 9 10, sync
"""

from __future__ import annotations

from engine.native.atomics import load
from engine.native.clock import monotonic_ns
from engine.native.kernel import inner
from engine.native.locks import broadcast, broadcast_at, lock, sched_yield, signal_at, unlock, wait_at
from engine.storage.device import DSYNC, sync_file
from engine.wal.append import take_batch, wait_slot
from engine.wal.meter import note_group, note_sync
from engine.wal.roll import write_batch
from engine.wal.stamps import stamp_sync, stamp_write
from engine.wal.state import AT_SYNC
from engine.wal.stop import poison

_WINDOW_LIMIT_NS = 1_000_000


@inner
def wait_group(log, device, buffers, meter, txid, batch):  # type: ignore[no-untyped-def]
    """Return once `txid` of `batch` is durable or the log is poisoned. log.mutex is held on entry and on return."""
    while log.durable < txid and log.poison == 0:
        if log.leading != 0:
            wait_at(log, "done", wait_slot(batch), "mutex")
        else:
            lead(log, device, buffers, meter)


@inner
def lead(log, device, buffers, meter):  # type: ignore[no-untyped-def]
    """Write and sync all that is appended, for the whole group. log.mutex is held on entry and on return."""
    log.leading = 1
    _gather(log)
    batch, side, length, last, chain = take_batch(log)
    before = log.durable
    unlock(log, "mutex")

    write_began = monotonic_ns()
    error, site = write_batch(log, device, buffers, meter, side, length, last, chain)
    write_ended = monotonic_ns()
    sync_ended = write_ended
    if error == 0 and device.sync_mode < DSYNC:
        error, site = -sync_file(device, log.segment, log.descriptor), AT_SYNC
        sync_ended = monotonic_ns()
        note_sync(log, meter, sync_ended - write_ended, error)
        if error == 0:
            note_group(meter, last - before)

    lock(log, "mutex")
    if error != 0:
        poison(log, error, site)
    else:
        stamp_write(log, batch, last, write_began, write_ended)
        stamp_sync(log, batch, before, write_ended, sync_ended)
        log.written = log.flushed = log.durable = last
    log.recent_sync_ns = sync_ended - write_began
    log.expected = log.appended - before
    log.leading = 0
    broadcast_at(log, "done", wait_slot(batch))
    signal_at(log, "done", wait_slot(batch + 1))  # one of the next group leads it
    if log.space_waiters > 0:
        broadcast(log, "space")  # a next group that nobody waits for is led by one who needs its room


@inner
def _gather(log):  # type: ignore[no-untyped-def]
    """The window: wait for as many records as took part lately. log.mutex is held on entry and on return.

    Yields rather than sleeps: on two cores the handlers it waits for need this one, and a sleep and its wake cost
    more than a fast sync.
    """
    if log.expected <= 1:
        return
    deadline = monotonic_ns() + min(log.recent_sync_ns // 2, _WINDOW_LIMIT_NS)
    while load(log, "appended") - log.durable < log.expected and log.poison == 0 and log.space_waiters == 0:
        unlock(log, "mutex")
        sched_yield()
        expired = monotonic_ns() >= deadline
        lock(log, "mutex")
        if expired:
            return
