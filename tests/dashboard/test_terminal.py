"""What the environment says of the terminal, and what the screen makes of it."""

from __future__ import annotations

import io

import pytest

from dashboard.frame_meter import FrameMeter
from dashboard.palette import theme_for, themes_for
from dashboard.terminal import Terminal, find_terminal, why_no_screen


@pytest.mark.parametrize(
    ("environ", "encoding", "terminal"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "UTF-8", Terminal("truecolor", plain=False)),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, "utf8", Terminal("truecolor", plain=False)),
        ({"TERM": "xterm-256color"}, "UTF-8", Terminal("256", plain=False)),
        ({"TERM": "xterm"}, "UTF-8", Terminal("16", plain=False)),
        ({"TERM": "screen"}, "UTF-8", Terminal("16", plain=False)),
        ({"TERM": "linux"}, "UTF-8", Terminal("16", plain=True)),
        ({"TERM": "xterm-256color"}, "ANSI_X3.4-1968", Terminal("256", plain=True)),
        ({"TERM": "xterm-256color"}, "ISO-8859-1", Terminal("256", plain=True)),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "UTF-8", Terminal("none", plain=False)),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "UTF-8", Terminal("none", plain=False)),
    ],
)
def test_the_environment_says_what_the_terminal_can_do(
    environ: dict[str, str], encoding: str, terminal: Terminal
) -> None:
    assert find_terminal(environ, encoding=encoding) == terminal


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_no_terminal_is_named(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    closed = Tty()
    closed.close()
    for other in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{other}", Tty())
    assert why_no_screen({"TERM": "xterm"}) is None

    for broken in (io.StringIO(), None):
        monkeypatch.setattr(f"sys.{stream}", broken)
        assert why_no_screen({"TERM": "xterm"}).startswith(f"the dashboard needs a terminal, and {stream} is none")


@pytest.mark.parametrize(("term", "shown"), [("dumb", "'dumb'"), ("", "''"), (None, "'not set'")])
def test_a_terminal_without_a_cursor_is_told(monkeypatch: pytest.MonkeyPatch, term: str | None, shown: str) -> None:
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)

    problem = why_no_screen({} if term is None else {"TERM": term})

    assert problem == f"the dashboard needs a terminal that can move its cursor, and TERM is {shown}"


@pytest.mark.parametrize(
    ("colour", "wanted", "theme"),
    [
        ("truecolor", None, "tide-dark"),
        ("truecolor", "tide-light", "tide-light"),
        ("256", "nonsense", "tide-dark"),
        ("16", None, "tide-16"),
        ("16", "tide-light", "tide-16"),
        ("none", "tide-light", "tide-dark"),
    ],
)
def test_the_first_theme_is_one_that_the_terminal_can_show(colour, wanted: str | None, theme: str) -> None:
    names = tuple(themes_for(colour))

    assert theme_for(colour, wanted, names) == theme
    assert theme in names


def test_the_meter_says_what_a_frame_takes_and_leaves_the_start_out() -> None:
    now, busy = 0, 0
    meter = FrameMeter(busy_ns=lambda: busy, now_ns=lambda: now)
    assert (meter.share, meter.frame_ms) == (None, None)

    for second in range(4):
        now = second * 1_000_000_000
        busy += 900_000_000 if second == 0 else 40_000_000  # imports, then four frames of 10 ms a second
        for _ in range(4):
            meter.count_frame()

    assert meter.share == pytest.approx(0.04)
    assert meter.frame_ms == pytest.approx(10.0)
