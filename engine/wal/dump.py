"""A log as text: a line for each segment, record and ending, in file order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.units import format_size
from engine.wal.contents import LogContents
from engine.wal.listing import refuse_unused
from engine.wal.preview import preview
from engine.wal.record import HEADER_SIZE, RecordKind
from engine.wal.segment import SegmentHeader
from engine.wal.walk import LogWalk, Piece
from engine.wal.wording import counted

COLUMNS = "     offset        txid  kind      bytes    undurable  crc       payload"


def dump_log(folder: Path, *, start_txid: int = 1, limit: int | None = None) -> Iterator[str]:
    """Yield the lines of a dump: segments and remarks begin with `#`, each other line is a record.

    `undurable` is how many txids, its own among them, were not yet durable when the record was appended.
    limit: stop after that many records, and do not look how the log ends. Raises NotALog, UnsupportedVersion,
    FileTrouble, and LogDamaged after the lines before the damage.
    """
    refuse_unused(folder)
    walk = LogWalk(folder, start_txid=start_txid)
    shown = 0
    segment: Path | None = None
    for piece in walk.pieces():
        if piece.path != segment:
            segment = piece.path
            yield _segment_line(piece.path, piece.header)
            yield COLUMNS
        for line in _record_lines(piece, start_txid):
            if limit is not None and shown >= limit:
                yield f"# {counted(limit, 'record')} shown; the log goes on"
                return
            yield line
            shown += 1
    yield from _ending(walk.contents)


def _segment_line(path: Path, header: SegmentHeader) -> str:
    made = np.datetime64(header.created_wall_ns % (1 << 63), "ns").astype("datetime64[s]")
    return (
        f"# {path.name}: log {header.log_id.hex()}, {format_size(header.segment_size)}, "
        f"from txid {header.first_txid:,}, made {made} UTC; "
        f"the segment before: {header.previous_used:,} bytes, chain {header.previous_chain:08x}"
    )


def _record_lines(piece: Piece, start_txid: int) -> Iterator[str]:
    for offset, txid, length, undurable, crc, kind in piece.rows.tolist():
        if txid < start_txid:
            continue
        payload = piece.view[offset + HEADER_SIZE : offset + HEADER_SIZE + length].tobytes()
        name = RecordKind(kind).name.lower()
        shown = preview(payload) if kind == RecordKind.DATA else "all before was durable"
        yield f"{offset:11,} {txid:11,}  {name:4} {length:10,} {undurable:12,}  {crc:08x}  {shown}"


def _ending(contents: LogContents) -> Iterator[str]:
    for path in contents.prepared:
        yield f"# {path.name}: prepared, not used yet"
    torn = contents.torn
    if torn is not None:
        yield (
            f"# {torn.segment.name}: torn tail at byte {torn.offset:,}, {torn.length:,} bytes: {torn.found}; "
            f"txid {torn.txid:,} was never durable"
        )
    if contents.tail is None:
        yield "# end: never written to"
    elif contents.records == 0:
        yield f"# end: no record; txid {contents.first_txid:,} comes next"
    else:
        held = f"txid {contents.first_txid:,} to {contents.last_txid:,}"
        how = ", closed cleanly" if contents.is_sealed and torn is None else ""
        yield f"# end: {counted(contents.records, 'record')}, {held}{how}"
