"""Ctrl+C, SIGTERM and SIGHUP while something runs: the first asks it to stop, the second ends the program.

All three mean the same here: what was measured so far is printed, temporary files are removed, and the exit code is
130. A terminal that is closed (SIGHUP) or a `kill` must not leave a log of gigabytes behind.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stop_on_signals(told: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """Yield an event that the first signal sets; the second raises KeyboardInterrupt. Old handlers come back after.

    told: called at the first signal, in the main thread, between two of its bytecodes: it may write a line, no more.
    A signal that was ignored when we started (nohup) stays ignored. Outside the main thread nothing is installed.
    """
    stop = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        told()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
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
