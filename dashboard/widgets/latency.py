"""Latency quantiles of commits and of syncs, with bars on one logarithmic scale.

latency ─────────────────────── 5 s
         commit     sync
p50      612 us   130 us  ▌▌▌▌▌▌▌▌▌
p99     1.25 ms   290 us  ▌▌▌▌▌▌▌▌▌▌▌▌▌
"""

from __future__ import annotations

import math

from dashboard.glyphs import Glyphs, bar
from dashboard.wal_window import Quantiles
from dashboard.widgets.lines import Line, Span, absent_lines, left, right, title
from engine.snapshot import Absent
from engine.units import format_duration

ROWS = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999"), ("max", "maximum"), ("mean", "mean"))
_NAME, _VALUE = 6, 9
_LEAST_BAR = 6
# Which rows a short pane keeps.
_BY_NEED = ("p99", "p50", "maximum", "p999", "p90", "mean")
_SCALE_NS = (10_000.0, 10_000_000_000.0)  # the ladder's ends: 10 us is no bar, 10 s a full one


def latency_lines(
    commit: Quantiles | Absent, sync: Quantiles | Absent, width: int, height: int, glyphs: Glyphs, *, note: str
) -> list[Line]:
    """Lay quantiles out in `width` by `height` cells; the bars, then the syncs go where it is narrow."""
    lines: list[Line] = [title("latency", width, glyphs, note=note)]
    if isinstance(commit, Absent) and isinstance(sync, Absent):
        return lines + absent_lines(commit, width, glyphs)
    with_sync = width >= _NAME + 2 * _VALUE
    room = width - _NAME - _VALUE * (1 + with_sync) - 2
    with_bar = room >= _LEAST_BAR
    head: list[Span] = [(" " * _NAME, "dim"), (right("commit", _VALUE), "dim")]
    if with_sync:
        head.append((right("sync", _VALUE), "dim"))
    lines.append(tuple(head))
    kept = _BY_NEED[: max(height - 2, 0)]
    for name, attribute in ROWS:
        if attribute in kept:
            row: list[Span] = [(left(name, _NAME), "dim"), (right(_shown(commit, attribute), _VALUE), "bright")]
            if with_sync:
                row.append((right(_shown(sync, attribute), _VALUE), "text"))
            if with_bar and isinstance(commit, Quantiles):
                row += [("  ", "text"), (bar(log_level(getattr(commit, attribute)), room, glyphs.bars), "bar")]
            lines.append(tuple(row))
    return lines


def log_level(nanoseconds: float) -> float:
    """Return where a duration stands between 10 us (0) and 10 s (1), by its logarithm; 0 for nan."""
    if not nanoseconds > _SCALE_NS[0]:
        return 0.0
    span = math.log10(_SCALE_NS[1] / _SCALE_NS[0])
    return min(math.log10(nanoseconds / _SCALE_NS[0]) / span, 1.0)


def _shown(quantiles: Quantiles | Absent, attribute: str) -> str:
    if isinstance(quantiles, Absent):
        return "n/a"
    value: float = getattr(quantiles, attribute)
    return format_duration(value) if math.isfinite(value) else "n/a"
