"""The headline: a few numbers, large in meaning, each under its name.

ops/s      syncs/s    ops/sync   p50        p99
81.3k      3.39k      24         612 us     1.25 ms
79.4 MiB/s            1 to 50    commit     commit
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, cut, left

LEAST_CELL, LEAST_CELL_WITH_NOTES = 9, 13


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. rank: 0 is what a narrow screen keeps longest."""

    name: str
    value: str
    note: str
    rank: int
    role: str = "bright"
    short: str = ""  # the name where that is too long


def headline_lines(figures: Sequence[Figure], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Lay figures out in columns of equal width, in their order; those of high rank go where room is short."""
    count = min(len(figures), max(width // (LEAST_CELL if height < 3 else LEAST_CELL_WITH_NOTES), 1))
    kept = sorted(figures, key=lambda figure: figure.rank)[:count]
    shown = [figure for figure in figures if figure in kept]
    cell = width // max(len(shown), 1)
    rows: list[list[Span]] = [[], [], []]
    for figure in shown:
        name = figure.short if figure.short and len(figure.name) >= cell else figure.name
        for row, text, role in zip(rows, (name, figure.value, figure.note), ("dim", figure.role, "dim"), strict=True):
            row.append((left(cut(text, cell - 1, glyphs), cell), role))
    return [tuple(row) for row in rows[:height]]
