"""The dashboard in a real terminal: it gives the terminal back however it ends, and says so where there is none."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.pty.terminal import ROOT, ProgramInTerminal

PROGRAM = "tests.fakes.fake_dashboard"
COLOURS = re.compile(rb"\x1b\[[0-9;]*?(?:[34]8;[25]|\b(?:3[0-7]|4[0-7]|9[0-7]|10[0-7])\b)[0-9;]*m")

Open = Callable[..., ProgramInTerminal]


@pytest.fixture
def dashboard() -> Iterator[Open]:
    opened: list[ProgramInTerminal] = []

    def start(*arguments: str, **settings) -> ProgramInTerminal:
        opened.append(ProgramInTerminal(PROGRAM, *arguments, **settings))
        return opened[-1]

    yield start
    for program in opened:
        program.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("when", ["running", "compiling", "in a dialog"])
def test_a_signal_gives_the_terminal_back(dashboard: Open, number: signal.Signals, when: str) -> None:
    program = dashboard(*(["--compile", "600"] if when == "compiling" else []))
    program.wait_for_text("compiling kernels, once" if when == "compiling" else "sync-bound")
    if when == "in a dialog":
        program.type("?")
        program.wait_for_text("keys")
    assert not program.is_restored()

    program.kill(number)

    assert program.wait_for_end() == 130
    assert program.is_restored()
    assert b"Traceback" not in program.sent


@pytest.mark.parametrize("key", ["q", "\x03", "\x11"], ids=["q", "ctrl+c", "ctrl+q"])
def test_a_key_gives_the_terminal_back(dashboard: Open, key: str) -> None:
    program = dashboard()
    program.wait_for_text("sync-bound")

    program.type(key)

    assert program.wait_for_end() == 0
    assert program.is_restored()


def test_a_terminal_that_goes_away_ends_the_program(dashboard: Open) -> None:
    program = dashboard()
    program.wait_for_text("sync-bound")

    program.hang_up()

    assert program.wait_for_end() == 130


def test_an_engine_that_cannot_be_made_is_one_line_after_the_terminal_is_restored(dashboard: Open) -> None:
    program = dashboard("--fail", "/data: cannot write: Read-only file system")

    assert program.wait_for_end() == 1
    assert program.is_restored()
    assert program.sent.rstrip().endswith(b"tidegauge: /data: cannot write: Read-only file system")
    assert b"Traceback" not in program.sent


def test_a_mistake_of_ours_gives_the_terminal_back_too(dashboard: Open) -> None:
    program = dashboard("--broken")

    assert program.wait_for_end() == 3
    assert program.is_restored()
    assert b"raised AttributeError" in program.sent
    assert b"Traceback" not in program.sent


def test_a_terminal_that_is_too_small_says_so_and_grows(dashboard: Open) -> None:
    program = dashboard(size=(50, 12))
    program.wait_for_text("needed 60 x 16")
    program.wait_for_text("found  50 x 12")

    program.resize(100, 30)
    program.wait_for_text("where a commit's time goes")

    program.resize(59, 30)
    program.wait_for_text("found  59 x 30")
    program.type("q")
    assert program.wait_for_end() == 0


def test_a_storm_of_resizes_ends_in_a_whole_screen(dashboard: Open) -> None:
    program = dashboard()
    program.wait_for_text("sync-bound")

    for width in range(60, 140):
        program.resize(width, 16 + width // 5)
    program.resize(160, 45)

    def is_whole(text: str) -> bool:
        lines = text.splitlines()
        header = lines[0].startswith(" ≋ tidegauge  1 Overview") and lines[0].endswith("local · tidehost")
        return header and len(lines) == 45 and "q quit" in lines[-1] and "durable txid" in text

    program.wait_until(is_whole, what="a whole screen of 160x45")


@pytest.mark.parametrize(
    ("environ", "shows"),
    [
        ({"NO_COLOR": "1", "COLORTERM": "truecolor"}, "no colour"),
        ({"TERM": "xterm"}, "the terminal's own"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"COLORTERM": "truecolor"}, "truecolor"),
    ],
    ids=["NO_COLOR", "16", "256", "truecolor"],
)
def test_colours_are_those_that_the_terminal_can_show(dashboard: Open, environ: dict[str, str], shows: str) -> None:
    program = dashboard(environ=environ)
    program.wait_for_text("sync-bound")
    program.type("q")
    program.wait_for_end()

    colours = set(COLOURS.findall(program.sent))
    if shows == "no colour":
        assert colours == set()
        assert re.search(rb"\x1b\[1[;m]", program.sent), "what stands out is bold"
    elif shows == "the terminal's own":
        assert colours
        assert not any(b"8;2" in colour or b"8;5" in colour for colour in colours)
    elif shows == "256":
        assert any(b"8;5" in colour for colour in colours)
        assert not any(b"8;2" in colour for colour in colours)
    else:
        assert any(b"8;2" in colour for colour in colours)


@pytest.mark.parametrize(
    "environ", [{"TERM": "linux"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}], ids=["linux", "C"]
)
def test_where_there_is_no_braille_the_screen_is_ascii(dashboard: Open, environ: dict[str, str]) -> None:
    program = dashboard(environ=environ)
    program.wait_for_text("sync-bound")

    program.wait_for_text("##")
    assert program.text.isascii()


@pytest.mark.parametrize("closed", [0, 1, 2], ids=["stdin", "stdout", "stderr"])
@pytest.mark.parametrize("how", ["not a terminal", "closed"])
def test_without_a_terminal_there_is_one_line_and_code_2(closed: int, how: str) -> None:
    redirect = f"{closed}{'<' if closed == 0 else '>'}{'&-' if how == 'closed' else '/dev/null'}"
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            ["sh", "-c", f'exec "$0" -m {PROGRAM} {redirect}', sys.executable],
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm"},
            stdin=slave,
            stdout=subprocess.PIPE if closed else slave,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(master)
        os.close(slave)

    assert done.returncode == 2
    if closed != 2:
        assert done.stderr.startswith(b"tidegauge: the dashboard needs a terminal, and std")
        assert done.stderr.count(b"\n") == 1
