"""Model `pipeline:N`: the write-thread model of HBASE-8755. Threads carry the report's names.

    handlers        append to the pending buffer, signal AsyncWriter, wait until their txid is durable
    AsyncWriter     takes the buffer, writes it, hands the written txid to an AsyncSyncer
    AsyncSyncer     syncs (as designed one, as landed five), hands the synced txid to AsyncNotifier
    AsyncNotifier   moves the durable watermark and wakes the handlers it covers

The report's text calls the third AsyncFlusher. Each mailbox keeps the highest txid only, so batches form by themselves
and no queue grows. A syncer that finds its txid covered by another skips its sync (HBASE-10344). Mended here against
what landed: the first error is final and fails only what was not synced; a syncer never meets a segment that is being
rolled away (the roll syncs the old one first; HBASE-10329); the notifier wakes the handlers of the batches that became
durable, not all.
"""

from __future__ import annotations

import numpy as np

from engine.native.atomics import load, store
from engine.native.clock import monotonic_ns
from engine.native.kernel import inner
from engine.native.locks import lock, signal, signal_at, unlock, wait, wait_at
from engine.native.parking import EVERYONE, park, unpark
from engine.storage.device import DSYNC, sync_file
from engine.wal.append import take_batch, wait_slot
from engine.wal.handler import own_description
from engine.wal.meter import note_group, note_sync
from engine.wal.roll import write_batch
from engine.wal.stamps import stamp_sync, stamp_write
from engine.wal.state import AT_SYNC, S_BATCH, S_LAST_TXID, STAMP_SLOTS
from engine.wal.stop import poison


@inner
def wait_pipeline(log, txid, batch):  # type: ignore[no-untyped-def]
    """Return once `txid` of `batch` is durable or the log is poisoned. log.mutex is held on entry, not on return."""
    slot = wait_slot(batch)
    signal(log, "work")
    while log.durable < txid and log.poison == 0:
        seen = log.done[slot]
        unlock(log, "mutex")
        park(log, "done", slot, seen)
        if load(log, "durable") >= txid:
            return
        lock(log, "mutex")
    unlock(log, "mutex")


@inner
def async_writer(log, device, buffers, meter):  # type: ignore[no-untyped-def]
    """Write batches until the threads are stopped and nothing is left to write."""
    lock(log, "mutex")
    while log.poison == 0 and (log.used > 0 or log.stop_threads == 0):
        # Batches whose handlers were not told yet must keep their stamps, or the notifier could not find them.
        if log.used == 0 or log.filling - log.notified_batch >= STAMP_SLOTS:
            wait(log, "work", "mutex")
            continue
        batch, side, length, last, chain = take_batch(log)
        unlock(log, "mutex")
        began = monotonic_ns()
        error, site = write_batch(log, device, buffers, meter, side, length, last, chain)
        ended = monotonic_ns()
        lock(log, "mutex")
        if error != 0:
            poison(log, error, site)
            break
        log.written, log.written_batch = last, batch
        stamp_write(log, batch, last, began, ended)
        syncer = _choose_syncer(log, last)
        log.mailbox[syncer] = last
        signal_at(log, "written_news", syncer)
    unlock(log, "mutex")


@inner
def _choose_syncer(log, last):  # type: ignore[no-untyped-def]
    """Return the first idle syncer, else one by txid. log.mutex is held."""
    for k in range(log.syncers):
        if log.syncer_busy[k] == 0:
            return np.int64(k)
    return last % log.syncers  # a txid is positive, so the remainder is (HBASE-11200 was a negative one)


@inner
def async_syncer(log, device, meter, syncer):  # type: ignore[no-untyped-def]
    """Sync what is handed to mailbox `syncer` until the threads are stopped and all that was written is synced."""
    lock(log, "mutex")
    done = np.int64(0)
    while log.poison == 0:
        if log.mailbox[syncer] <= done:
            if log.stop_threads != 0 and log.used == 0 and log.written == log.appended:
                break
            wait_at(log, "written_news", syncer, "mutex")
            continue
        done = log.mailbox[syncer]
        if log.flushed >= done:
            continue  # another syncer covered it
        # A sync covers all that was written before it began, whoever was handed it.
        last, batch, segment = log.written, log.written_batch, log.segment
        log.syncer_busy[syncer] = 1
        unlock(log, "mutex")
        _sync(log, device, meter, last, batch, segment)
        lock(log, "mutex")
        log.syncer_busy[syncer] = 0
    unlock(log, "mutex")


@inner
def _sync(log, device, meter, last, batch, segment):  # type: ignore[no-untyped-def]
    """Sync `segment` through the syncer's own description; tell the notifier. No lock is held."""
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
        gained = max(gained, last - log.flushed)
        stamp_sync(log, batch, log.flushed, began, ended)
        log.flushed = max(log.flushed, last)
        signal(log, "flushed_news")
    unlock(log, "mutex")
    if device.sync_mode < DSYNC:
        note_sync(log, meter, ended - began, error)
        note_group(meter, gained)


@inner
def async_notifier(log):  # type: ignore[no-untyped-def]
    """Publish what was synced and wake its handlers, until the threads are stopped and all is published."""
    lock(log, "mutex")
    while log.poison == 0:
        if log.flushed == log.durable:
            if log.stop_threads != 0 and log.durable == log.appended:
                break
            wait(log, "flushed_news", "mutex")
            continue
        store(log, "durable", log.flushed)
        _wake_covered(log)
        signal(log, "work")
    unlock(log, "mutex")


@inner
def _wake_covered(log):  # type: ignore[no-untyped-def]
    """Wake the handlers of every batch that is durable and was not told yet. log.mutex is held."""
    for _ in range(STAMP_SLOTS):
        batch = log.notified_batch + 1
        row = log.stamps[batch % STAMP_SLOTS]
        if batch >= log.filling or row[S_BATCH] != batch or row[S_LAST_TXID] > log.durable:
            return
        log.notified_batch = batch
        log.done[wait_slot(batch)] += 1
        unpark(log, "done", wait_slot(batch), EVERYONE)
