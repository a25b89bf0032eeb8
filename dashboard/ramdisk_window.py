"""What the RAM disk did between two instants: rates, waits and how long its backlog will last, from differences.

    write ---> memory: at risk ---> lazy writer ---> disk
               backlog grows by     persisted bytes/s
               what is written      and by that it shrinks

A window is two snapshots of one run (same source, same start, same epoch, nothing gone backwards) and the time between;
`before` is None where the epoch began inside it, since totals were zero then.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.wal_window import NOTHING_COUNTED, NOTHING_YET
from engine.measure.buckets import LADDER_NS
from engine.snapshot import Absent, Histogram, RamdiskSnapshot

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Waits:
    """Durations in ns, read from counts of the SECONDS ladder: within a bucket by interpolation."""

    p50: float
    p99: float
    mean: float
    count: int


@dataclass(frozen=True, slots=True)
class RamdiskWindow:
    """The RAM disk over a window; `last` is its state at the window's end. seconds: 0 where one snapshot is all."""

    last: RamdiskSnapshot
    before: RamdiskSnapshot | None
    seconds: float

    def grown(self, *totals: str) -> int:
        """Return by how much totals grew together."""
        return sum(max(getattr(self.last, name) - self._earlier(name), 0) for name in totals)

    def rate(self, *totals: str) -> float | Absent:
        """Return that by the second."""
        return self.grown(*totals) / self.seconds if self.seconds > 0 else NOTHING_YET

    @property
    def written_per_second(self) -> float | Absent:
        """Return bytes that writers finished, wherever they went."""
        return self.rate("ram_bytes_written", "disk_bytes_written")

    @property
    def persisted_per_second(self) -> float | Absent:
        """Return bytes that the lazy writer made durable."""
        return self.rate("persisted_bytes")

    @property
    def lazy_bandwidth(self) -> float | Absent:
        """Return the bytes a second of the lazy writer while it copies and syncs; its pauses for a limit count."""
        busy = self.grown("persist_busy_ns")
        persisted = self.grown("persisted_bytes")
        return persisted * SECOND_NS / busy if busy > 0 and persisted > 0 else NOTHING_COUNTED

    @property
    def backlog_growth(self) -> float | Absent:
        """Return the bytes a second by which the backlog grows; negative while it drains."""
        if self.seconds <= 0:
            return NOTHING_YET
        return (self.last.backlog_bytes - self._earlier("backlog_bytes")) / self.seconds

    @property
    def drain_seconds(self) -> float | Absent:
        """Return how long the lazy writer takes for the backlog of now, if nothing more comes."""
        if self.last.backlog_bytes <= 0:
            return 0.0
        bandwidth = self.lazy_bandwidth
        return bandwidth if isinstance(bandwidth, Absent) else self.last.backlog_bytes / bandwidth

    @property
    def room_bytes(self) -> int:
        """Return what the backlog can still grow by: memory that persisted copies hold can be evicted for it."""
        return max(self.last.capacity_bytes - self.last.reserved_bytes - self.last.backlog_bytes, 0)

    def waits(self, name: str) -> Waits | Absent:
        """Return what a histogram of the snapshot counted in this window."""
        before = None if self.before is None else getattr(self.before, name)
        return waits_between(before, getattr(self.last, name))

    def _earlier(self, name: str) -> int:
        return 0 if self.before is None else int(getattr(self.before, name))


def waits_between(before: Histogram | None, now: Histogram) -> Waits | Absent:
    """Return the durations counted between two snapshots of a histogram, from zero where `before` is None."""
    if len(now.counts) != len(LADDER_NS) + 1 or (before is not None and len(before.counts) != len(now.counts)):
        return Absent("the source has other buckets")
    earlier = before.counts if before is not None else (0,) * len(now.counts)
    counts = [max(a - b, 0) for a, b in zip(now.counts, earlier, strict=True)]
    count = sum(counts)
    if count == 0:
        return NOTHING_COUNTED
    total = max(now.total - (before.total if before is not None else 0), 0)
    return Waits(ladder_quantile(counts, 0.5), ladder_quantile(counts, 0.99), total / count, count)


def ladder_quantile(counts: list[int], quantile: float) -> float:
    """Return a quantile of ladder counts in ns; of what lies above the ladder, its end. counts: not all zero."""
    wanted, below = sum(counts) * quantile, 0
    for index, count in enumerate(counts):
        if count and below + count >= wanted:
            if index == len(LADDER_NS):
                break
            low = LADDER_NS[index - 1] if index else 0
            return low + (LADDER_NS[index] - low) * (wanted - below) / count
        below += count
    return float(LADDER_NS[-1])
