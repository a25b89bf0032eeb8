"""Events: what is worth a line to a person, numbered so that each is shown once."""

from __future__ import annotations

import threading
from collections import deque
from typing import Literal

from engine.measure.clock import Clock
from engine.snapshot import Event

_KEPT = 200

Severity = Literal["info", "warn", "error"]


class EventLog:
    """The newest events of a process; any thread may add."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()  # guards the two below
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._number = 0

    def add(self, severity: Severity, lane: str, text: str) -> None:
        """Add one line."""
        with self._guard:
            self._number += 1
            self._events.append(Event(self._number, self._clock.wall_ns(), severity, lane, text))

    def newest(self) -> tuple[Event, ...]:
        """Return what is kept, oldest first."""
        with self._guard:
            return tuple(self._events)
