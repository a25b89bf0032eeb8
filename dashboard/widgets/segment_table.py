"""The segments of the log, the active one first: what is used, what waits prepared, what is closed.

segments ───────────────────────── 4 files, 256 MiB
number   state      first txid         used of size
00000007 active      1,203,441  ━━╸──   38 of 64 MiB
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, absent_lines, gauge, left, right, title
from engine.snapshot import Absent, SegmentRow
from engine.units import format_size

_NUMBER, _STATE, _TXID, _USED, _LEAST_GAUGE = 9, 9, 12, 19, 6
_ORDER = {"active": 0, "prepared": 1, "closed": 2}
_ROLES = {"active": "good", "prepared": "dim", "closed": "dim"}


def segment_lines(
    segments: Sequence[SegmentRow] | Absent, width: int, height: int, glyphs: Glyphs, *, note: str = ""
) -> list[Line]:
    """Lay the newest segments out in `width` by `height` cells."""
    if isinstance(segments, Absent):
        return [title("segments", width, glyphs), *absent_lines(segments, width, glyphs)]
    files = f"{len(segments)} {'file' if len(segments) == 1 else 'files'}"
    size = format_size(sum(segment.size_bytes for segment in segments))
    lines: list[Line] = [title("segments", width, glyphs, note=note or f"{files}, {size}")]
    columns = _Columns(width)
    lines.append(((columns.head(), "dim"),))
    newest_first = sorted(segments, key=lambda segment: (_ORDER[segment.state], -segment.number))
    lines += [_row(segment, columns, glyphs) for segment in newest_first]
    return lines[:height]


class _Columns:
    """Which columns fit: the gauge goes first, then the first txid, then the state."""

    def __init__(self, width: int) -> None:
        self.with_state = width >= _NUMBER + _STATE + _USED
        self.with_txid = width >= _NUMBER + _STATE + _TXID + _USED
        room = width - _NUMBER - _USED - _STATE * self.with_state - _TXID * self.with_txid - 2
        self.gauge = room if room >= _LEAST_GAUGE else 0

    def head(self) -> str:
        txid = right("first txid", _TXID) if self.with_txid else ""
        gap = " " * (self.gauge + 2) if self.gauge else ""
        state = left("state", _STATE) if self.with_state else ""
        return left("number", _NUMBER) + state + txid + gap + right("used of size", _USED)


def _row(segment: SegmentRow, columns: _Columns, glyphs: Glyphs) -> Line:
    role = _ROLES[segment.state]
    row: list[Span] = [(left(f"{segment.number:08d}", _NUMBER), role)]
    if columns.with_state:
        row = [(left(f"{segment.number:08d}", _NUMBER), "text"), (left(segment.state, _STATE), role)]
    if columns.with_txid:
        row.append((right(f"{segment.first_txid:,}" if segment.first_txid else glyphs.minus, _TXID), "text"))
    if columns.gauge:
        level = segment.used_bytes / segment.size_bytes if segment.size_bytes else 0.0
        row += [("  ", "text"), *gauge(level, columns.gauge, role, glyphs)]
    size = f" of {format_size(segment.size_bytes)}"
    row += [(right(format_size(segment.used_bytes), _USED - len(size)), "bright"), (size, "dim")]
    return tuple(row)
