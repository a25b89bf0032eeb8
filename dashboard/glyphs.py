"""The characters the screen draws with: one set for terminals that have them, one of plain ASCII.

Plain is for TERM=linux, whose font has no braille, for a locale that is not UTF-8, and for whoever asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set. Every one is a single cell wide."""

    plain: bool
    plot_marker: str  # plotext's name for it
    columns: str  # a column's cell from empty to full
    bars: str  # a bar's cell from empty to full
    rule: str
    middle_dot: str
    bullet: str
    wave: str
    cursor: str
    arrow: str
    left_right: str
    up_down: str
    minus: str
    ellipsis: str
    at_least: str


RICH = Glyphs(
    plain=False,
    plot_marker="braille",
    columns=" ▁▂▃▄▅▆▇█",
    bars=" ▏▎▍▌▋▊▉█",
    rule="─",
    middle_dot="·",
    bullet="●",
    wave="≋",
    cursor="│",
    arrow="→",
    left_right="←→",
    up_down="↑↓",
    minus="−",
    ellipsis="…",
    at_least="≥",
)

PLAIN = Glyphs(
    plain=True,
    plot_marker="#",
    columns=" .:#",
    bars=" -=#",
    rule="-",
    middle_dot="|",
    bullet="*",
    wave="~",
    cursor="|",
    arrow=">",
    left_right="<>",
    up_down="^v",
    minus="-",
    ellipsis="~",
    at_least=">=",
)


def cell(level: float, *, place: int, places: int, steps: str) -> str:
    """Return the glyph at `place` (0 is where the bar starts) of one that fills `level` (0..1) of `places` cells.

    steps: glyphs from empty to full, such as Glyphs.bars. nan counts as empty.
    """
    full = len(steps) - 1
    filled = round(min(max(level, 0.0), 1.0) * places * full) - place * full if not math.isnan(level) else 0
    return steps[min(max(filled, 0), full)]


def bar(level: float, width: int, steps: str) -> str:
    """Return a horizontal bar of `width` cells; anything above zero shows at least its first step."""
    drawn = "".join(cell(level, place=place, places=width, steps=steps) for place in range(width))
    return steps[1] + drawn[1:] if level > 0 and width > 0 and drawn[0] == steps[0] else drawn
