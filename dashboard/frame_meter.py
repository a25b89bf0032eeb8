"""What the screen itself costs: processor time of its thread, as a share of a core and for each frame drawn.

The engine runs in the same process, so the process's processor time says nothing about the screen; the thread that
draws is ours alone, and its time is exact.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

WINDOW = 12  # readings kept, one a second


class FrameMeter:
    """Reads the drawing thread's clocks once a second. Use it from that thread only."""

    def __init__(
        self, busy_ns: Callable[[], int] = time.thread_time_ns, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """busy_ns: processor time of the calling thread; now_ns: a clock that never steps."""
        self._busy_ns, self._now_ns = busy_ns, now_ns
        self._frames = 0
        self._readings: deque[tuple[int, int, int]] = deque(maxlen=WINDOW)  # now, busy, frames

    def count_frame(self) -> None:
        """Count one frame, and read the clocks if a second has passed."""
        self._frames += 1
        now = self._now_ns()
        if not self._readings or now - self._readings[-1][0] >= 1_000_000_000:
            self._readings.append((now, self._busy_ns(), self._frames))

    @property
    def share(self) -> float | None:
        """Processor time over time, 1 being one core; None before there are two readings."""
        first, last = self._ends()
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else None

    @property
    def frame_ms(self) -> float | None:
        """Processor time a frame, in ms, everything that drawing it took included."""
        first, last = self._ends()
        return (last[1] - first[1]) / 1e6 / (last[2] - first[2]) if last[2] > first[2] else None

    def _ends(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        # The first reading has the start of the program in it: leave it out as soon as there are others.
        kept = list(self._readings)[1:] if len(self._readings) > 2 else list(self._readings)
        return (kept[0], kept[-1]) if kept else ((0, 0, 0), (0, 0, 0))
