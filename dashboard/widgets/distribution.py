"""The distribution of ops per sync: one column a bucket, its height the share of syncs.

ops per sync ─────────── mean 24
  42 %          ▃█▅
               ▂████▁
   0 %  ▁▁▁▁▁▁▂██████▁▁▁▁▁▁
        1  2  4  8  16 32 64
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.glyphs import Glyphs, cell
from dashboard.widgets.lines import Line, right, title
from engine.units import format_count

AXIS_WIDTH = 5
# Bounds worth a label, most wanted first; one is written where it touches no other.
_WANTED = (1, 16, 64, 4, 256, 1024, 4096, 8, 32, 2, 128, 512)


def distribution_lines(
    counts: Sequence[int], bounds: Sequence[int], width: int, height: int, glyphs: Glyphs, *, name: str, note: str
) -> list[Line]:
    """Draw bucket counts, one more than there are bounds, in `width` by `height` cells."""
    lines: list[Line] = [title(name, width, glyphs, note=note)]
    rows = height - 2
    step = max((width - AXIS_WIDTH - 1) // len(counts), 1)
    shown = min(len(counts), max((width - AXIS_WIDTH - 1) // step, 0))
    if rows < 1 or shown < 4:
        return lines
    kept = [*counts[: shown - 1], sum(counts[shown - 1 :])]
    total = sum(kept)
    peak = max(kept) if total else 0
    for y in range(rows):
        label = f"{100 * peak / total:.0f} %" if y == 0 and total else "0 %" if y == rows - 1 else ""
        columns = "".join(_column(count, peak, row=rows - 1 - y, rows=rows, step=step, glyphs=glyphs) for count in kept)
        lines.append(((right(label, AXIS_WIDTH) + " ", "dim"), (columns, "bar")))
    lines.append(((" " * (AXIS_WIDTH + 1), "dim"), (_bounds_axis(bounds[:shown], step, step * shown), "dim")))
    return lines


def _column(count: int, peak: int, *, row: int, rows: int, step: int, glyphs: Glyphs) -> str:
    level = count / peak if peak else 0.0
    glyph = cell(level, place=row, places=rows, steps=glyphs.columns)
    if glyph == glyphs.columns[0] and row == 0:
        # The floor shows where buckets are, and a bucket with anything in it is never empty.
        glyph = glyphs.columns[1] if count else glyphs.rule if glyphs.plain else " "
    body = max(step - 1, 1)
    return glyph * body + " " * (step - body)


def _bounds_axis(bounds: Sequence[int], step: int, width: int) -> str:
    axis = [" "] * width
    for wanted in _WANTED:
        if wanted in bounds:
            at, text = bounds.index(wanted) * step, format_count(wanted) if wanted < 1000 else f"{wanted // 1000}k"
            if at + len(text) <= width and all(c == " " for c in axis[max(at - 1, 0) : at + len(text) + 1]):
                axis[at : at + len(text)] = text
    return "".join(axis)
