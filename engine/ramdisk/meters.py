"""What the store counts. Plain numbers that the store's guard protects; nothing decides by them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from engine.measure.buckets import LADDER_BUCKETS, LADDER_NS


class LadderMeter:
    """Counts of durations on the classic ladder, and their sum."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * LADDER_BUCKETS
        self.total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count one."""
        self.counts[bisect_left(LADDER_NS, duration_ns)] += 1
        self.total_ns += duration_ns


@dataclass(slots=True)
class Meters:
    """Totals since the store was opened; names as in the snapshot."""

    ram_blocks_written: int = 0
    ram_bytes_written: int = 0
    disk_blocks_written: int = 0
    disk_bytes_written: int = 0
    fallback_blocks: int = 0
    fallback_bytes: int = 0
    moved_blocks: int = 0  # begun in memory, finished on disk
    recycled_files: int = 0
    ram_reads: int = 0
    disk_reads: int = 0
    persisted_blocks: int = 0
    persisted_bytes: int = 0
    persist_busy_ns: int = 0
    persist_errors: int = 0
    evicted_blocks: int = 0
    evicted_bytes: int = 0
    evicted_without_read: int = 0
    deleted_before_persist_blocks: int = 0
    deleted_before_persist_bytes: int = 0
    deleted_files: int = 0
    corrupt_blocks: int = 0
    lost_blocks: int = 0
    write_stalls: int = 0
    write_stall_ns: int = 0
    ram_write: LadderMeter = field(default_factory=LadderMeter)
    disk_write: LadderMeter = field(default_factory=LadderMeter)
    persist_window: LadderMeter = field(default_factory=LadderMeter)
    eviction_window: LadderMeter = field(default_factory=LadderMeter)
