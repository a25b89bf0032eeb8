"""Ctrl+C, SIGTERM and SIGHUP while something runs: the first asks it to stop, the second ends the program.

All three mean the same here: what was measured so far is printed, temporary files are removed, and the exit code is
130. A terminal that is closed (SIGHUP) or a `kill` must not leave a log of gigabytes behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ASKED, _OVER = b"s", b"o"
_JOIN_SECONDS = 5.0


@contextlib.contextmanager
def stop_on_signals(told: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """Yield an event that is set after the first signal; the second raises KeyboardInterrupt. Handlers come back after.

    told: called once, after the first signal and before the event is set, in a thread of ours. A signal that was
    ignored when we started (nohup) stays ignored. Outside the main thread nothing is installed.

    A handler runs in the main thread between two of its bytecodes, perhaps inside `stop.wait` with the event's lock
    held: setting the event there would wait for that lock for ever. So the handler only writes a byte to a pipe.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    reading, writing = os.pipe2(os.O_CLOEXEC)
    asked = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        os.write(writing, _ASKED)

    def watch() -> None:
        if os.read(reading, 1) == _ASKED:
            told()
            stop.set()

    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    watcher.start()
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            if handler is not None:  # None: installed by code that is not Python's; we cannot put it back
                signal.signal(number, handler)
        os.write(writing, _OVER)
        watcher.join(_JOIN_SECONDS)
        os.close(writing)
        os.close(reading)


@contextlib.contextmanager
def raise_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the program as Ctrl+C does: by KeyboardInterrupt, so that everything is cleaned up.

    For the time in which nobody handles them: before the screen has opened, and after it has closed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in previous.items():
            if handler is not None:
                signal.signal(number, handler)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
