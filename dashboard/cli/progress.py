"""Progress on stderr: one line that is rewritten on a terminal, plain lines elsewhere.

terminal   [2/9] pipeline:1, 50 handlers  measure  ######----  61 %  81.3k ops/s
elsewhere  [2/9] pipeline:1, 50 handlers: measure 61 %, 81.3k ops/s            (at most every few seconds)
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from engine.units import format_count

_REDRAW_SECONDS = 0.1
_PLAIN_SECONDS = 5.0
_BAR = 20
_ERASE_LINE = "\r\x1b[2K"


class Step(Protocol):
    """What a workload reports while it works on one case."""

    @property
    def phase(self) -> str:
        """Name what it does now: preallocate, warm-up, measure, verify."""

    @property
    def fraction(self) -> float | None:
        """Say how much of the phase is done, 0 to 1; None where that is not known."""

    @property
    def ops_per_second(self) -> float:
        """Return the present rate; 0 where there is none."""


class Progress:
    """Shows the steps of a run, a case at a time. Used from one thread.

    stream: where it goes; a terminal that understands it gets the rewritten line. now: seconds, monotonic.
    """

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self._now = now
        self._on_terminal = is_terminal(self._stream)
        self._title, self._phase = "", ""
        self._shown_at = float("-inf")
        self._line_open = False

    def begin(self, title: str) -> None:
        """Start a case; its title leads the line from now on."""
        self._title, self._phase = title, ""
        self._shown_at = float("-inf")

    def step(self, step: Step) -> None:
        """Show where the case is, unless the last showing is too recent."""
        now = self._now()
        pause = _REDRAW_SECONDS if self._on_terminal else _PLAIN_SECONDS
        if step.phase == self._phase and now - self._shown_at < pause:
            return
        self._phase, self._shown_at = step.phase, now
        if self._on_terminal:
            self._write(_ERASE_LINE + bar_line(self._title, step, columns=_columns(self._stream)))
            self._line_open = True
        else:
            self._write(plain_line(self._title, step) + "\n")

    def note(self, text: str) -> None:
        """Print a line of its own, above the progress line where there is one."""
        self.clear()
        self._write(text + "\n")

    def clear(self) -> None:
        """Take the rewritten line away, so that what follows starts on a clean one."""
        if self._line_open:
            self._write(_ERASE_LINE)
            self._line_open = False

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # stderr has gone; the measurement goes on
            self._stream = None


def bar_line(title: str, step: Step, *, columns: int) -> str:
    """Return the line for a terminal of that many columns: it loses its bar, then its title, never wraps."""
    rate = f"  {format_count(step.ops_per_second)} ops/s" if step.ops_per_second > 0 else ""
    if step.fraction is None:
        bar, percent = "", ""
    else:
        fraction = min(max(step.fraction, 0.0), 1.0)
        filled = round(fraction * _BAR)
        bar, percent = "  " + "#" * filled + "-" * (_BAR - filled), f"  {fraction:4.0%}"
    phase = f"{step.phase:<11}"
    for line in (
        f"{title}  {phase}{bar}{percent}{rate}",
        f"{title}  {step.phase}{percent}{rate}",
        f"{step.phase}{percent}{rate}",
    ):
        if len(line) < columns:
            return line
    return line[: max(columns - 1, 0)]


def plain_line(title: str, step: Step) -> str:
    """Return the line for a file or a pipe."""
    percent = "" if step.fraction is None else f" {min(max(step.fraction, 0.0), 1.0):.0%}"
    rate = f", {format_count(step.ops_per_second)} ops/s" if step.ops_per_second > 0 else ""
    return f"{title}: {step.phase}{percent}{rate}"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal that can rewrite a line."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # closed
        return False


def _columns(stream: TextIO | None) -> int:
    if stream is None:
        return 80
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size((80, 24)).columns
