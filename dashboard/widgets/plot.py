"""Plots over time: plotext draws the canvas, we draw title, axes and colours around it.

plotext 6 builds a matrix of characters; without colours it gives its rows as plain text, so nothing here parses
escape codes. Colour is ours, by role, and rises with the row: `water@40` is 40 % of the way from water-low to
water-high.

    ops/s ─────────────────── now 81.3k
      100k
       50k   ⢀⣀⣤⣶⣶⣤⣀
         0 ⣿⣿⣿⣿⣿⣿⣿⣿⣿
           -60 s        -30 s       now
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, right, title
from engine.units import format_count

DOTS_PER_CELL = 2  # columns of dots in one braille cell; a series has as many values per cell
AXIS_WIDTH = 6
_BRAILLE = 0x2800
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # Unicode's bit for the dot at row, column
_NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True, slots=True)
class Plot:
    """What one plot shows. values: float64[DOTS_PER_CELL * canvas_width(width)], nan where nothing is known."""

    name: str
    values: npt.NDArray[np.float64]
    note: str  # at the right end of the title
    colours: str  # water or swell
    starts: str  # labels of the time axis
    middle: str
    ends: str
    label: Callable[[float], str] = format_count
    line: npt.NDArray[np.float64] | None = None  # a second quantity in the same unit: drawn as a line over the area


def canvas_width(width: int) -> int:
    """Return the cells of the canvas in a plot of `width` cells."""
    return max(width - AXIS_WIDTH - 1, 1)


def plot_lines(plot: Plot, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Lay a plot out in `width` by `height` cells. Under five rows the time axis goes, under three the canvas."""
    lines: list[Line] = [title(plot.name, width, glyphs, note=plot.note)]
    with_time = height >= 5
    rows = height - 1 - with_time
    if rows < 2 or width < AXIS_WIDTH + 8:
        return lines
    both = plot.values if plot.line is None else np.concatenate((plot.values, plot.line))
    finite = both[np.isfinite(both)]
    top = nice_top(float(finite.max()) if finite.size else 0.0)
    labels = {0: plot.label(top), rows - 1: "0"}
    if rows >= 6 and rows % 2 == 0:
        labels[rows // 2] = plot.label(top / 2)
    room = canvas_width(width)
    area = canvas(plot.values, top=top, width=room, height=rows, glyphs=glyphs)
    line = None if plot.line is None else crest(plot.line, top=top, width=room, height=rows, glyphs=glyphs)
    for y, text in enumerate(area):
        role = f"{plot.colours}@{round(100 * (rows - 1 - y) / max(rows - 1, 1))}"
        drawn = ((text, role),) if line is None else over(line[y], text, role)
        lines.append(((right(labels.get(y, ""), AXIS_WIDTH) + " ", "dim"), *drawn))
    if with_time:
        lines.append(_time_axis(plot, width))
    return lines


def canvas(values: npt.NDArray[np.float64], *, top: float, width: int, height: int, glyphs: Glyphs) -> list[str]:
    """Return `height` rows of `width` characters: the area under `values`, which reach from 0 to `top`."""
    rows = crest(values, top=top, width=width, height=height, glyphs=glyphs)
    if not np.isfinite(values).any() or not rows or width < 1:
        return rows
    return _filled_plain(rows) if glyphs.plain else filled(rows)


def crest(values: npt.NDArray[np.float64], *, top: float, width: int, height: int, glyphs: Glyphs) -> list[str]:
    """Return the line through `values` alone."""
    from plotext import figure  # 0.15 s to import: the first frame does not wait for it

    known = np.flatnonzero(np.isfinite(values))
    if not known.size or width < 1 or height < 1:
        return [" " * width] * height
    clipped = np.clip(values[known], 0.0, top)
    figure.clear.all()  # the figure is plotext's one global: nothing of the plot before may stay
    figure.plot_size(width, height)
    figure.axes(False)
    for axis, most in ((0, float(values.size)), (1, top)):
        figure.ruler(axis).frequency(0)
        figure.ruler(axis).lim(0.0, most)
        figure.ruler(axis).alignment(lim="edge")
    # A value stands in the middle of its column of dots.
    figure.draw(figure.signal((known + 0.5).tolist(), clipped.tolist(), marker=glyphs.plot_marker))
    rows = figure.build().string(colorless=True).split("\n")
    return [row.ljust(width)[:width] for row in (rows + [""] * height)[:height]]


def over(line: str, area: str, role: str) -> Line:
    """Return a row of an area with a line over it; where the line is the area is not, which shows without colour."""
    spans: list[Span] = []
    for is_line, cells in groupby(zip(line, area, strict=True), key=lambda pair: pair[0] != " "):
        text = "".join(pair[0] if is_line else pair[1] for pair in cells)
        spans.append((text.replace("#", "o"), "bright") if is_line else (text, role))
    return tuple(spans)


def filled(crest: list[str]) -> list[str]:
    """Return rows of braille with every dot under a dot set too: the area under a curve.

    plotext can fill by itself; that takes twice as long as all else it does.
    """
    height, width = len(crest), len(crest[0])
    codes = np.frombuffer("".join(crest).encode("utf-32-le"), np.uint32).reshape(height, width)
    cells = np.where(codes >= _BRAILLE, codes - _BRAILLE, 0)
    dots = np.empty((height, 4, width, 2), bool)
    for y in range(4):
        for x in range(2):
            dots[:, y, :, x] = (cells & _DOTS[y][x]) != 0
    below = np.logical_or.accumulate(dots.reshape(height * 4, width, 2), axis=0).reshape(height, 4, width, 2)
    packed = (below * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    codes = np.where(packed > 0, packed + _BRAILLE, ord(" ")).astype("<u4")
    return [row.tobytes().decode("utf-32-le") for row in codes]


def _filled_plain(crest: list[str]) -> list[str]:
    marks = np.array([[mark != " " for mark in row] for row in crest])
    return ["".join("#" if mark else " " for mark in row) for row in np.logical_or.accumulate(marks, axis=0)]


def nice_top(highest: float) -> float:
    """Return the end of an axis for values up to `highest`: a round number, a little above."""
    if not math.isfinite(highest) or highest <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(highest))
    return next(step for step in (*_NICE, 12.0) if step * scale >= highest * 1.02) * scale


def _time_axis(plot: Plot, width: int) -> Line:
    room = canvas_width(width)
    ends = [" "] * room
    for text, at in (
        (plot.starts, 0),
        (plot.middle, (room - len(plot.middle)) // 2),
        (plot.ends, room - len(plot.ends)),
    ):
        if at >= 0 and all(c == " " for c in ends[max(at - 1, 0) : at + len(text) + 1]):
            ends[at : at + len(text)] = text
    start: Span = (" " * (AXIS_WIDTH + 1), "dim")
    return (start, ("".join(ends), "dim"))
