"""Reading a log's records, at rest or while a writer appends to it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

from engine.errors import FileTrouble
from engine.units import Txid
from engine.wal.errors import BadReference, LogDamaged
from engine.wal.walk import LogWalk

_LOOKS = 100  # at a folder whose files go away under a reader; each look sees later ones


def read_records(folder: Path, *, start_txid: int = 1, up_to: int | None = None) -> Iterator[tuple[Txid, bytes]]:
    """Yield (txid, payload) from `start_txid`, or the oldest that is left, on.

    up_to: a txid that the caller knows to be durable: the iterator ends behind it, and a writer may append and roll
    meanwhile. Without it the log is read to its end; a torn tail is left out. No checkpoint may pass `start_txid`
    while this runs: its segments would be recycled under the reader.
    Raises NotALog, LogDamaged, UnsupportedVersion, FileTrouble, BadReference for an `up_to` the log does not hold.
    """
    wanted = start_txid
    looks = 0
    while True:
        walk = LogWalk(folder, start_txid=wanted, up_to=up_to)
        before = wanted
        try:
            for piece in walk.pieces():
                for txid, payload in piece.records():
                    if up_to is not None and txid > up_to:
                        return
                    if txid >= wanted:
                        yield txid, payload
                        wanted = txid + 1
        except FileTrouble as trouble:  # of a segment that was listed, below the checkpoint, and is gone by now
            looks += 1
            if trouble.errno != errno.ENOENT or looks == _LOOKS:
                raise
            continue
        if up_to is None or wanted > up_to:
            return
        if wanted == before:  # not even a segment that was rolled to since the last look
            raise _missing(walk, start_txid, wanted)


def _missing(walk: LogWalk, start_txid: int, wanted: int) -> LogDamaged | BadReference:
    """Say why the log ends before a txid that should be durable."""
    torn = walk.contents.torn
    if torn is not None:
        return LogDamaged(
            segment=torn.segment, offset=torn.offset, found=torn.found, allowed=f"txid {wanted:,}, which was durable"
        )
    contents = walk.contents
    return BadReference(asked=wanted, first=min(start_txid, contents.first_txid), last=contents.last_txid)
