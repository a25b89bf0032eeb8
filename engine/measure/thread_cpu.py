"""Processor time of another thread of this process, to the nanosecond, while it runs.

Linux gives every thread a CPU clock whose number is made of the thread's own: the complement of its id, shifted by
three, and 6 for "of a thread, scheduler's time" (glibc's pthread_getcpuclockid does the same). Asked by id and not by
pthread handle, a thread that has ended is an error and not a crash.
"""

from __future__ import annotations

import time

from engine.units import Nanoseconds

_SCHEDULER_TIME_OF_A_THREAD = 6


def thread_cpu_ns(native_id: int) -> Nanoseconds | None:
    """Return the processor time of a thread by its operating system's id; None where it has ended."""
    try:
        return Nanoseconds(time.clock_gettime_ns(~native_id << 3 | _SCHEDULER_TIME_OF_A_THREAD))
    except OSError:
        return None
