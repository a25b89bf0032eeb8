"""A clock that tests move by hand."""

from __future__ import annotations

import threading

from engine.units import SECOND, Nanoseconds


class FakeClock:
    """Time stands still until `advance`; whoever waits, waits for that or for its event."""

    def __init__(self, *, monotonic_ns: int = 1_000 * SECOND, wall_ns: int = 1_760_000_000 * SECOND) -> None:
        self._moved = threading.Condition()  # guards both times
        self._monotonic_ns, self._wall_ns = monotonic_ns, wall_ns
        self.waiters = 0

    def monotonic_ns(self) -> Nanoseconds:
        with self._moved:
            return Nanoseconds(self._monotonic_ns)

    def wall_ns(self) -> Nanoseconds:
        with self._moved:
            return Nanoseconds(self._wall_ns)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or the clock was advanced by `seconds`."""
        with self._moved:
            until = self._monotonic_ns + round(seconds * SECOND)
            self.waiters += 1
            while self._monotonic_ns < until and not event.is_set():
                self._moved.wait(0.01)  # an Event cannot wake a condition: look at it now and then
            self.waiters -= 1
        return event.is_set()

    def advance(self, seconds: float) -> None:
        with self._moved:
            passed = round(seconds * SECOND)
            self._monotonic_ns += passed
            self._wall_ns += passed
            self._moved.notify_all()
