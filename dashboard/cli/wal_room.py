"""Room on the disk: what a case of `run wal` can need at most, and that a run never fills it.

bytes = frame x records + segments kept ready         frame: header + payload, to the next 8
records = threads x iterations                        where --iterations is given
        = rate x time                                 open loop
        = the most a fast disk takes, or a simulated latency lets through, x time
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from engine.errors import FileTrouble, TidegaugeError, printable
from engine.units import GIB, SECOND, Bytes, format_size, parse_duration

RECORD_HEADER = 24  # docs/reference/wal-format.md
SPARE_SEGMENTS = 3  # the one in use, the prepared one, and the rounding up
MOST_OPS_PER_SECOND = 150_000
MOST_BYTES_PER_SECOND = 2_000_000_000
_LOOK_NS = SECOND


class DiskTooFull(TidegaugeError):
    """A run that could fill the disk; nothing was written."""

    def __init__(self, folder: Path, *, needed: int, free: int, kept: int) -> None:
        super().__init__(
            f"{printable(str(folder))}: the run can need {format_size(needed)}, {format_size(free)} are free and "
            f"{format_size(kept)} of them stay free; use a smaller run (--duration, --iterations, --value-size, "
            "--segment-size) or --path on a larger disk"
        )
        self.needed, self.free, self.kept = needed, free, kept


class DiskFillingUp(TidegaugeError):
    """A run was stopped before it could fill the disk."""

    def __init__(self, folder: Path, *, free: int, kept: int) -> None:
        super().__init__(
            f"{printable(str(folder))}: stopped with {format_size(free)} free; "
            f"a run leaves {format_size(kept)} of this disk alone"
        )
        self.free, self.kept = free, kept


def bytes_needed(
    *,
    threads: int,
    device: str,
    value_size: int,
    sync_every: int,
    rate: int | None,
    iterations: int | None,
    duration_ns: int | None,
    warmup_ns: int,
    segment_size: int,
) -> Bytes:
    """Return the most that one case's log can hold."""
    frame = RECORD_HEADER + (value_size + 7) // 8 * 8
    ceiling = float(rate or min(MOST_OPS_PER_SECOND, MOST_BYTES_PER_SECOND / frame))
    kind, _, latency = device.partition(":")
    if kind != "real":  # closed loop: a handler is inside each durable commit for at least the latency
        ceiling = min(ceiling, threads * sync_every * SECOND / parse_duration(latency))
    records = ceiling * warmup_ns / SECOND
    records += threads * iterations if iterations is not None else ceiling * (duration_ns or 0) / SECOND
    return Bytes(round(records * frame) + SPARE_SEGMENTS * segment_size)


def kept_free(total: int) -> Bytes:
    """Return what a run leaves free of a disk of `total` bytes: 5 % or 1 GiB, whichever is less."""
    return Bytes(min(total // 20, GIB))


def require_room(folder: Path, needed: int) -> None:
    """Raise DiskTooFull if `needed` bytes do not fit beside what must stay free."""
    total, free = disk_room(folder)
    if free - needed < kept_free(total):
        raise DiskTooFull(folder, needed=needed, free=free, kept=kept_free(total))


def disk_room(folder: Path) -> tuple[int, int]:
    """Return (total, free to us) bytes of the file system that holds `folder`."""
    try:
        numbers = os.statvfs(folder)
    except OSError as error:
        raise FileTrouble(folder, "see how much room there is", error) from error
    return numbers.f_blocks * numbers.f_frsize, numbers.f_bavail * numbers.f_frsize


class RoomGuard:
    """Stops a run before it fills the disk: other programs write, too, and estimates can be wrong."""

    def __init__(self, folder: Path, stop: threading.Event) -> None:
        self._folder, self._stop = folder, stop
        self._looked_ns = 0
        self.refusal: DiskFillingUp | None = None

    def look(self) -> None:
        """Compare free space with what must stay free, at most once a second."""
        now = time.monotonic_ns()
        if self.refusal is not None or now - self._looked_ns < _LOOK_NS:
            return
        self._looked_ns = now
        total, free = disk_room(self._folder)
        if free < kept_free(total):
            self.refusal = DiskFillingUp(self._folder, free=free, kept=kept_free(total))
            self._stop.set()
