"""One of History's series as a plot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dashboard.frame import Frame
from dashboard.history import Series
from dashboard.widgets.lines import Line
from dashboard.widgets.plot import DOTS_PER_CELL, Plot, canvas_width, plot_lines


def series_plot(
    name: str, what: Series, colours: str, label: Callable[[float], str], frame: Frame, width: int, height: int
) -> list[Line]:
    """Plot a series over the frame's span. label: how its values are written."""
    columns = DOTS_PER_CELL * canvas_width(width)
    values = frame.history.series(what, seconds=frame.span_seconds, columns=columns, end_ns=frame.end_ns)
    finite = values[np.isfinite(values)]
    note = f"peak {label(float(finite.max()))}" if finite.size else ""
    starts, middle, ends = frame.time_labels()
    plot = Plot(name, values, note, colours, starts, middle, ends, label)
    return plot_lines(plot, width, height, frame.glyphs)
