"""What was asked for and is not seen yet, so that a key pressed twice goes two steps.

A control returns at once and its outcome comes with a later snapshot. Until then, or until some seconds are over, the
next press goes on from what was asked for and not from what is shown.
"""

from __future__ import annotations

from engine.measure.clock import Clock

PENDING_SECONDS = 3.0
_SECOND_NS = 1_000_000_000


class Pending:
    """Choices by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked: dict[str, tuple[str, int]] = {}  # the choice, and until when it counts

    def ask(self, what: str, wanted: str) -> None:
        """Note that `wanted` was asked for."""
        self._asked[what] = (wanted, self._clock.monotonic_ns() + round(PENDING_SECONDS * _SECOND_NS))

    def get(self, what: str) -> str:
        """Return what was asked for lately, or ""."""
        wanted, until = self._asked.get(what, ("", 0))
        return wanted if self._clock.monotonic_ns() < until else ""
