"""The clock that Python code is handed, so that tests can hand it another."""

from __future__ import annotations

import threading
import time
from typing import Protocol

from engine.units import Nanoseconds


class Clock(Protocol):
    """Time as the engines see it."""

    def monotonic_ns(self) -> Nanoseconds:
        """Return ns on a clock that never steps; the clock of kernels too."""

    def wall_ns(self) -> Nanoseconds:
        """Return ns since 1970, for showing to people."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; return whether it is set."""


class SystemClock:
    """The operating system's clocks."""

    def monotonic_ns(self) -> Nanoseconds:
        """Return CLOCK_MONOTONIC."""
        return Nanoseconds(time.monotonic_ns())

    def wall_ns(self) -> Nanoseconds:
        """Return CLOCK_REALTIME."""
        return Nanoseconds(time.time_ns())

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait on the event itself."""
        return event.wait(seconds)
