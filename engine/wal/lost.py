"""What lies behind damage: which txids are out of reach, and how many of their records would still decode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.storage.contents import read_file
from engine.units import Txid
from engine.wal.errors import LogDamaged
from engine.wal.listing import list_log, read_block
from engine.wal.record import log_seed
from engine.wal.scan import later_records
from engine.wal.segment import HEADER_BLOCK, MAX_SEGMENT_SIZE, segment_number


@dataclass(frozen=True, slots=True)
class Lost:
    """Records that cannot be kept in order: from the damaged one on."""

    first_txid: Txid
    last_txid: Txid | None  # the newest that still decodes; None: nothing behind the damage does
    readable: int  # how many behind the damage still decode

    def to_text(self) -> str:
        """Return what is lost by txid, in a sentence."""
        if self.last_txid is None:
            return f"out of reach: txid {self.first_txid:,} and any behind it; none of their records decodes"
        return (
            f"out of reach: txid {self.first_txid:,} to {self.last_txid:,} at least; "
            f"{self.readable:,} of those records still decode"
        )


def what_follows(folder: Path, damage: LogDamaged, *, after: Txid) -> Lost:
    """Look through everything behind the damage; `after` is the last txid before it. Raises FileTrouble."""
    listing = list_log(folder)
    blocks = [read_block(number, path) for number, path in listing.segments]
    ids = {block.header.log_id for block in blocks if block.header is not None}
    where = segment_number(damage.segment.name) or 0
    found: set[int] = set()
    for block in blocks:
        if block.number < where or not ids:
            continue
        view = read_file(block.path, limit=MAX_SEGMENT_SIZE)
        start = max(damage.offset & -8, HEADER_BLOCK) if block.number == where else HEADER_BLOCK
        expected = after + 1
        if block.number > where and block.header is not None:
            expected = max(expected, block.header.first_txid)
        if start >= view.size:
            continue
        for log_id in ids:
            records = later_records(view, start=start, end=view.size, expected=expected, seed=log_seed(log_id))
            found.update(txid for _, txid in records)
    return Lost(Txid(after + 1), Txid(max(found)) if found else None, len(found))
