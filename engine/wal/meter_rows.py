"""Which meter rows are free: a row has one writer at a time, and what it counted stays counted."""

from __future__ import annotations

import threading
import weakref

from engine.errors import TidegaugeError


class MeterRows:
    """Hands rows out to threads and takes them back."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._guard = threading.Lock()  # guards the free rows and the high water
        self._free: list[int] = []
        self._high_water = 0

    @property
    def high_water(self) -> int:
        """Return how many rows were ever in use at the same time: rows above hold nothing."""
        return self._high_water

    def take(self) -> int:
        """Return a free row. Raises TidegaugeError where all are taken."""
        with self._guard:
            if self._free:
                return self._free.pop()
            if self._high_water == self._limit:
                raise TidegaugeError(f"more than {self._limit} threads use one log at a time")
            self._high_water += 1
            return self._high_water - 1

    def give_back(self, row: int) -> None:
        """Take a row back."""
        with self._guard:
            self._free.append(row)

    def take_for_this_thread(self, local: threading.local) -> int:
        """Return a row that comes back by itself when the calling thread, and with it `local`'s content, is gone."""
        row = self.take()
        local.token = _Token()
        weakref.finalize(local.token, self.give_back, row).atexit = False
        return row


class _Token:
    """Lives in a thread's local storage and ends with it."""
