"""Which way of copying suits this disk: each is timed on a few blocks, in turns.

Modes within a tenth of the fastest are equals; of equals the one that leaves other people's cached pages alone wins:
direct, then fadvise. The probe writes, syncs and removes its own files.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import NamedTuple

from engine.measure.clock import Clock
from engine.ramdisk.copying import COPY_MODES, Copier, CopyJob, Pace
from engine.ramdisk.replica_file import Footer, Kind
from engine.storage.file_calls import FileCalls, Place, aligned_buffer
from engine.units import MIB, SECOND

PROBE_BYTES = 32 * MIB
_ROUNDS = 3
_PREFERRED = ("direct", "fadvise", "sendfile", "buffered")
_EQUAL = 0.9


class CopyProbe(NamedTuple):
    """What was found. bytes_per_second: by mode, medians; a mode that the disk refuses is missing."""

    mode: str
    bytes_per_second: dict[str, float]


def probe_copy(ram: Path, disk: Path, clock: Clock, is_wanted: Callable[[], bool] = lambda: True) -> CopyProbe:
    """Time the modes between two folders. Raises OSError where not even a plain copy works."""
    calls, times = FileCalls(), {mode: list[float]() for mode in COPY_MODES}
    source_path, target_path = ram / ".probe", disk / ".probe"
    helper = ThreadPoolExecutor(1, thread_name_prefix="probe")
    source = -1
    try:
        calls.remove(source_path)
        source = calls.create(source_path, Place.RAM_CREATE)
        piece = aligned_buffer(8 * MIB)
        for at in range(0, PROBE_BYTES + 8 * MIB, len(piece)):
            calls.write(source, piece, at, Place.RAM_WRITE)
        copier = Copier(calls, Pace(clock), helper, rate=lambda: 0, stop=Event())
        for _ in range(_ROUNDS):
            for mode in [mode for mode in COPY_MODES if is_wanted()]:
                seconds = _time_one(calls, copier, source, target_path, mode, clock)
                if seconds is not None:
                    times[mode].append(seconds)
    finally:
        helper.shutdown()
        calls.close(source)
        calls.remove(source_path)
        calls.remove(target_path)
    rates = {mode: PROBE_BYTES / statistics.median(found) for mode, found in times.items() if found}
    return CopyProbe(choose(rates), rates)


def choose(rates: dict[str, float]) -> str:
    """Return the mode to use; buffered where nothing was measured."""
    fastest = max(rates.values(), default=0.0)
    return next((mode for mode in _PREFERRED if rates.get(mode, -1.0) >= fastest * _EQUAL), "buffered")


def _time_one(calls: FileCalls, copier: Copier, source: int, target: Path, mode: str, clock: Clock) -> float | None:
    calls.remove(target)
    footer = Footer(Kind.NONE, bytes(16), 0, 0, PROBE_BYTES, 0, 0, 0, 0)
    descriptor = calls.create(target, Place.COPY_CREATE)
    try:
        began = clock.monotonic_ns()
        copier.copy(CopyJob(source, descriptor, footer, None), mode, lambda: True)
        calls.sync(descriptor)
        return (clock.monotonic_ns() - began) / SECOND
    except OSError:
        if mode == "buffered":
            raise
        return None
    finally:
        calls.close(descriptor)
