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

import numpy as np
import numpy.typing as npt

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, right, title
from engine.units import format_count

DOTS_PER_CELL = 2  # columns of dots in one braille cell; a series has as many values per cell
AXIS_WIDTH = 6
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
    finite = plot.values[np.isfinite(plot.values)]
    top = nice_top(float(finite.max()) if finite.size else 0.0)
    labels = {0: plot.label(top), rows - 1: "0"}
    if rows >= 6 and rows % 2 == 0:
        labels[rows // 2] = plot.label(top / 2)
    for y, text in enumerate(canvas(plot.values, top=top, width=canvas_width(width), height=rows, glyphs=glyphs)):
        height_share = round(100 * (rows - 1 - y) / max(rows - 1, 1))
        lines.append(((right(labels.get(y, ""), AXIS_WIDTH) + " ", "dim"), (text, f"{plot.colours}@{height_share}")))
    if with_time:
        lines.append(_time_axis(plot, width))
    return lines


def canvas(values: npt.NDArray[np.float64], *, top: float, width: int, height: int, glyphs: Glyphs) -> list[str]:
    """Return `height` rows of `width` characters: the area under `values`, which reach from 0 to `top`."""
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
    # A value stands in the middle of its column of dots; a stem from there to the floor fills the area.
    signal = figure.signal((known + 0.5).tolist(), clipped.tolist(), marker=glyphs.plot_marker)
    signal.fillx()
    figure.draw(signal)
    rows = figure.build().string(colorless=True).split("\n")
    return [row.ljust(width)[:width] for row in (rows + [""] * height)[:height]]


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
