"""The segments of the log, the active one first: what is used, what waits prepared, what is closed.

segments ───────────────────── 4 files, 256 MiB
segment    state     first txid          used
00000007   active     1,203,441   ██▌     38 MiB of 64 MiB
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.glyphs import Glyphs, bar
from dashboard.widgets.lines import Line, Span, absent_lines, left, right, title
from engine.snapshot import Absent, SegmentRow
from engine.units import format_size

_ORDER = {"active": 0, "prepared": 1, "closed": 2}
_ROLES = {"active": "good", "prepared": "dim", "closed": "text"}


def segment_lines(
    segments: Sequence[SegmentRow] | Absent, width: int, height: int, glyphs: Glyphs, *, note: str = ""
) -> list[Line]:
    """Lay the newest segments out in `width` by `height` cells."""
    if isinstance(segments, Absent):
        return [title("segments", width, glyphs), *absent_lines(segments, width, glyphs)]
    files = f"{len(segments)} {'file' if len(segments) == 1 else 'files'}"
    size = format_size(sum(segment.size_bytes for segment in segments))
    lines: list[Line] = [title("segments", width, glyphs, note=note or f"{files}, {size}")]
    room = width - 9 - 10 - 14 - 20
    with_bar = room >= 6
    head = left("number", 9) + left("state", 10) + right("first txid", 13) + (" " * room if with_bar else "")
    lines.append(((head + right("used", 10 if with_bar else 11) + " of size", "dim"),))
    newest_first = sorted(segments, key=lambda segment: (_ORDER[segment.state], -segment.number))
    lines += [_row(segment, room if with_bar else 0, glyphs) for segment in newest_first]
    return lines[:height]


def _row(segment: SegmentRow, room: int, glyphs: Glyphs) -> Line:
    role = _ROLES[segment.state]
    first = f"{segment.first_txid:,}" if segment.first_txid else glyphs.minus
    row: list[Span] = [
        (left(f"{segment.number:08d}", 9), "text"),
        (left(segment.state, 10), role),
        (right(first, 13), "text"),
    ]
    if room:
        level = segment.used_bytes / segment.size_bytes if segment.size_bytes else 0.0
        row += [("  ", "text"), (bar(level, room - 3, glyphs.bars), role), (" ", "text")]
    row.append((right(format_size(segment.used_bytes), 10 if room else 11), "bright"))
    row.append((f" of {format_size(segment.size_bytes)}", "dim"))
    return tuple(row)
