"""A RAM disk that moves no bytes and reports plausibly: real snapshots, the real controls, from a seed and a clock.

Blocks are written at the stream's rate and persisted one after another at the disk's, or at the limit that simulates a
slower one; persisted ones stay in memory until room is needed. So totals agree with one another as the store's do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec
import numpy as np

from engine.measure.buckets import LADDER_BUCKETS, LADDER_NS
from engine.snapshot import Histogram, RamdiskSnapshot, ReplicaRow
from engine.units import MIB, SECOND, Bytes, Nanoseconds

BLOCK = 8 * MIB
CAPACITY = 1024 * MIB
DISK_RATE = 640 * MIB
FILE_BLOCKS = 8

Say = Callable[[str, str], None]


class FakeRamdisk:
    """Looks like engine.workloads.ramdisk_lane.RamdiskLane from outside; `advance` moves it to an instant."""

    def __init__(self, say: Say, now_ns: int, *, seed: int = 1) -> None:
        self.calls: list[tuple[object, ...]] = []
        self._say, self._random = say, np.random.RandomState(seed)
        self._now = self._epoch_started = now_ns
        self._epoch, self._number, self._lost_files = 1, 0, 0
        self._state, self._rate, self._limit = "streaming", 100 * MIB, 0
        self._checksum, self._copy = "on", "direct"
        self._begin()

    def _begin(self) -> None:
        self._totals: dict[str, int] = dict.fromkeys(_COUNTERS, 0)
        self._waits = {name: [np.zeros(LADDER_BUCKETS, np.int64), 0] for name in _HISTOGRAMS}
        self._at_risk: deque[tuple[int, int, int]] = deque()  # number, finalised at, in memory
        self._kept: deque[tuple[int, int, int]] = deque()  # number, persisted at, reads
        self._due = self._copied = 0.0
        self._filling = 0

    # Controls.

    def start(self) -> None:
        self._asked("start")
        self._state = "streaming"

    def stop(self) -> None:
        self._asked("stop")
        self._state = "idle"

    def set_rate(self, rate: int) -> None:
        self._asked("rate", rate)
        self._rate = rate

    def set_checksum(self, checksum: str) -> None:
        self._asked("checksum", checksum)
        self._checksum = checksum

    def set_copy_mode(self, mode: str) -> None:
        self._asked("copy", mode)
        self._copy = mode

    def set_persist_rate(self, rate: int) -> None:
        self._asked("limit", rate)
        self._limit = rate
        words = f"persist limited to {rate // MIB} MiB/s (simulated slow disk)" if rate else "persist no longer limited"
        self._say("warn", words)

    def fill(self) -> None:
        self._asked("fill")
        self._state, self._filling = "streaming", 2 * CAPACITY

    def wipe(self) -> None:
        self._asked("wipe")
        lost = {number // FILE_BLOCKS for number, _, _ in self._at_risk}
        self._epoch, self._epoch_started, self._lost_files = self._epoch + 1, self._now, len(lost)
        self._say("warn", "simulated reboot: memory wiped")
        self._say("error", f"store open: {len(lost)} files are lost")
        self._begin()

    def _asked(self, *call: object) -> None:
        self.calls.append(call)

    # Time.

    def advance(self, now: int) -> None:
        """Write and persist until `now`."""
        step = SECOND // 20
        while self._now < now:
            passed = min(step, now - self._now)
            self._now += passed
            self._write(passed)
            self._persist(passed)

    def _write(self, passed: int) -> None:
        if self._state != "streaming":
            return
        rate = 2_000 * MIB if self._filling > 0 or self._rate == 0 else self._rate
        self._due += rate * passed / SECOND
        while self._due >= BLOCK:
            self._due -= BLOCK
            self._filling -= BLOCK
            self._finalise()

    def _finalise(self) -> None:
        totals = self._totals
        while self._memory_free() < CAPACITY // 10 and self._kept:
            _, since, reads = self._kept.popleft()
            totals["evicted_blocks"] += 1
            totals["evicted_bytes"] += BLOCK
            totals["evicted_without_read"] += reads == 0
            self._wait("eviction_window", self._now - since)
        fits = self._memory_free() >= BLOCK
        kind = "ram" if fits else "disk"
        totals[f"{kind}_blocks_written"] += 1
        totals[f"{kind}_bytes_written"] += BLOCK
        self._wait(f"{kind}_write", (4.5e6 if fits else 9e6) * self._random.lognormal(0, 0.25))
        if not fits:
            self._filling = 0
            totals["fallback_blocks"] += 1
            totals["fallback_bytes"] += BLOCK
            totals["write_stalls"] += 1
        self._at_risk.append((self._number, self._now, int(fits)))
        self._number += 1

    def _persist(self, passed: int) -> None:
        rate = (self._limit or DISK_RATE) * self._random.lognormal(0, 0.05)
        totals = self._totals
        if not self._at_risk:
            self._copied = 0.0
            return
        totals["persist_busy_ns"] += passed
        self._copied += rate * passed / SECOND
        while self._at_risk and self._copied >= BLOCK:
            self._copied -= BLOCK
            number, since, in_memory = self._at_risk.popleft()
            totals["persisted_blocks"] += 1
            totals["persisted_bytes"] += BLOCK
            self._wait("persist_window", self._now - since + 9_000_000)
            if in_memory:
                self._kept.append((number, self._now, int(self._random.randint(0, 3) == 0)))

    def _memory_free(self) -> int:
        return CAPACITY - BLOCK - BLOCK * (len(self._kept) + sum(entry[2] for entry in self._at_risk))

    def _wait(self, name: str, nanoseconds: float) -> None:
        counts, total = self._waits[name]
        counts[int(np.searchsorted(LADDER_NS, nanoseconds))] += 1
        self._waits[name][1] = total + int(nanoseconds)

    # What others see.

    def sample(self) -> RamdiskSnapshot:
        """Return the totals of now."""
        in_memory = sum(entry[2] for entry in self._at_risk)
        fields: dict[str, object] = {
            field.name: Histogram((0,) * LADDER_BUCKETS, 0) if field.type is Histogram else 0
            for field in msgspec.structs.fields(RamdiskSnapshot)
        }
        fields |= self._totals
        fields |= {name: Histogram(tuple(counts.tolist()), total) for name, (counts, total) in self._waits.items()}
        fields |= {
            "epoch": self._epoch,
            "epoch_started_ns": Nanoseconds(self._epoch_started),
            "state": self._state,
            "ram_dir": "/dev/shm",
            "ram_label": "tmpfs",
            "disk": "/var/lib/tidegauge/blocks",
            "policy": "lazy",
            "checksum": self._checksum,
            "copy_mode": self._copy,
            "chunk_bytes": Bytes(64 << 10),
            "block_size_bytes": Bytes(BLOCK),
            "persist_rate_bytes": Bytes(self._limit),
            "stream_rate_bytes": Bytes(self._rate),
            "capacity_bytes": Bytes(CAPACITY),
            "used_bytes": Bytes(BLOCK * (len(self._kept) + in_memory)),
            "reserved_bytes": Bytes(BLOCK if self._state == "streaming" else 0),
            "backlog_blocks": len(self._at_risk),
            "backlog_bytes": Bytes(BLOCK * len(self._at_risk)),
            "oldest_at_risk_ns": Nanoseconds(self._now - self._at_risk[0][1] if self._at_risk else 0),
            "files": self._number // FILE_BLOCKS,
            "lost_files": self._lost_files,
            "replicas": self._rows(),
        }
        return RamdiskSnapshot(**fields)  # type: ignore[arg-type]

    def _rows(self) -> tuple[ReplicaRow, ...]:
        rows = [
            self._row(number, "memory" if in_memory else "disk", "at risk", since, 0)
            for number, since, in_memory in list(self._at_risk)[:-15:-1]
        ]
        kept = list(self._kept)[: -15 + len(rows) : -1] if len(rows) < 14 else []
        return (
            *rows,
            *(self._row(number, "memory + disk", "persisted", since, reads) for number, since, reads in kept),
        )

    def _row(self, number: int, place: str, state: str, since: int, reads: int) -> ReplicaRow:
        file, block = divmod(number, FILE_BLOCKS)
        age = Nanoseconds(self._now - since)
        return ReplicaRow(f"stream-{file + 1:08d}", block, Bytes(BLOCK), place, state, age, reads)  # type: ignore[arg-type]


_HISTOGRAMS = ("ram_write", "disk_write", "persist_window", "eviction_window")
_COUNTERS = (
    "ram_blocks_written",
    "ram_bytes_written",
    "disk_blocks_written",
    "disk_bytes_written",
    "fallback_blocks",
    "fallback_bytes",
    "persisted_blocks",
    "persisted_bytes",
    "persist_busy_ns",
    "evicted_blocks",
    "evicted_bytes",
    "evicted_without_read",
    "write_stalls",
)
