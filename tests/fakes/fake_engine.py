"""An engine that does nothing and reports plausibly: real Snapshots, the real controls, from a seed and a clock.

It simulates syncs one by one: each takes a log-normal time and makes a group of records durable; their latencies are
counted in the real buckets. So totals agree with one another as the engine's do, and two runs of one seed are equal.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, field

import numpy as np

from engine.measure.buckets import BUCKETS, LADDER_BUCKETS, LADDER_NS, UPPER_BOUNDS_NS
from engine.measure.clock import Clock, SystemClock
from engine.metrics import OPS_PER_SYNC
from engine.snapshot import (
    Absent,
    Event,
    FineHistogram,
    Histogram,
    ProcessSnapshot,
    SegmentRow,
    Snapshot,
    WalSnapshot,
    WalStages,
)
from engine.units import MIB, SECOND, Bytes, Nanoseconds, Txid, format_duration, parse_duration
from tests.fakes.fake_image import FakeImage
from tests.fakes.fake_ramdisk import FakeRamdisk

VALUE_SIZE = 1024
FRAMED_SIZE = 1048
SEGMENT_SIZE = 64 * MIB
HEADER_SIZE = 4096
SLOW_SYNC_NS = 100_000_000

_BARE_SYNC_NS = 190_000
_TIDE_SECONDS = 23.0  # the simulated disk is slower and faster by turns
# share of handlers that one sync covers, syncs that overlap
_MODELS = {
    "group": (0.5, 1),
    "pipeline:1": (0.55, 1),
    "pipeline:5": (0.22, 3),
    "handler": (0.0, 1),
    "handler-recheck": (0.5, 1),
}
_SYNCS = {"fdatasync": "fdatasync", "fsync": "fsync", "dsync": "dsync", "none": "none (not durable)"}


@dataclass
class _Totals:
    commits: int = 0
    rolls: int = 0
    slow: int = 0
    fine_commit: np.ndarray = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    fine_sync: np.ndarray = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("commit", "sync"), 0))
    maxima: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("commit", "sync"), 0))
    groups: np.ndarray = field(default_factory=lambda: np.zeros(len(OPS_PER_SYNC.bounds) + 1, np.int64))
    stages: dict[str, np.ndarray] = field(
        default_factory=lambda: {s: np.zeros(LADDER_BUCKETS, np.int64) for s in ("queue", "write", "sync", "wake")}
    )
    stage_sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("queue", "write", "sync", "wake"), 0))
    writes: np.ndarray = field(default_factory=lambda: np.zeros(LADDER_BUCKETS, np.int64))
    write_sum: int = 0


class FakeWal:
    """The controls; each returns at once and is seen in later snapshots."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self.calls: list[tuple[object, ...]] = []

    def _asked(self, *call: object) -> None:
        self.calls.append(call)
        self._engine.control(*call)

    def set_handlers(self, number: int) -> None:
        self._asked("handlers", number)

    def set_model(self, name: str) -> None:
        self._asked("model", name)

    def set_device(self, name: str) -> None:
        self._asked("device", name)

    def set_sync(self, name: str) -> None:
        self._asked("sync", name)

    def start(self) -> None:
        self._asked("state", "running")

    def stop(self) -> None:
        self._asked("state", "stopped")

    def reopen(self) -> None:
        self._asked("reopen")

    def stall_next_sync(self, nanoseconds: int) -> None:
        self._asked("stall", nanoseconds)

    def fail_next_sync(self) -> None:
        self._asked("fail")


class FakeEngine:
    """Looks like engine.engine.Engine from outside."""

    def __init__(
        self,
        *,
        seed: int = 1,
        clock: Clock | None = None,
        handlers: int = 50,
        model: str = "group",
        device: str = "real",
        sync: str = "fdatasync",
        path: str = "/var/lib/tidegauge/wal",
        without_wal: str = "",
        without_ramdisk: str = "",
    ) -> None:
        self.wal = FakeWal(self)
        self.started = self.stopped = False
        self._lock = threading.Lock()  # guards all below: sample() and controls come from several threads
        self._clock = clock or SystemClock()
        self._random = np.random.RandomState(seed)  # its streams are the same in every numpy
        self._handlers, self._model, self._device, self._sync = handlers, model, device, sync
        self._path, self._without_wal = path, without_wal
        self._state, self._poison = "running", ""
        self._epoch, self._epoch_started = 1, self._clock.monotonic_ns()
        self._now = self._free_at = self._epoch_started
        self._started_wall = self._clock.wall_ns()
        self._totals = _Totals()
        self._txid = 0
        self._segments = [SegmentRow(1, Txid(1), Bytes(HEADER_SIZE), SEGMENT_SIZE, "active")]
        self._stall_ns = 0
        self._fail = False
        self._events: list[Event] = []
        self._event_number = 0
        self._cpu = 0.35
        self._without_ramdisk = Absent(without_ramdisk)
        self.ramdisk: FakeRamdisk | None = None
        if not without_ramdisk:
            self.ramdisk = FakeRamdisk(lambda kind, text: self._say(kind, text, "ramdisk"), self._now, seed=seed)
        self.image = FakeImage(lambda kind, text: self._say(kind, text, "image"), self._now)
        self._say("info", f"log opened in {path}; nothing to recover")

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.stopped = True

    def control(self, what: str, *values: object) -> None:
        """Apply one control; the engine's own come through here."""
        with self._lock:
            self._catch_up()
            if what == "handlers":
                self._handlers = int(values[0])  # type: ignore[call-overload]
                self._say("info", f"handlers {self._handlers}")
            elif what in ("model", "device", "sync"):
                setattr(self, f"_{what}", values[0])
                self._begin_epoch(f"{what} {values[0]}")
            elif what == "state" and self._state != "poisoned":
                self._state = str(values[0])
                self._say("info", f"log {self._state}")
            elif what == "reopen":
                self._state, self._poison = "running", ""
                self._begin_epoch("recovered and reopened")
            elif what == "stall":
                self._stall_ns = int(values[0])  # type: ignore[call-overload]
                self._say("warn", f"the next sync stalls for {format_duration(self._stall_ns)}")
            elif what == "fail":
                self._fail = True
                self._say("warn", "the next sync fails")

    def sample(self) -> Snapshot:
        """Return the totals of now."""
        with self._lock:
            self._catch_up()
            return Snapshot(
                source_id="local",
                source_started_ns=self._started_wall,
                wall_ns=self._clock.wall_ns(),
                monotonic_ns=Nanoseconds(self._now),
                version="0.1.0",
                host="tidehost",
                wal=self._wal_snapshot(),
                ramdisk=self._without_ramdisk if self.ramdisk is None else self.ramdisk.sample(),
                image=self.image.sample(),
                process=ProcessSnapshot(self._cpu, Bytes(212 * MIB), 58),
                events=tuple(self._events[-64:]),
            )

    def _begin_epoch(self, why: str) -> None:
        self._epoch += 1
        self._epoch_started = self._free_at = self._now
        self._totals = _Totals()
        self._roll()
        self._say("info", f"{why}: segment {self._segments[-1].number}")

    def _catch_up(self) -> None:
        now = self._clock.monotonic_ns()
        passed, self._now = now - self._now, now
        if self.ramdisk is not None:
            self.ramdisk.advance(now)
        self.image.advance(now)
        busy = 0.02
        if self._state == "running" and self._handlers and not self._without_wal:
            self._commit_until(now)
            busy = 0.2 + 0.9 * self._handlers / (self._handlers + 12)
        else:
            self._free_at = now
        self._cpu += busy * passed / SECOND

    def _commit_until(self, now: int) -> None:
        share, overlap = _MODELS[self._model]
        _, _, latency = self._device.partition(":")
        simulated = parse_duration(latency) if latency else 0
        tide = 1 + 0.14 * float(np.sin(now / SECOND / _TIDE_SECONDS * 6.283)) + float(self._random.normal(0, 0.03))
        mean = _BARE_SYNC_NS * tide + simulated
        share = 0.92 if simulated and self._model == "group" else share
        while self._free_at < now:
            count = max(int((now - self._free_at) / (mean * 1.3) * overlap) + 1, 1)
            syncs = mean * self._random.lognormal(-0.02, 0.18 if simulated else 0.32, count)
            if self._sync == "none":
                syncs *= 0.02
            if self._stall_ns:
                syncs[0] += self._stall_ns
                self._stall_ns = 0
            sizes = np.maximum(self._random.normal(self._handlers * share, 1 + self._handlers * 0.08, count), 1)
            sizes = np.minimum(np.rint(sizes), self._handlers).astype(np.int64)
            writes = 9_000 + 420 * sizes + self._random.exponential(3_000, count)
            wakes = 14_000 + 3_300 * sizes + self._random.exponential(9_000, count)
            ends = self._free_at + np.cumsum((syncs + writes + wakes * 0.6) / overlap)
            done = int(np.searchsorted(ends, now))
            if done == 0:
                if self._fail:
                    break
                # A sync that is not over yet: nothing is counted until it is.
                self._carry(syncs[:1], sizes[:1], writes[:1], wakes[:1])
                self._free_at = int(ends[0])
                break
            if self._fail:
                self._fail = False
                self._state, self._poison = "poisoned", f"{os.strerror(errno.EIO)} (EIO) at sync"
                self._say("error", f"{self._poison}: the log stops; 0 records acked past it")
                break
            self._carry(syncs[:done], sizes[:done], writes[:done], wakes[:done])
            self._free_at = int(ends[done - 1])

    def _carry(self, syncs: np.ndarray, sizes: np.ndarray, writes: np.ndarray, wakes: np.ndarray) -> None:
        """Count syncs and their commits. All commits of a group get the latency of one: that is fast, and near."""
        totals, count = self._totals, syncs.size
        stage = {
            "queue": syncs * self._random.uniform(0.05, 0.55, count) * (0.15 if self._handlers == 1 else 1.0),
            "write": writes,
            "sync": syncs,
            "wake": wakes * self._random.uniform(0.2, 1.0, count),
        }
        _count(totals, "commit", totals.fine_commit, sum(stage.values()), sizes)
        _count(totals, "sync", totals.fine_sync, syncs, np.ones_like(sizes))
        totals.slow += int((syncs >= SLOW_SYNC_NS).sum())
        if syncs.max() >= SLOW_SYNC_NS:
            self._say("warn", f"slow sync: {format_duration(float(syncs.max()))}")
        np.add.at(totals.groups, np.searchsorted(OPS_PER_SYNC.bounds, sizes), 1)
        for name, values in stage.items():
            np.add.at(totals.stages[name], np.searchsorted(LADDER_NS, values), sizes)
            totals.stage_sums[name] += int((values * sizes).sum())
        np.add.at(totals.writes, np.searchsorted(LADDER_NS, writes), 1)
        totals.write_sum += int(writes.sum())
        totals.commits += int(sizes.sum())
        self._append(int(sizes.sum()))

    def _append(self, ops: int) -> None:
        self._txid += ops
        active = self._segments[-1]
        used = active.used_bytes + ops * FRAMED_SIZE
        if used > active.size_bytes:
            self._replace_active(active.size_bytes)
            self._roll()
        else:
            self._replace_active(Bytes(used))

    def _replace_active(self, used: int) -> None:
        active = self._segments[-1]
        self._segments[-1] = SegmentRow(active.number, active.first_txid, Bytes(used), active.size_bytes, "active")

    def _roll(self) -> None:
        active = self._segments[-1]
        self._segments[-1] = SegmentRow(
            active.number, active.first_txid, active.used_bytes, active.size_bytes, "closed"
        )
        self._segments.append(
            SegmentRow(active.number + 1, Txid(self._txid + 1), Bytes(HEADER_SIZE), SEGMENT_SIZE, "active")
        )
        self._segments = self._segments[-6:]
        self._totals.rolls += 1
        if self._totals.rolls % 8 == 0:
            self._say("info", f"rolled to segment {active.number + 1}")

    def _wal_snapshot(self) -> WalSnapshot | Absent:
        if self._without_wal:
            return Absent(self._without_wal)
        t = self._totals
        running = self._state == "running"
        prepared = SegmentRow(self._segments[-1].number + 1, Txid(0), Bytes(0), SEGMENT_SIZE, "prepared")
        return WalSnapshot(
            epoch=self._epoch,
            epoch_started_ns=Nanoseconds(self._epoch_started),
            state=self._state,  # type: ignore[arg-type]
            poison=self._poison,
            model=self._model,
            device=_shown_device(self._device),
            sync=_SYNCS[self._sync],
            path=self._path,
            handlers=self._handlers,
            value_size_bytes=Bytes(VALUE_SIZE),
            waiting_handlers=max(self._handlers - 2, min(self._handlers, 1)) if running else 0,
            durable_txid=Txid(self._txid),
            written_txid=Txid(self._txid),
            appended_txid=Txid(self._txid + (self._handlers // 2 if running else 0)),
            commits=t.commits,
            payload_bytes=t.commits * VALUE_SIZE,
            written_bytes=t.commits * FRAMED_SIZE,
            pending_bytes=Bytes(self._handlers // 2 * FRAMED_SIZE if running else 0),
            pending_limit_bytes=Bytes(16 * MIB),
            sync_errors=int(self._state == "poisoned"),
            write_errors=0,
            rolls=t.rolls,
            slow_syncs=t.slow,
            slow_sync_ns=Nanoseconds(SLOW_SYNC_NS),
            commit_latency=_fine(t, "commit", t.fine_commit),
            sync_latency=_fine(t, "sync", t.fine_sync),
            write_latency=Histogram(tuple(t.writes.tolist()), t.write_sum),
            ops_per_sync=Histogram(tuple(t.groups.tolist()), t.commits),
            stages=WalStages(
                *(Histogram(tuple(t.stages[s].tolist()), t.stage_sums[s]) for s in ("queue", "write", "sync", "wake"))
            ),
            segments=(*self._segments, prepared),
        )

    def _say(self, severity: str, text: str, lane: str = "wal") -> None:
        self._event_number += 1
        wall = self._clock.wall_ns()
        self._events.append(Event(self._event_number, wall, severity, lane, text))  # type: ignore[arg-type]


def _count(totals: _Totals, name: str, counts: np.ndarray, values: np.ndarray, times: np.ndarray) -> None:
    np.add.at(counts, np.searchsorted(UPPER_BOUNDS_NS, values), times)
    totals.sums[name] += int((values * times).sum())
    totals.maxima[name] = max(totals.maxima[name], int(values.max()))


def _fine(totals: _Totals, name: str, counts: np.ndarray) -> FineHistogram:
    used = np.flatnonzero(counts)
    return FineHistogram(tuple(used.tolist()), tuple(counts[used].tolist()), totals.sums[name], totals.maxima[name])


def _shown_device(spec: str) -> str:
    kind, _, latency = spec.partition(":")
    return f"{kind} {format_duration(parse_duration(latency))} (simulated)" if latency else kind
