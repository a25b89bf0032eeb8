"""Room on the disk: what a case of `run wal` can need at most, and that a run never fills it.

bytes   = segments x segment size
records = threads x iterations, or the most a second can bring x time
kept    = all records where they are read back or the log is not the run's own; else those of a moment, since the log
          is checkpointed as it goes
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dashboard.cli.wal_flags import RECORD_HEADER, SEGMENT_HEADER
from engine.errors import FileTrouble, TidegaugeError, printable
from engine.storage.space import disk_room, kept_free
from engine.units import SECOND, Bytes, format_size, parse_duration

SPARE_SEGMENTS = 4  # the one in use, the prepared one, one kept for recycling, and one that is about to go
MOST_DURABLE_OPS_PER_SECOND = 150_000
MOST_OPS_PER_SECOND = 2_000_000
MOST_BYTES_PER_SECOND = 2_000_000_000
CHECKPOINT_SECONDS = 0.5  # a case checkpoints its log several times in this
_LOOK_NS = SECOND // 2


class DiskTooFull(TidegaugeError):
    """A run that could fill the disk; nothing was written."""

    def __init__(self, folder: Path, *, needed: int, free: int, kept: int) -> None:
        super().__init__(
            f"{printable(str(folder))}: the run can need {format_size(needed)}, {format_size(free)} are free and "
            f"{format_size(kept)} of them stay free; use a smaller run, or a larger disk with --path"
        )
        self.needed, self.free, self.kept = needed, free, kept


def bytes_needed(case: Mapping[str, Any]) -> Bytes:
    """Return the most that the log of one case can take, its settings named as WalCase names them."""
    frame = RECORD_HEADER + (case["value_size_bytes"] + 7) // 8 * 8
    waits = case["sync"] != "none" and case["sync_every"] == 1
    most = MOST_DURABLE_OPS_PER_SECOND if waits else MOST_OPS_PER_SECOND
    ceiling = float(case["rate"] or min(most, MOST_BYTES_PER_SECOND / frame))
    kind, _, latency = case["device"].partition(":")
    if kind != "real" and waits:  # closed loop: a handler is inside each durable commit for at least the latency
        ceiling = min(ceiling, case["threads"] * SECOND / parse_duration(latency))
    keeps_all = case["verify"] or case["keeps_all"]
    seconds = (case["duration_ns"] or 0) / SECOND
    measured = case["threads"] * case["iterations"] if case["iterations"] is not None else ceiling * seconds
    records = measured + ceiling * case["warmup_ns"] / SECOND
    if not keeps_all:
        records = min(records, ceiling * CHECKPOINT_SECONDS)
    per_segment = max((case["segment_size"] - SEGMENT_HEADER) // frame, 1)
    if case["roll"]:
        per_segment = min(per_segment, case["roll"])
    segments = math.ceil(records / per_segment)
    if not keeps_all:  # a roll of few records is as slow as writing the zeros of the next segment
        segments = min(segments, math.ceil(MOST_BYTES_PER_SECOND * CHECKPOINT_SECONDS / case["segment_size"]))
    return Bytes((segments + SPARE_SEGMENTS) * case["segment_size"])


def require_room(folder: Path, needed: int) -> None:
    """Raise DiskTooFull if `needed` bytes do not fit beside what must stay free."""
    total, free = disk_room(folder)
    if free - needed < kept_free(total):
        raise DiskTooFull(folder, needed=needed, free=free, kept=kept_free(total))


class RoomGuard:
    """Says when a run has to end before it fills the disk: other programs write, too, and estimates can be wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._looked_ns = 0

    def trouble(self) -> str | None:
        """Return why the run has to end, or None; looks at the disk at most twice a second."""
        now = time.monotonic_ns()
        if now - self._looked_ns < _LOOK_NS:
            return None
        self._looked_ns = now
        try:
            total, free = disk_room(self._folder)
        except FileTrouble as error:
            return str(error)
        if free >= kept_free(total):
            return None
        return (
            f"{printable(str(self._folder))}: stopped with {format_size(free)} free; "
            f"a run leaves {format_size(kept_free(total))} of this disk alone"
        )
