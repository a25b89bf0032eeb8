"""Waits side by side: a write to memory and one to disk, until a block was persisted, until it was evicted.

latency of blocks ──────── last 5 s
                  p50       p99
to memory      4.2 ms    9.1 ms  ━━━━━━╸────
to disk           n/a       n/a

What did not happen in the window shows what happened since the store was opened, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dashboard.glyphs import Glyphs
from dashboard.ramdisk_window import Waits
from dashboard.widgets.latency import log_level
from dashboard.widgets.lines import Line, Span, gauge, left, right, title
from engine.snapshot import Absent
from engine.units import format_duration

_NAME, _VALUE, _OVER, _LEAST_BAR = 10, 9, 6, 6


class WaitRow(NamedTuple):
    """One row. `ever`: the same since the store was opened, shown where the window has none."""

    name: str
    now: Waits | Absent
    ever: Waits | Absent


def wait_lines(rows: Sequence[WaitRow], width: int, height: int, glyphs: Glyphs, *, note: str) -> list[Line]:
    """Lay waits out in `width` by `height` cells; the bars, then the medians go where it is narrow."""
    with_over = width >= _NAME + 2 * _VALUE + _OVER
    room = width - _NAME - 2 * _VALUE - _OVER - 2
    with_bar = room >= _LEAST_BAR
    lines: list[Line] = [title("latency of blocks", width, glyphs, note=note)]
    with_p50 = width >= _NAME + 2 * _VALUE
    head = " " * _NAME + right("p50", _VALUE) * with_p50 + right("p99", _VALUE) + right("over", _OVER) * with_over
    lines.append(((head, "dim"),))
    for row in rows:
        waits, over = (row.now, "now") if not isinstance(row.now, Absent) else (row.ever, "ever")
        role = "bright" if over == "now" else "dim"
        spans: list[Span] = [(left(row.name, _NAME), "text")]
        if isinstance(waits, Absent):
            spans.append((right("n/a", _VALUE) * (1 + with_p50), "dim"))
        else:
            spans.append((right(_shown(waits.p50), _VALUE) * with_p50 + right(_shown(waits.p99), _VALUE), role))
            if with_over:
                spans.append((right(over, _OVER), "dim"))
            if with_bar:
                spans += [("  ", "text"), *gauge(log_level(waits.p99), room, "bar", glyphs)]
        lines.append(tuple(spans))
    return lines[:height]


def _shown(nanoseconds: float) -> str:
    return format_duration(nanoseconds) if math.isfinite(nanoseconds) else "n/a"
