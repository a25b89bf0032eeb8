"""The lines that frame every screen: header, footer, the verdict, and boxes of words in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.glyphs import Glyphs
from dashboard.keys import SCREEN_TITLES, SCREENS, keys_on
from dashboard.verdict import Verdict
from dashboard.widgets.lines import Line, Span, cut, cut_start, fitted, outside, spread, width_of

_SHORT = {"ramdisk": "RAM"}


@dataclass(frozen=True, slots=True)
class Readings:
    """What the footer says of the program itself; None where not known yet."""

    screen_share: float | None
    process_share: float | None
    frame_ms: float | None


def header_line(open_screen: str, width: int, glyphs: Glyphs, *, source: str) -> Line:
    """Return the name of the program, the screens by number, and the source at the right end."""
    roomy = width >= 76
    brand: Line = ((f" {glyphs.wave} tidegauge ", "brand"),) if roomy else ((f" {glyphs.wave} ", "brand"),)
    tabs: list[Span] = []
    for number, name in enumerate(SCREENS, 1):
        text = SCREEN_TITLES[name] if roomy else _SHORT.get(name, SCREEN_TITLES[name])
        tabs.append((f" {number} {text} ", "tab-open" if name == open_screen else "tab"))
    end: Line = ((f"{outside(source)} ", "bar-text"),)
    gap = width - width_of(brand) - width_of(tuple(tabs)) - width_of(end)
    if gap < 1:
        return (*brand, *tabs)
    return (*brand, *tabs, (" " * gap, "bar-text"), *end)


def footer_line(
    badge: Span, readings: Readings, message: str, width: int, glyphs: Glyphs, *, open_screen: str = ""
) -> Line:
    """Return the badge, hints or a message, and at the right end what the screen costs."""
    end: Line = ((_cost(readings, width), "bar-text"),)
    room = width - width_of((badge,)) - width_of(end) - 2
    if message:
        if len(message) + 1 > room:  # what was just done says more than what it costs
            end, room = (), room + width_of(end)
        middle: Line = ((" " + cut(outside(message), room - 1, glyphs), "bar-note"),)
    else:
        middle = _hints(open_screen, room)
    gap = width - width_of((badge,)) - width_of(middle) - width_of(end)
    return (badge, *middle, (" " * max(gap, 0), "bar-text"), *end)


def _cost(readings: Readings, width: int) -> str:
    screen = f"screen {readings.screen_share * 100:.1f} %" if readings.screen_share is not None else "screen ..."
    frame = f"frame {readings.frame_ms:.1f} ms" if readings.frame_ms is not None else "frame ..."
    process = f"process {readings.process_share * 100:.0f} %" if readings.process_share is not None else ""
    parts = [process, screen, frame] if width >= 100 and process else [screen, frame]
    return "  ".join(parts) + " "


def _hints(open_screen: str, room: int) -> Line:
    spans: list[Span] = []
    used = 0
    # The way out and to help first: what is left over is cut from the end of the rest.
    keys = [key for key in keys_on(open_screen) if key.in_footer]
    last = [key for key in keys if key.shown in ("?", "q")]
    rest = [key for key in keys if key not in last]
    reserved = sum(len(key.shown) + len(key.label) + 3 for key in last)
    for key in rest:
        size = len(key.shown) + len(key.label) + 3
        if used + size + reserved > room:
            break
        spans += [(f"  {key.shown}", "bar-key"), (f" {key.label}", "bar-text")]
        used += size
    for key in last:
        spans += [(f"  {key.shown}", "bar-key"), (f" {key.label}", "bar-text")]
    return tuple(spans)


def verdict_line(verdict: Verdict, width: int, glyphs: Glyphs) -> Line:
    """Return the verdict: a mark and its text in the colour of its mood."""
    mark: Line = ((f"{glyphs.bullet} ", verdict.mood),)
    head: Line = (*mark, ("verdict  ", "title")) if width_of(mark) + 9 + len(verdict.line()) <= width else mark
    room = width - width_of(head)
    hint = f"; {verdict.hint}" if verdict.hint else ""  # what to press is the last to go
    text = (
        cut(verdict.text, room - len(hint), glyphs) + hint
        if len(hint) < room // 2
        else cut(verdict.line(), room, glyphs)
    )
    return (*head, (text, f"{verdict.mood}-word"))


def words_in_a_box(words: Sequence[Line], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return lines of words in a box in the middle of `width` by `height` cells; without its frame where tight."""
    inner = min(max((width_of(line) for line in words), default=0), width)
    framed = inner + 6 <= width and len(words) + 2 <= height
    block: list[Line] = [fitted(_centred(line, inner), inner) for line in words]
    if framed:
        corners = "++++" if glyphs.plain else "╭╮╰╯"
        side = "|" if glyphs.plain else "│"
        edge = glyphs.rule * (inner + 4)
        block = [
            ((corners[0] + edge + corners[1], "rule"),),
            *(((side + "  ", "rule"), *line, ("  " + side, "rule")) for line in block),
            ((corners[2] + edge + corners[3], "rule"),),
        ]
    above = max((height - len(block)) // 2, 0)
    indent = max((width - (inner + 6 if framed else inner)) // 2, 0)
    return [()] * above + [((" " * indent, "text"), *line) for line in block][: max(height, 0)]


def _centred(line: Line, width: int) -> Line:
    return ((" " * ((width - width_of(line)) // 2), "text"), *line)


def state_line(mark: Span, word: Span, facts: Sequence[str], end: str, width: int, glyphs: Glyphs) -> Line:
    """Return a lane's state in a word, then facts about it, as many as fit, and `end` at the right edge."""
    head: Line = (mark, (" ", "text"), word)
    spans: list[Span] = []
    for fact in facts:
        text = outside(fact)
        if width_of((*head, *spans, (text, ""))) + 3 > width:
            break
        spans += [(f" {glyphs.middle_dot} " if spans else "   ", "rule" if spans else "text"), (text, "text")]
    line = (*head, *spans)
    room = width - width_of(line) - 3
    if room < 12 or not end:
        return line
    return spread(line, ((cut_start(outside(end), room, glyphs), "dim"),), width)
