"""Counters: what happened by the second, and in all since the store was opened.

blocks ───────────────── last 5 s
              per second    in all
fallbacks              0        12
evicted              3.2     1,204
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, left, right, title
from engine.snapshot import Absent
from engine.units import format_count

_NAME, _RATE, _TOTAL = 15, 8, 9


class Counter(NamedTuple):
    """One row. alarm: the role of its numbers once there are any; note: what else is to be said of it."""

    name: str
    per_second: float | Absent
    total: int
    alarm: str = "bright"
    note: str = ""


def counter_lines(
    name: str, counters: Sequence[Counter], width: int, height: int, glyphs: Glyphs, *, note: str
) -> list[Line]:
    """Lay counters out in `width` by `height` cells, the first first."""
    room = max(min(width - _RATE - _TOTAL, _NAME), 4)
    rest = width - room - _RATE - _TOTAL - 2
    lines: list[Line] = [title(name, width, glyphs, note=note)]
    lines.append(((left("", room) + right("/s", _RATE) + right("in all", _TOTAL), "dim"),))
    for counter in counters:
        total = max(counter.total, 0)
        rate = 0.0 if isinstance(counter.per_second, Absent) else counter.per_second
        line: Line = (
            (left(counter.name, room), "text"),
            (right(format_count(rate) if rate else "0", _RATE), counter.alarm if rate else "dim"),
            (right(f"{total:,}" if total < 10_000_000 else format_count(total), _TOTAL), "bright" if total else "dim"),
        )
        if counter.note and len(counter.note) <= rest:
            line = (*line, ("  " + counter.note, "dim"))
        lines.append(line)
    return lines[:height]
