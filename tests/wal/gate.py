"""A gate in front of a serial device: no sync passes until a test lets it.

A serial device serves syncs in the order they asked. The gate takes its place in that queue, so what waits behind it
and how many have passed is known, without stalls or guesses about time.
"""

from __future__ import annotations

import threading
from types import TracebackType

from engine.native.kernel import inner
from engine.native.turns import pass_turn, take_turn
from engine.wal.log import Log
from tests.waiting import wait_for

DEVICE = "serial:1us"


@inner
def _take(device):
    take_turn(device, "queue", "queue_turns", "queue_next", "queue_served")


@inner
def _pass(device):
    pass_turn(device, "queue", "queue_turns", "queue_served")


class Gate:
    """Closed on entering, opened on leaving. The log must be on DEVICE, in a sync mode that syncs."""

    def __init__(self, log: Log) -> None:
        self._device = log.shared.device[0]

    def __enter__(self) -> Gate:
        _take(self._device)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _pass(self._device)

    def waiting(self) -> int:
        """Return how many syncs wait at the gate."""
        return int(self._device["queue_next"] - self._device["queue_served"]) - 1

    def await_waiting(self, count: int) -> None:
        """Wait until `count` syncs wait at the gate."""
        wait_for(lambda: self.waiting() == count, what=f"{count} syncs at the gate, now {self.waiting()}")

    def let_pass(self) -> None:
        """Let the syncs that wait now pass, and wait until they have; later ones find the gate closed."""
        queued = int(self._device["queue_next"])
        again = threading.Thread(target=_take, args=(self._device,), name="gate")
        again.start()
        wait_for(lambda: int(self._device["queue_next"]) > queued, what="the gate to stand behind them")
        _pass(self._device)
        again.join()
