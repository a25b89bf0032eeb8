"""A clock that tests move by hand."""

from __future__ import annotations

import threading

from engine.units import SECOND, Nanoseconds


class FakeClock:
    """A Clock whose time passes only when a test says so, or when somebody waits on it."""

    def __init__(self, monotonic: int = 1_000 * SECOND, wall: int = 1_700_000_000 * SECOND) -> None:
        self._monotonic, self._wall = monotonic, wall

    def advance(self, nanoseconds: int) -> None:
        """Let time pass."""
        self._monotonic += nanoseconds
        self._wall += nanoseconds

    def monotonic_ns(self) -> Nanoseconds:
        """Return the monotonic time."""
        return Nanoseconds(self._monotonic)

    def wall_ns(self) -> Nanoseconds:
        """Return the wall time."""
        return Nanoseconds(self._wall)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Pass the whole time at once unless the event is set."""
        if not event.is_set():
            self.advance(round(seconds * SECOND))
        return event.is_set()
