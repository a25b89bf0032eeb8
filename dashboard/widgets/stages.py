"""Where the time of a commit goes: queue, write, sync, wake, in the order they happen.

where a commit's time goes ───────
queue  ━━━━╸─────────────  134 us  24 %
write  ━━────────────────   31 us   9 %
sync   ━━━━━━━━╸─────────  145 us  45 %
wake   ━━━━──────────────  105 us  22 %
"""

from __future__ import annotations

from dashboard.glyphs import Glyphs
from dashboard.wal_window import STAGES, Stages
from dashboard.widgets.lines import Line, absent_lines, cut, gauge, left, right, title
from engine.snapshot import Absent
from engine.units import format_duration

_NAME, _MEAN, _SHARE = 6, 9, 6
_HELP = {
    "queue": "until its bytes are written, and until their sync begins",
    "write": "write to the file",
    "sync": "on the device",
    "wake": "until the handler runs again",
}


def stage_lines(stages: Stages | Absent, width: int, height: int, glyphs: Glyphs, *, note: str) -> list[Line]:
    """Draw one bar a stage in `width` by `height` cells, and the whole of a commit where there is room."""
    lines: list[Line] = [title("where a commit's time goes", width, glyphs, note=note)]
    if isinstance(stages, Absent):
        return lines + absent_lines(stages, width, glyphs)
    room = max(width - _NAME - _MEAN - _SHARE - 1, 3)
    for name, mean, share in zip(STAGES, stages.mean_ns, stages.shares, strict=True):
        lines.append(
            (
                (left(name, _NAME) + " ", "text"),
                *gauge(share, room, name, glyphs),
                (right(format_duration(mean), _MEAN), "bright"),
                (right(f"{share * 100:.0f} %", _SHARE), "dim"),
            )
        )
    if height >= len(STAGES) + 3:
        whole = _whole_bar(stages, width - _NAME - 1, glyphs)
        lines += [(), ((left("whole", _NAME) + " ", "dim"), *whole)]
    if height >= len(STAGES) + 5:
        total = format_duration(sum(stages.mean_ns))
        lines.append(
            (
                (" " * (_NAME + 1), "dim"),
                (cut(f"{total} on average, from the call to its return", width - _NAME - 1, glyphs), "dim"),
            )
        )
    return lines[:height]


def _whole_bar(stages: Stages, width: int, glyphs: Glyphs) -> Line:
    """Return the four stages in one bar, each as wide as its share."""
    edges = [0]
    running = 0.0
    for share in stages.shares:
        running += share
        edges.append(round(running * width))
    full = glyphs.bars[-1]
    marks = [name[0] for name in STAGES] if glyphs.plain else [full] * len(STAGES)
    return tuple(
        (mark * (end - start), name)
        for name, mark, start, end in zip(STAGES, marks, edges, edges[1:], strict=False)
        if end > start
    )
