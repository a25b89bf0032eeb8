"""Rules of contrast: which role must stand out from which surface, and by how much.

The ratio is WCAG 2's: (lighter + 0.05) / (darker + 0.05) of relative luminance, 1 to 21. Text wants 4.5, text
that matters most 7; shapes that carry meaning want 3 (WCAG 1.4.11). A rule between panes carries none: it need
only be seen, and must stay quieter than text.
"""

from __future__ import annotations

from typing import NamedTuple

from themes.loader import Theme


class Rule(NamedTuple):
    """`role` on `surface` has a ratio of at least `least`, and of at most `most`."""

    role: str
    surface: str
    least: float
    most: float = 21.0


_TEXT = (("text", 7.0), ("bright", 10.0), ("dim", 4.5), ("accent", 4.5), ("good", 4.5), ("warn", 4.5), ("bad", 4.5))
_SHAPES = ("water-low", "water-high", "swell-low", "swell-high", "bar", "queue", "write", "sync", "wake")

RULES: tuple[Rule, ...] = (
    *(Rule(role, surface, least) for surface in ("deep", "panel", "raised") for role, least in _TEXT),
    *(Rule(role, "deep", 3.0) for role in _SHAPES),
    Rule("rule", "deep", 1.4, 3.0),
    # Stages and badges are written in their colours, or on them.
    *(Rule(role, "deep", 4.5) for role in ("write", "sync", "wake")),
)


def broken_rules(theme: Theme) -> list[str]:
    """Return one line for each rule that a theme breaks. A theme of the terminal's own colours has nothing to check."""
    if theme.ansi:
        return []
    colours = theme.colours()
    lines = []
    for rule in RULES:
        ratio = contrast_ratio(colours[rule.role], colours[rule.surface])
        if not rule.least <= ratio <= rule.most:
            lines.append(
                f"{theme.name}: {rule.role} on {rule.surface} is {ratio:.2f}, allowed {rule.least:g} to {rule.most:g}"
            )
    return lines


def contrast_ratio(one: str, other: str) -> float:
    """Return WCAG's contrast ratio of two #rrggbb colours."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, 0 (black) to 1 (white)."""
    red, green, blue = (_linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
