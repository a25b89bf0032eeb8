"""Stopping at the first I/O error: the log is poisoned, and everyone who waits is told.

A failed sync may have dropped the dirty pages and Linux reports it once per open file description: a retry could
succeed and lie. So nothing is retried, nothing past the last good sync is ever acked, and only opening the folder
again, which runs recovery, makes a log of it again.
"""

from __future__ import annotations

from engine.native.atomics import store
from engine.native.kernel import inner
from engine.native.locks import broadcast, broadcast_at
from engine.native.parking import EVERYONE, unpark
from engine.wal.state import MAX_SYNCERS, WAIT_SLOTS


@inner
def poison(log, error, site):  # type: ignore[no-untyped-def]
    """Stop the log with an errno. log.mutex is held. The first error stays; what was synced before stays acked."""
    if log.poison == 0:
        store(log, "durable", max(log.durable, log.flushed))
        log.poison_site = site
        store(log, "poison", error)
    wake_everyone(log)


@inner
def wake_everyone(log):  # type: ignore[no-untyped-def]
    """Wake every waiter of the log, whatever it waits for. log.mutex is held."""
    for slot in range(WAIT_SLOTS):
        log.done[slot] += 1
        unpark(log, "done", slot, EVERYONE)
    for syncer in range(MAX_SYNCERS):
        broadcast_at(log, "written_news", syncer)
    broadcast(log, "space")
    broadcast(log, "work")
    broadcast(log, "flushed_news")
    broadcast(log, "segment_offered")
    broadcast(log, "segment_taken")
