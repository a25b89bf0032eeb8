"""Aligned text tables that fit a terminal: the least important columns go first when it is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_GAPS = ("  ", " ")  # the wide one first


class Column(NamedTuple):
    """One column: title, cells, side, and when it may go. rank 0 always stays; of others the highest goes first."""

    title: str
    cells: tuple[str, ...]
    left: bool = False
    rank: int = 0

    @property
    def width(self) -> int:
        """The widest of title and cells."""
        return max(len(self.title), *(len(cell) for cell in self.cells)) if self.cells else len(self.title)


def fit(columns: Sequence[Column], width: int) -> tuple[list[Column], str]:
    """Return the columns that fit `width`, in order, and the gap between them.

    A narrow gap is tried before a column goes; then the highest rank goes first. Rank 0 is never dropped.
    """
    kept = list(columns)
    while True:
        for gap in _GAPS:
            if sum(column.width for column in kept) + len(gap) * (len(kept) - 1) <= width:
                return kept, gap
        worst = max(kept, key=lambda column: column.rank)
        if worst.rank == 0:
            return kept, _GAPS[-1]
        kept.remove(worst)


def render(columns: Sequence[Column], width: int) -> list[str]:
    """Return the table's lines, title first, none with trailing blanks."""
    kept, gap = fit(columns, width)
    rows = zip(*(column.cells for column in kept), strict=True)
    lines = [tuple(column.title for column in kept), *rows]
    return [gap.join(_pad(text, column) for text, column in zip(line, kept, strict=True)).rstrip() for line in lines]


def _pad(text: str, column: Column) -> str:
    return text.ljust(column.width) if column.left else text.rjust(column.width)
