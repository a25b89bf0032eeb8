"""Roles as styles: what the panes of a screen draw with.

A role is a component class of the screen, so its colour is the theme's. It stands on the screen and not on each pane:
Textual works every component class out anew for every widget that has it, and a screen has a dozen panes.
`water@40` is a colour between two roles, water-low and water-high, at 40 %.
"""

from __future__ import annotations

from rich.style import Style
from textual.color import Color
from textual.screen import Screen, ScreenResultType

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


def role_css(screen: str, background: str) -> str:
    """Return the CSS of every role on a screen class; `background` is what roles without their own stand on."""
    rules = [f"{screen} > .role--{role} {{ color: $tide-{role}; background: {background}; }}" for role in ROLES]
    for role, style in _DRAWN.items():
        rules.append(f"{screen} > .role--{role} {{ background: {background}; {style} }}")
    for mode in (f"{screen}:nocolor", f"{screen}:ansi"):
        rules.append(f"{mode} > .role--bright {{ text-style: bold; }}")
        rules.append(f"{mode} > .role--dim, {mode} > .role--rule {{ text-style: dim; }}")
        rules += [
            f"{mode} > .role--{role} {{ text-style: bold reverse; }}"
            for role in ("tab-open", "badge-live", "badge-paused")
        ]
    # Reversed: the colour is then what the badge stands on.
    rules.append(f"{screen}:ansi > .role--badge-live {{ color: $tide-good; background: $tide-deep; }}")
    rules.append(f"{screen}:ansi > .role--badge-paused {{ color: $tide-warn; background: $tide-deep; }}")
    return "\n".join(rules)


class RoleScreen(Screen[ScreenResultType]):
    """A screen that knows the style of every role. Subclasses include role_css in their DEFAULT_CSS."""

    COMPONENT_CLASSES = {f"role--{role}" for role in (*ROLES, *_DRAWN)}  # noqa: RUF012 - Textual's way to declare them

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name)
        self._role_styles: dict[str, Style] = {}

    def role_style(self, role: str) -> Style:
        """Return the style of a role, or of a place between two."""
        style = self._role_styles.get(role)
        if style is None:
            style = self._role_styles[role] = self._between(role) if "@" in role else self._component(role)
        return style

    def notify_style_update(self) -> None:
        """Forget the styles of the theme before."""
        self._role_styles.clear()
        super().notify_style_update()

    def _component(self, role: str) -> Style:
        return self.get_component_rich_style(f"role--{role}")

    def _between(self, role: str) -> Style:
        name, _, percent = role.partition("@")
        low, high = self._component(f"{name}-low"), self._component(f"{name}-high")
        share = int(percent) / 100
        if low.color is None or high.color is None or low.color.triplet is None or high.color.triplet is None:
            return high if share >= 0.5 else low  # the terminal's own colours have nothing between them
        between = Color.from_rich_color(low.color).blend(Color.from_rich_color(high.color), share)
        return low + Style(color=between.rich_color)
