"""A program in a terminal of its own: what it draws, as a person sees it, and the bytes it sent."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 60.0  # seconds; what hangs should fail, and a busy machine should not


class ProgramInTerminal:
    """Runs `python -m MODULE ARGUMENTS` on a pseudo-terminal; `close` ends it whatever state it is in."""

    def __init__(
        self, module: str, *arguments: str, size: tuple[int, int] = (100, 30), environ: Mapping[str, str] | None = None
    ) -> None:
        self.sent = b""
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._code: int | None = None
        inherited = {
            k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "TERM", "LC_ALL", "TMUX")
        }
        env = {**inherited, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), **(environ or {})}
        self.process, self.master = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.chdir(ROOT)
            os.execve(sys.executable, [sys.executable, "-m", module, *arguments], env)

    @property
    def text(self) -> str:
        """What the terminal shows."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait_for_text(self, text: str) -> None:
        """Read until the terminal shows `text`; fail with what it shows if it never does."""
        self.wait_until(lambda shown: text in shown, what=repr(text))

    def wait_until(self, condition: Callable[[str], bool], *, what: str) -> None:
        """Read until what the terminal shows meets a condition; fail with what it shows if it never does."""
        give_up = time.monotonic() + DEADLINE
        while not condition(self.text):
            assert time.monotonic() < give_up, f"waited for {what}; the terminal shows\n{self.text}"
            assert self._read(), f"the program ended before it showed {what}; the terminal shows\n{self.text}"

    def wait_for_end(self) -> int:
        """Read until the program ends; return its exit code, or minus the signal that ended it."""
        give_up = time.monotonic() + DEADLINE
        while self._code is None:
            assert time.monotonic() < give_up, f"still running; the terminal shows\n{self.text}"
            self._read()
            self._reap(os.WNOHANG)
        while self._read():
            pass
        return self._code

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    def kill(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.process, number)

    def resize(self, width: int, height: int) -> None:
        """Give the terminal another size; the program gets SIGWINCH."""
        self._screen.resize(height, width)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def is_restored(self) -> bool:
        """Tell whether lines are echoed and edited again, the cursor is back, and the other screen is gone."""
        local_modes = termios.tcgetattr(self.master)[3]
        edits = bool(local_modes & termios.ECHO) and bool(local_modes & termios.ICANON)
        for on, off in (
            (b"\x1b[?1049h", b"\x1b[?1049l"),
            (b"\x1b[?25l", b"\x1b[?25h"),
            (b"\x1b[?1004h", b"\x1b[?1004l"),
        ):
            if self.sent.rfind(on) > self.sent.rfind(off):
                return False
        return edits and not any(mouse in self.sent for mouse in (b"\x1b[?1000h", b"\x1b[?1003h", b"\x1b[?1006h"))

    def hang_up(self) -> None:
        """Close the terminal, as when its window or its connection goes: the kernel sends SIGHUP."""
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        """End the program if it still runs."""
        if self._code is None:
            os.kill(self.process, signal.SIGKILL)
            self._reap(0)
        if self.master >= 0:
            os.close(self.master)

    def _read(self) -> bool:
        """Take what the program has sent; return False once it can send no more."""
        if self.master < 0:
            return False
        if not select.select([self.master], [], [], 0.05)[0]:
            return self._code is None
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux's end of file of a terminal whose other side is closed
            return False
        self.sent += data
        self._stream.feed(data)
        return bool(data)

    def _reap(self, options: int) -> None:
        process, status = os.waitpid(self.process, options)
        if process:
            self._code = os.waitstatus_to_exitcode(status)
