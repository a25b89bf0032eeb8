"""Themes as Textual wants them: each role becomes a CSS variable, `tide-ROLE`."""

from __future__ import annotations

from textual.theme import Theme as TextualTheme

from dashboard.terminal import Depth
from themes.loader import Theme, shipped_themes

SIXTEEN = "tide-16"


def theme_for(colour: Depth, wanted: str | None, names: tuple[str, ...]) -> str:
    """Return the theme to start with: the one asked for, or what suits the terminal's colours."""
    if wanted in names:
        return wanted
    return SIXTEEN if colour == "16" else "tide-dark"


def themes_for(colour: Depth) -> dict[str, Theme]:
    """Return the themes that `t` goes through on a terminal: without colours, one is as good as another."""
    shipped = shipped_themes()
    if colour == "16":
        return {SIXTEEN: shipped[SIXTEEN]}
    rest = {name: theme for name, theme in shipped.items() if name != SIXTEEN}
    return rest if colour != "none" else {"tide-dark": rest["tide-dark"]}


def textual_theme(theme: Theme) -> TextualTheme:
    """Return a theme in Textual's form; what its own widgets use comes from our roles too."""
    colours = theme.colours()
    return TextualTheme(
        name=theme.name,
        primary=colours["accent"],
        secondary=colours["swell-high"],
        accent=colours["accent"],
        foreground=colours["text"],
        background=colours["deep"],
        surface=colours["panel"],
        panel=colours["raised"],
        boost=colours["raised"],
        success=colours["good"],
        warning=colours["warn"],
        error=colours["bad"],
        dark=theme.dark,
        ansi=theme.ansi,
        variables=role_variables(theme),
    )


def role_variables(theme: Theme) -> dict[str, str]:
    """Return the CSS variable of every role and surface."""
    return {f"tide-{role}": value for role, value in theme.colours().items()}
