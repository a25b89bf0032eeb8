"""What the terminal can do, read from the environment as terminals and their users say it."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TextIO

Depth = Literal["none", "16", "256", "truecolor"]

LEAST_WIDTH, LEAST_HEIGHT = 60, 16


@dataclass(frozen=True, slots=True)
class Terminal:
    """One terminal. colour: what it shows; "none" where NO_COLOR asks for none."""

    colour: Depth
    plain: bool  # ASCII only


def find_terminal(environ: Mapping[str, str] | None = None, *, encoding: str | None = None) -> Terminal:
    """Read the environment; `encoding` is the locale's by default."""
    env = os.environ if environ is None else environ
    term = env.get("TERM", "").lower()
    if "NO_COLOR" in env:  # even if empty: Textual reads it so
        colour: Depth = "none"
    elif env.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        colour = "truecolor"
    elif "256color" in term or term.startswith(("xterm-kitty", "alacritty")):
        colour = "256"
    else:
        colour = "16"
    codec = (encoding or locale.getpreferredencoding(False)).lower().replace("-", "").replace("_", "")
    return Terminal(colour, plain=term in ("linux", "vt100", "vt220", "ansi") or codec != "utf8")


def why_no_screen(environ: Mapping[str, str] | None = None) -> str | None:
    """Return why no dashboard can be shown here, in one line, or None where one can."""
    env = os.environ if environ is None else environ
    # stderr too: that is where Textual draws, so that stdout could be redirected. We ask for all three.
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr)):
        if not _is_terminal(stream):
            return f"the dashboard needs a terminal, and {name} is none; tidegauge run wal and serve do without"
    if env.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return f"the dashboard needs a terminal that can move its cursor, and TERM is {env.get('TERM', 'not set')!r}"
    return None


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
