"""Where things stand: the same places on every lane's screen, from 60x16 up.

header       full width
state        one line
headline     two lines, three where there is room
plots        left, right
distribution left, middle, right (left, right where it is narrow)
table        left, right (not where it is low)
verdict      one line
footer       full width
"""

from __future__ import annotations

from typing import NamedTuple

MARGIN = 1
GAP = 2
ROOMY_HEIGHT = 28  # from here on blank lines set the parts apart
WIDE = 96  # from here on three distributions fit side by side with their bars


class Box(NamedTuple):
    """A rectangle of cells."""

    x: int
    y: int
    width: int
    height: int


PLACES = (
    "header",
    "state",
    "headline",
    "plot_left",
    "plot_right",
    "distribution_left",
    "distribution_middle",
    "distribution_right",
    "table_left",
    "table_right",
    "verdict",
    "footer",
)


def lane_boxes(width: int, height: int) -> dict[str, Box]:
    """Return the box of every place that is shown in `width` by `height` cells, none over another."""
    inner = width - 2 * MARGIN
    roomy = height >= ROOMY_HEIGHT
    blank = 1 if roomy else 0
    headline_height = 3 if roomy else 2
    boxes = {
        "header": Box(0, 0, width, 1),
        "state": Box(MARGIN, 1, inner, 1),
        "headline": Box(MARGIN, 2 + blank, inner, headline_height),
        "verdict": Box(MARGIN, height - 2, inner, 1),
        "footer": Box(0, height - 1, width, 1),
    }
    top = 2 + blank + headline_height + blank
    plot, distribution, table = _heights(height - 2 - blank - top, between=1 if height >= 36 else 0)
    between = 1 if height >= 36 else 0
    y = top
    boxes |= _row("plot", y, plot, inner, ("left", "right"), (1, 1))
    y += plot + between
    if inner >= 76:
        shares = (37, 29, 34) if inner >= WIDE else (32, 32, 36)
        boxes |= _row("distribution", y, distribution, inner, ("left", "middle", "right"), shares)
    else:
        boxes |= _row("distribution", y, distribution, inner, ("left", "right"), (2, 3))
    y += distribution + between
    if table:
        boxes |= _row("table", y, table, inner, ("left", "right"), (1, 1))
    return boxes


def _heights(rows: int, *, between: int) -> tuple[int, int, int]:
    """Share out rows among plots, distributions and tables; tables go first where there are too few."""
    if rows < 14:
        return rows - rows // 2, rows // 2, 0
    rows -= 2 * between
    table = min(max(round(rows * 0.22), 4), 12)
    distribution = min(max(round((rows - table) * 0.45), 6), 13)
    return rows - table - distribution, distribution, table


def _row(
    place: str, y: int, height: int, inner: int, names: tuple[str, ...], shares: tuple[int, ...]
) -> dict[str, Box]:
    room = inner - GAP * (len(names) - 1)
    boxes: dict[str, Box] = {}
    x, given, taken = MARGIN, 0, 0
    for name, share in zip(names, shares, strict=True):
        given += share
        width = room * given // sum(shares) - taken
        boxes[f"{place}_{name}"] = Box(x, y, width, height)
        taken += width
        x += width + GAP
    return boxes
