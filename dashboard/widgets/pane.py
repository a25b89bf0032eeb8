"""The widget that draws lines: everything on the screens is one of these.

It is handed lines of (text, role) and draws row by row; only rows that changed are drawn again, and nothing is laid
out anew. Styles come from its screen, by role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from dashboard.widgets.lines import BLANK, Line
from dashboard.widgets.roles import RoleScreen


class Pane(Widget):
    """Lines in a box, on a RoleScreen."""

    DEFAULT_CSS = "Pane { background: $background; position: absolute; }"
    ALLOW_SELECT = False
    can_focus = False

    def __init__(self, *, name: str | None = None, fill: str = "text") -> None:
        """`fill` is the role of the cells that no line covers."""
        super().__init__(name=name)
        self._lines: tuple[Line, ...] = ()
        self._fill = fill

    def show(self, lines: Sequence[Line]) -> None:
        """Draw these lines from now on; only rows that differ are drawn again."""
        before, self._lines = self._lines, tuple(lines)
        width = self.size.width
        changed = [
            Region(0, y, width, 1)
            for y in range(max(len(before), len(self._lines)))
            if _line(before, y) != _line(self._lines, y)
        ]
        if changed:
            self.refresh(*changed)

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown."""
        return self._lines

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width, height = self.size
        fill = self._style(self._fill)
        if not 0 <= y < height:
            return Strip.blank(width, fill)
        strip = Strip([Segment(text, self._style(role)) for text, role in _line(self._lines, y)])
        return strip.adjust_cell_length(width, fill)

    def _style(self, role: str) -> Style:
        screen: RoleScreen[Any] = self.screen  # type: ignore[assignment]  # panes stand on nothing else
        return screen.role_style(role)


def _line(lines: Sequence[Line], y: int) -> Line:
    return lines[y] if y < len(lines) else BLANK
