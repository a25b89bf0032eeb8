"""The clock that Python code is handed is the operating system's."""

from __future__ import annotations

import threading
import time

from engine.measure.clock import SystemClock
from engine.units import SECOND


def test_the_system_clock_reads_the_clocks_of_python() -> None:
    clock = SystemClock()

    before = time.monotonic_ns(), time.time_ns()
    inside = clock.monotonic_ns(), clock.wall_ns()
    after = time.monotonic_ns(), time.time_ns()

    assert before[0] <= inside[0] <= after[0]
    assert before[1] <= inside[1] <= after[1]


def test_a_wait_ends_with_its_event_or_after_its_time() -> None:
    clock, event = SystemClock(), threading.Event()
    began = clock.monotonic_ns()

    assert clock.wait(event, 0.01) is False
    assert clock.monotonic_ns() - began >= 0.01 * SECOND

    event.set()
    assert clock.wait(event, 3600) is True
