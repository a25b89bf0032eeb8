"""Programs with 50 handlers in a process of their own, watched from outside through their exporter."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.bare_engine import HANDLERS
from tests.bench.rounds import Skipped

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, LINES = 160, 45
_START_SECONDS, _END_SECONDS = 60.0, 20.0
_LOOK_SECONDS = 0.05
_LAST_WORDS = 400


@dataclass(frozen=True, slots=True)
class Program:
    """A running program: its process and where it answers. terminal: our end of its pseudo-terminal, or -1."""

    process: subprocess.Popen[bytes]
    port: int
    terminal: int = -1

    def snapshot(self) -> dict[str, Any]:
        """Return its snapshot of this instant."""
        snapshot: dict[str, Any] = json.loads(self.get("snapshot"))
        return snapshot

    def get(self, path: str) -> bytes:
        """Return what it answers to a request. Raises OSError."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=10) as answer:
            body: bytes = answer.read()
            return body


@contextmanager
def engine_alone(folder: Path, *extra: str) -> Iterator[Program]:
    """Yield a running tests.bench.bare_engine."""
    port = _free_port()
    command = [sys.executable, "-m", "tests.bench.bare_engine", str(folder), str(port), *extra]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        program = Program(process, port)
        _await_commits(program, lambda: process.stderr.read() if process.stderr else b"")
        yield program
    finally:
        end_process(process)


@contextmanager
def dashboard(folder: Path, *extra: str) -> Iterator[Program]:
    """Yield the running dashboard, on a pseudo-terminal that is read as fast as it draws. Raises Skipped."""
    port = _free_port()
    flags = ["--threads", str(HANDLERS), "--path", str(folder), "--port", str(port), *extra]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    drawn = bytearray()
    process = subprocess.Popen(
        [sys.executable, "-m", "dashboard", *flags],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
    )
    os.close(theirs)
    reader = threading.Thread(target=_read_all, args=(ours, drawn), name="terminal", daemon=True)
    reader.start()
    try:
        program = Program(process, port, ours)
        _await_commits(program, lambda: bytes(drawn))
        yield program
    finally:
        end_process(process)
        reader.join(_END_SECONDS)
        os.close(ours)


def _await_commits(program: Program, last_words: Any) -> None:
    """Wait until the program's handlers commit. Raises Skipped where it ended, RuntimeError where it does not begin."""
    deadline, idle = time.monotonic() + _START_SECONDS, threading.Event()
    while time.monotonic() < deadline:
        if program.process.poll() is not None:
            said = last_words()[-_LAST_WORDS:].decode(errors="replace")
            raise Skipped(f"{program.process.args[2]} ended with {program.process.returncode}: {said!r}")
        try:
            wal = program.snapshot()["wal"]
            if wal.get("state") == "running" and wal.get("commits", 0) > 0:
                return
        except (OSError, ValueError, KeyError):
            pass  # not listening yet
        idle.wait(_LOOK_SECONDS)
    raise RuntimeError(f"{program.process.args[2]}: no commit within {_START_SECONDS:.0f} s")


def _read_all(descriptor: int, into: bytearray) -> None:
    try:
        while data := os.read(descriptor, 65536):
            into += data
            del into[: -(1 << 16)]
    except OSError:  # the other end is closed
        return


def end_process(process: subprocess.Popen[Any], *, seconds: float = _END_SECONDS) -> None:
    """End a program: by the end of its input where it has one; kill it where that does not do it in time."""
    if process.stdin is not None:
        process.stdin.close()
    else:
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
