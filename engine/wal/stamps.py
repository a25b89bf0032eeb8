"""Stamps: when a batch was written and synced, kept for the handlers that have yet to wake.

A ring by batch number. A handler that is so late that its slot was taken again finds another number there, and its
waiting counts as wake.
"""

from __future__ import annotations

from engine.native.kernel import inner
from engine.wal.state import (
    S_BATCH,
    S_LAST_TXID,
    S_SYNC_BEGAN,
    S_SYNC_ENDED,
    S_WRITE_BEGAN,
    S_WRITE_ENDED,
    STAMP_COLUMNS,
    STAMP_SLOTS,
)


@inner
def stamp_write(log, batch, last, began, ended):  # type: ignore[no-untyped-def]
    """Note when a batch was written and its last txid. log.mutex is held."""
    row = log.stamps[batch % STAMP_SLOTS]
    row[S_BATCH], row[S_LAST_TXID] = batch, last
    row[S_WRITE_BEGAN], row[S_WRITE_ENDED] = began, ended
    row[S_SYNC_BEGAN], row[S_SYNC_ENDED] = 0, 0


@inner
def stamp_sync(log, newest, durable_before, began, ended):  # type: ignore[no-untyped-def]
    """Note when the sync ran that covered batch `newest` and all before it that were not durable. log.mutex is held."""
    for batch in range(newest, max(newest - STAMP_SLOTS, 0), -1):
        row = log.stamps[batch % STAMP_SLOTS]
        if row[S_BATCH] != batch or row[S_LAST_TXID] <= durable_before:
            return
        row[S_SYNC_BEGAN], row[S_SYNC_ENDED] = began, ended


@inner
def copy_stamps(log, batch, stamps):  # type: ignore[no-untyped-def]
    """Copy a batch's stamps to int64[STAMP_COLUMNS], zeros if they are gone. No lock is held.

    They were whole before the batch became durable. The slot may be taken again while this reads: a mixture shows
    another number before or after, and `note_commit` keeps even a missed one within the commit's own time.
    """
    row = log.stamps[batch % STAMP_SLOTS]
    here = row[S_BATCH] == batch
    for k in range(STAMP_COLUMNS):
        stamps[k] = row[k]
    if not here or row[S_BATCH] != batch:
        for k in range(STAMP_COLUMNS):
            stamps[k] = 0
