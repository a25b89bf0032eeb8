"""Progress: a line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest

from dashboard.cli.progress import Progress, bar_line, plain_line


@dataclass
class At:
    phase: str = "measure"
    fraction: float | None = 0.61
    ops_per_second: float = 81_300.0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_without_a_terminal_lines_are_plain_and_few() -> None:
    out, now = io.StringIO(), 0.0
    progress = Progress(out, now=lambda: now)

    progress.begin("[1/2] group, 5 handlers")
    for _ in range(100):
        progress.step(At())
        now += 0.1
    progress.step(At(phase="verify", fraction=None, ops_per_second=0))
    progress.clear()

    assert out.getvalue() == (
        "[1/2] group, 5 handlers: measure 61%, 81.3k ops/s\n" * 2 + "[1/2] group, 5 handlers: verify\n"
    )


def test_on_a_terminal_one_line_is_rewritten_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    out, now = Terminal(), 0.0
    progress = Progress(out, now=lambda: now)

    progress.begin("group")
    progress.step(At())
    progress.step(At(fraction=0.62))  # too soon
    now += 0.2
    progress.step(At(fraction=0.63))
    progress.note("a note")
    progress.clear()

    erase = "\r\x1b[2K"
    assert out.getvalue() == (
        f"{erase}{bar_line('group', At(), columns=100)}"
        f"{erase}{bar_line('group', At(fraction=0.63), columns=100)}"
        f"{erase}a note\n"
    )


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()

    progress = Progress(out)
    progress.begin("group")
    progress.step(At())

    assert "\x1b" not in out.getvalue()


def test_a_stderr_that_is_gone_does_not_stop_the_measurement() -> None:
    progress = Progress(Gone())

    progress.begin("group")
    progress.step(At())
    progress.note("still here")


@pytest.mark.parametrize("columns", [1, 10, 20, 40, 60, 80, 200])
def test_the_line_never_wraps(columns: int) -> None:
    assert len(bar_line("[2/9] handler-recheck, 50 handlers, serial:5ms", At(), columns=columns)) < max(columns, 2)


def test_the_bar_fills_with_the_fraction() -> None:
    assert bar_line("g", At(fraction=0.5), columns=90) == "g  measure      ##########----------   50%  81.3k ops/s"
    assert "#" * 20 in bar_line("g", At(fraction=1.7), columns=90)
    assert plain_line("g", At(fraction=None)) == "g: measure, 81.3k ops/s"
