"""The event log: what happened, newest at the bottom, with its time of day."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, cut, outside, title
from engine.snapshot import Event

_WORDS = {"info": "info ", "warn": "warn ", "error": "error"}  # a word, so that colour is not needed
_ROLES = {"info": "dim", "warn": "warn", "error": "bad"}
_TEXTS = {"info": "text", "warn": "text", "error": "bright"}


def event_lines(events: Sequence[Event], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Lay the newest events out in `width` by `height` cells."""
    lines: list[Line] = [title("events", width, glyphs, note=f"{len(events)}" if events else "")]
    room = max(height - 1, 0)
    for event in events[-room:] if room else ():
        lines.append(
            (
                (clock_time(event.wall_ns) + " ", "dim"),
                (_WORDS[event.severity] + " ", _ROLES[event.severity]),
                (cut(outside(event.text), max(width - 15, 0), glyphs), _TEXTS[event.severity]),
            )
        )
    return lines


def clock_time(wall_ns: int) -> str:
    """Return a time of day where the reader is: here and below are the places that turn wall time into text."""
    try:
        return time.strftime("%H:%M:%S", time.localtime(wall_ns / 1e9))
    except (OverflowError, ValueError, OSError):  # a snapshot from outside may say anything
        return "--:--:--"


def date_and_time(wall_ns: int) -> str:
    """Return a date and the minute where the reader is; of what lies outside the calendar, dashes."""
    try:
        found = time.localtime(wall_ns / 1e9)
    except (OverflowError, ValueError, OSError):
        return "----------------"
    return time.strftime("%Y-%m-%d %H:%M", found) if 1000 <= found.tm_year <= 9999 else "----------------"
