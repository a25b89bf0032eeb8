"""The widget that draws lines: everything on the screens is one of these.

It is handed lines of (text, role) and draws row by row; only rows that changed are drawn again, and nothing is laid
out anew. A role is a component class, so its colour is the theme's. `water@40` is a colour between two roles,
water-low and water-high, at 40 %.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from dashboard.widgets.lines import BLANK, Line
from themes.loader import ROLES

# Roles beside the theme's own: a colour of the theme, and how it is drawn. What a colour says, a word says too, and
# what must stand out without colour is reversed or bold.
_DRAWN = {
    "title": "color: $tide-accent; text-style: bold;",
    "brand": "color: $tide-water-high; background: $tide-panel; text-style: bold;",
    "tab": "color: $tide-dim; background: $tide-panel;",
    "tab-open": "color: $tide-bright; background: $tide-raised; text-style: bold;",
    "bar-text": "color: $tide-dim; background: $tide-panel;",
    "bar-key": "color: $tide-accent; background: $tide-panel; text-style: bold;",
    "bar-note": "color: $tide-bright; background: $tide-panel;",
    "badge-live": "color: $tide-deep; background: $tide-good; text-style: bold;",
    "badge-paused": "color: $tide-deep; background: $tide-warn; text-style: bold;",
    "good-word": "color: $tide-good; text-style: bold;",
    "warn-word": "color: $tide-warn; text-style: bold;",
    "bad-word": "color: $tide-bad; text-style: bold;",
    "dim-word": "color: $tide-dim; text-style: bold;",
}


def _css() -> str:
    rules = [f"Pane > .pane--{role} {{ color: $tide-{role}; }}" for role in ROLES]
    rules += [f"Pane > .pane--{role} {{ {style} }}" for role, style in _DRAWN.items()]
    for selector in ("Pane:nocolor", "Pane:ansi"):
        rules.append(f"{selector} > .pane--bright {{ text-style: bold; }}")
        rules.append(f"{selector} > .pane--dim, {selector} > .pane--rule {{ text-style: dim; }}")
        for role in ("tab-open", "badge-live", "badge-paused"):
            rules.append(f"{selector} > .pane--{role} {{ text-style: bold reverse; }}")
    rules.append("Pane:ansi > .pane--badge-live { color: $tide-good; background: $tide-deep; }")
    rules.append("Pane:ansi > .pane--badge-paused { color: $tide-warn; background: $tide-deep; }")
    return "Pane { background: $background; position: absolute; }\n" + "\n".join(rules)


class Pane(Widget):
    """Lines in a box."""

    COMPONENT_CLASSES = {f"pane--{role}" for role in (*ROLES, *_DRAWN)}  # noqa: RUF012 - Textual's way to declare them
    DEFAULT_CSS = _css()
    ALLOW_SELECT = False
    can_focus = False

    def __init__(self, *, name: str | None = None, fill: str = "text") -> None:
        """`fill` is the role of the cells that no line covers."""
        super().__init__(name=name)
        self._lines: tuple[Line, ...] = ()
        self._fill = fill
        self._styles_by_role: dict[str, Style] = {}

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

    def notify_style_update(self) -> None:
        """Forget the styles of the theme before."""
        self._styles_by_role.clear()
        super().notify_style_update()

    def _style(self, role: str) -> Style:
        style = self._styles_by_role.get(role)
        if style is None:
            style = self._styles_by_role[role] = self._blend(role) if "@" in role else self._component(role)
        return style

    def _component(self, role: str) -> Style:
        return self.get_component_rich_style(f"pane--{role}")

    def _blend(self, role: str) -> Style:
        name, _, percent = role.partition("@")
        low, high = self._component(f"{name}-low"), self._component(f"{name}-high")
        share = int(percent) / 100
        if low.color is None or high.color is None or low.color.triplet is None or high.color.triplet is None:
            return high if share >= 0.5 else low  # the terminal's own colours have nothing between them
        between = Color.from_rich_color(low.color).blend(Color.from_rich_color(high.color), share)
        return low + Style(color=between.rich_color)


def _line(lines: Sequence[Line], y: int) -> Line:
    return lines[y] if y < len(lines) else BLANK
