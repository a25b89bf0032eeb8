"""What the write-ahead log did between two instants: rates, quantiles, distributions and shares, from differences.

    point at the start of the window   point at its end
    totals ------------------------->  totals          difference / time = rate
    bucket counts ------------------>  bucket counts   difference -> quantiles, distribution

A point is a snapshot kept small: its two fine histograms, most of its weight, become arrays. Points of one run
(same source, same start, same epoch, nothing gone backwards) can be subtracted; others cannot, so no rate is ever
negative. A run whose epoch began inside the window is measured from zero at the epoch's beginning.

What a source does not have stays `Absent`, with its reason, through every figure made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from engine.measure.buckets import BUCKETS, quantile_ns
from engine.snapshot import Absent, FineHistogram, Histogram, PeriodQuantiles, ProcessSnapshot, Snapshot, WalSnapshot
from engine.units import Nanoseconds

T = TypeVar("T")

STAGES = ("queue", "write", "sync", "wake")

_KEPT_APART = Absent("kept in the point")
NOTHING_YET = Absent("no second snapshot yet")
NOTHING_COUNTED = Absent("nothing in this window")


@dataclass(frozen=True, slots=True)
class FineCounts:
    """A fine histogram as arrays: int16 bucket numbers, ascending, and int64 counts."""

    indexes: npt.NDArray[np.int16]
    counts: npt.NDArray[np.int64]
    maximum: int  # ns, since the totals began
    total: int  # ns, sum of all

    def dense(self) -> npt.NDArray[np.int64]:
        """Return all BUCKETS counts."""
        row = np.zeros(BUCKETS, np.int64)
        row[self.indexes] = self.counts
        return row


Latency = FineCounts | PeriodQuantiles | Absent


@dataclass(frozen=True, slots=True)
class Point:
    """One snapshot as History keeps it."""

    time_ns: int  # on History's own time line, which also runs over restarts of the source
    run: int  # grows whenever totals began again
    monotonic_ns: int  # the source's
    wall_ns: int
    wal: WalSnapshot | Absent  # without its fine histograms
    commit: Latency
    sync: Latency
    process: ProcessSnapshot | Absent


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Latencies in ns. `own_period` is set where the source computed them, over a period of its own."""

    p50: float
    p90: float
    p99: float
    p999: float
    maximum: float
    mean: float
    count: int
    own_period: Nanoseconds | None = None


@dataclass(frozen=True, slots=True)
class Stages:
    """Where the time of the window's commits went, by stage in the order of STAGES."""

    mean_ns: tuple[float, ...]  # per commit
    shares: tuple[float, ...]  # of their sum, 0 to 1


@dataclass(frozen=True, slots=True)
class WalWindow:
    """The log over a window; `last` is its state at the window's end."""

    last: WalSnapshot
    seconds: float
    commits: int | Absent
    ops_per_second: float | Absent
    syncs_per_second: float | Absent
    payload_bytes_per_second: float | Absent
    written_bytes_per_second: float | Absent
    ops_per_sync: float | Absent  # mean
    ops_per_sync_counts: tuple[int, ...] | Absent  # syncs per bucket of metrics.OPS_PER_SYNC
    commit: Quantiles | Absent
    sync: Quantiles | Absent
    sync_busy: float | Absent  # time inside syncs over wall time; above 1 where syncs overlap
    write_mean_ns: float | Absent
    stages: Stages | Absent
    slow_syncs: int | Absent
    rolls: int | Absent


def point_of(snapshot: Snapshot, *, time_ns: int, run: int) -> Point:
    """Keep a snapshot small."""
    wal, commit, sync = snapshot.wal, Absent("no write-ahead log"), Absent("no write-ahead log")
    if isinstance(wal, WalSnapshot):
        commit, sync = _as_arrays(wal.commit_latency), _as_arrays(wal.sync_latency)  # type: ignore[assignment]
        wal = msgspec.structs.replace(wal, commit_latency=_KEPT_APART, sync_latency=_KEPT_APART)
    return Point(time_ns, run, snapshot.monotonic_ns, snapshot.wall_ns, wal, commit, sync, snapshot.process)


def window_between(first: Point | None, last: Point) -> WalWindow | Absent:
    """Return what the log did from `first` to `last`; from the beginning of last's epoch where `first` is None.

    `first` must be of last's run and not later. Returns Absent where the source has no log.
    """
    wal = last.wal
    if isinstance(wal, Absent):
        return wal
    before = first.wal if first is not None and isinstance(first.wal, WalSnapshot) else None
    began = first.monotonic_ns if first is not None else wal.epoch_started_ns
    seconds = (last.monotonic_ns - began) / 1e9
    if seconds <= 0:
        return _without_rates(wal)

    def total(pick: Callable[[WalSnapshot], int | Absent]) -> int | Absent:
        return _grown(pick(wal), pick(before) if before is not None else None)

    def rate(count: int | Absent) -> float | Absent:
        return count if isinstance(count, Absent) else count / seconds

    commits = total(lambda w: w.commits)
    groups = _histogram_difference(wal.ops_per_sync, before.ops_per_sync if before is not None else None)
    commit = _quantiles(last.commit, first.commit if first is not None else None)
    sync = _quantiles(last.sync, first.sync if first is not None else None)
    syncs = sync_count(wal, last.sync)
    syncs_before = sync_count(before, first.sync) if before is not None and first is not None else None
    stages = _stages(wal, before)
    return WalWindow(
        last=wal,
        seconds=seconds,
        commits=commits,
        ops_per_second=rate(commits),
        syncs_per_second=rate(_grown(syncs, syncs_before)),
        payload_bytes_per_second=rate(total(lambda w: w.payload_bytes)),
        written_bytes_per_second=rate(total(lambda w: w.written_bytes)),
        ops_per_sync=_mean(groups),
        ops_per_sync_counts=groups.counts if isinstance(groups, Histogram) else groups,
        commit=commit,
        sync=sync,
        sync_busy=_busy(last.sync, first.sync if first is not None else None, seconds),
        write_mean_ns=_write_mean(wal, before),
        stages=stages,
        slow_syncs=total(lambda w: w.slow_syncs),
        rolls=total(lambda w: w.rolls),
    )


def commit_p99_ns(first: Point | None, last: Point) -> float | None:
    """Return the p99 of commits between two points of a run, from zero if `first` is None; None if unknown."""
    now, before = last.commit, first.commit if first is not None else None
    if not isinstance(now, FineCounts) or not (before is None or isinstance(before, FineCounts)):
        return None
    counts = now.dense()
    if before is not None:
        np.subtract.at(counts, before.indexes, before.counts)
    value = quantile_ns(counts, 0.99, now.maximum)
    return None if np.isnan(value) else value


def sync_count(wal: WalSnapshot, sync: Latency) -> int | Absent:
    """Return how many syncs a snapshot counts, from whichever histogram it has."""
    if isinstance(wal.ops_per_sync, Histogram):
        return sum(wal.ops_per_sync.counts)
    if isinstance(sync, FineCounts):
        return int(sync.counts.sum())
    return wal.ops_per_sync


def _as_arrays(latency: FineHistogram | PeriodQuantiles | Absent) -> Latency:
    if not isinstance(latency, FineHistogram):
        return latency
    indexes = np.array(latency.indexes, np.int16)
    return FineCounts(indexes, np.array(latency.counts, np.int64), latency.maximum, latency.total)


def _without_rates(wal: WalSnapshot) -> WalWindow:
    """Return the window of a single instant: its state, and no figure."""
    none = NOTHING_YET
    return WalWindow(wal, 0.0, none, none, none, none, none, none, none, none, none, none, none, none, none, none)


def _grown(now: int | Absent, before: int | Absent | None) -> int | Absent:
    if isinstance(now, Absent):
        return now
    if isinstance(before, Absent):
        return before
    return now - (before or 0)


def _histogram_difference(
    now: Histogram | PeriodQuantiles | Absent, before: Histogram | PeriodQuantiles | Absent | None
) -> Histogram | Absent:
    if isinstance(now, Absent):
        return now
    if isinstance(now, PeriodQuantiles):
        return Absent("the source publishes quantiles of its own, no buckets")
    if not isinstance(before, Histogram):
        return now if before is None else NOTHING_YET
    counts = tuple(a - b for a, b in zip(now.counts, before.counts, strict=True))
    return Histogram(counts, now.total - before.total)


def _mean(histogram: Histogram | Absent) -> float | Absent:
    if isinstance(histogram, Absent):
        return histogram
    count = sum(histogram.counts)
    return histogram.total / count if count else NOTHING_COUNTED


def _quantiles(now: Latency, before: Latency | None) -> Quantiles | Absent:
    if isinstance(now, Absent):
        return now
    if isinstance(now, PeriodQuantiles):
        by_rank = dict(now.quantiles)
        nan = float("nan")
        p50, p90, p99, p999 = (by_rank.get(rank, nan) for rank in (0.5, 0.9, 0.99, 0.999))
        return Quantiles(p50, p90, p99, p999, now.maximum, nan, now.count, Nanoseconds(now.period_ns))
    counts, total = now.dense(), now.total
    if isinstance(before, FineCounts):
        np.subtract.at(counts, before.indexes, before.counts)
        total -= before.total
    elif before is not None:
        return NOTHING_YET
    count = int(counts.sum())
    if count == 0:
        return NOTHING_COUNTED
    p50, p90, p99, p999, top = (quantile_ns(counts, rank, now.maximum) for rank in (0.5, 0.9, 0.99, 0.999, 1.0))
    return Quantiles(p50, p90, p99, p999, top, total / count, count)


def _busy(now: Latency, before: Latency | None, seconds: float) -> float | Absent:
    if isinstance(now, Absent):
        return now
    if not isinstance(now, FineCounts) or not (before is None or isinstance(before, FineCounts)):
        return Absent("the source has no sum of its sync times")
    return (now.total - (before.total if before is not None else 0)) / 1e9 / seconds


def _write_mean(wal: WalSnapshot, before: WalSnapshot | None) -> float | Absent:
    return _mean(_histogram_difference(wal.write_latency, before.write_latency if before is not None else None))


def _stages(wal: WalSnapshot, before: WalSnapshot | None) -> Stages | Absent:
    if isinstance(wal.stages, Absent):
        return wal.stages
    if before is not None and isinstance(before.stages, Absent):
        return NOTHING_YET
    means = []
    for stage in STAGES:
        earlier = getattr(before.stages, stage) if before is not None else None
        mean = _mean(_histogram_difference(getattr(wal.stages, stage), earlier))
        if isinstance(mean, Absent):
            return mean
        means.append(mean)
    whole = sum(means)
    if whole <= 0:
        return NOTHING_COUNTED
    return Stages(tuple(means), tuple(mean / whole for mean in means))
