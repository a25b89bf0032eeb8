"""The RAM disk's part of History: its snapshots in the same tiers, and the windows and lines made of them.

It has runs of its own: a wipe begins a new epoch of the store, and the log's totals go on over it. The table of
replicas is kept for the finest tier only: it is most of a snapshot's weight.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from dashboard.ramdisk_window import SECOND_NS, RamdiskWindow
from dashboard.wal_window import NOTHING_YET
from engine.snapshot import Absent, RamdiskSnapshot, ReplicaRow

Floats = npt.NDArray[np.float64]

SMOOTH_NS = (
    2 * SECOND_NS
)  # a rate to plot is over this long, or over a column where that is longer: blocks come in lumps
_SLACK_NS = SECOND_NS // 10
_GROWING = ("ram_bytes_written", "disk_bytes_written", "persisted_bytes", "persist_busy_ns", "evicted_blocks")


@dataclass(frozen=True, slots=True)
class RamdiskPoint:
    """One snapshot as it is kept: without its replicas."""

    time_ns: int  # on History's time line
    run: int  # grows whenever totals began again
    monotonic_ns: int  # the source's
    ramdisk: RamdiskSnapshot | Absent


class RamdiskHistory:
    """What the RAM disk of one source showed."""

    def __init__(self, tiers: tuple[tuple[int, int], ...]) -> None:
        """`tiers`: ns between snapshots and how many, finest first."""
        self._tiers = [(step_ns, deque[RamdiskPoint](maxlen=size)) for step_ns, size in tiers]
        self._replicas: deque[tuple[int, tuple[ReplicaRow, ...]]] = deque(maxlen=tiers[0][1])

    def add(
        self, ramdisk: RamdiskSnapshot | Absent, *, time_ns: int, monotonic_ns: int, restarted: bool = False
    ) -> None:
        """Take the next snapshot; History has made sure that it is a later one."""
        finest = self._tiers[0][1]
        last = finest[-1] if finest else None
        goes_on = last is not None and not restarted and _continues(last.ramdisk, ramdisk)
        run = (last.run if last is not None else 0) + (not goes_on)
        if isinstance(ramdisk, RamdiskSnapshot):
            self._replicas.append((time_ns, ramdisk.replicas))
            ramdisk = msgspec.structs.replace(ramdisk, replicas=())
        point = RamdiskPoint(time_ns, run, monotonic_ns, ramdisk)
        for step_ns, points in self._tiers:
            if not points or points[-1].run != run or time_ns - points[-1].time_ns >= step_ns - _SLACK_NS:
                points.append(point)

    def at(self, time_ns: int | None = None) -> RamdiskPoint | None:
        """Return the newest point at or before an instant, or the earliest there is; None without any."""
        finest = self._tiers[0][1]
        if not finest:
            return None
        return finest[-1] if time_ns is None else self._find(time_ns) or self._oldest()

    def window(self, seconds: float, end_ns: int | None = None) -> RamdiskWindow | Absent:
        """Return what the RAM disk did over some seconds up to an instant; as History.window does for the log."""
        last = self.at(end_ns)
        if last is None:
            return NOTHING_YET
        now = last.ramdisk
        if isinstance(now, Absent):
            return now
        first = self._find(last.time_ns - round(seconds * SECOND_NS))
        if first is None or first.run != last.run:
            since_epoch = last.monotonic_ns - now.epoch_started_ns
            if 0 <= since_epoch <= seconds * SECOND_NS:
                return RamdiskWindow(now, None, since_epoch / SECOND_NS)
            first = min(
                (p for _, points in self._tiers for p in points if p.run == last.run), key=lambda point: point.time_ns
            )
        before = first.ramdisk
        if isinstance(before, Absent):  # of one run both are there or neither
            return before
        return RamdiskWindow(now, before, max(last.monotonic_ns - first.monotonic_ns, 0) / SECOND_NS)

    def replicas(self, end_ns: int | None = None) -> tuple[ReplicaRow, ...] | Absent:
        """Return the table of replicas as it stood at an instant."""
        if not self._replicas:
            return NOTHING_YET
        if end_ns is None:
            return self._replicas[-1][1]
        at = bisect_right(self._replicas, end_ns, key=lambda kept: kept[0])
        return self._replicas[at - 1][1] if at else Absent("replicas are kept for the last two minutes")

    def levels(
        self, pick: Callable[[RamdiskSnapshot], float], *, seconds: float, columns: int, end_ns: int | None = None
    ) -> Floats:
        """Return a level over time: float64[columns], the highest of each column; nan where it is not known."""
        edges, points = self._columns(seconds, columns, end_ns)
        if not points:
            return np.full(columns, np.nan)
        times = np.array([point.time_ns for point in points], np.float64)
        values = np.array(
            [np.nan if isinstance(p.ramdisk, Absent) else max(float(pick(p.ramdisk)), 0.0) for p in points]
        )
        begins = np.searchsorted(times, edges[:-1], side="right") - 1  # the point whose level a column begins with
        highest: Floats = np.fmax.reduceat(values, np.maximum(begins, 0))
        highest[edges[1:] < times[0]] = np.nan
        return highest

    def rates(
        self, pick: Callable[[RamdiskSnapshot], int], *, seconds: float, columns: int, end_ns: int | None = None
    ) -> Floats:
        """Return how fast a total grew over time, by the second: float64[columns]; nan where that is not known."""
        edges, points = self._columns(seconds, columns, end_ns)
        if len(points) < 2:
            return np.full(columns, np.nan)
        times, grown, known = [float(points[0].time_ns)], [0.0], [0.0]
        for previous, point in pairwise(points):
            amount = _grown(previous, point, pick)
            times.append(float(point.time_ns))
            grown.append(grown[-1] + (amount or 0.0))
            known.append(known[-1] + (0.0 if amount is None else float(point.time_ns - previous.time_ns)))
        begins = np.minimum(edges[:-1], edges[1:] - SMOOTH_NS)
        length = np.interp(edges[1:], times, known) - np.interp(begins, times, known)
        with np.errstate(divide="ignore", invalid="ignore"):
            line: Floats = (np.interp(edges[1:], times, grown) - np.interp(begins, times, grown)) * SECOND_NS / length
        line[length < 1e6] = np.nan
        return line

    def _columns(self, seconds: float, columns: int, end_ns: int | None) -> tuple[Floats, list[RamdiskPoint]]:
        """Return the edges of columns and the points that say something about them, oldest first."""
        newest = self.at(None)
        end = end_ns if end_ns is not None else newest.time_ns if newest is not None else 0
        edges = np.linspace(float(end - seconds * SECOND_NS), float(end), columns + 1)
        start = edges[0] - SMOOTH_NS
        points: list[RamdiskPoint] = []
        for _, tier in reversed(self._tiers):  # coarse ones up to where finer ones begin
            if tier:
                points = [point for point in points if point.time_ns < tier[0].time_ns]
                points += [point for point in tier if point.time_ns <= end]
        first = bisect_right(points, start, key=lambda point: point.time_ns) - 1
        return edges, points[max(first, 0) :]

    def _find(self, time_ns: int) -> RamdiskPoint | None:
        for _, points in self._tiers:
            if points and points[0].time_ns <= time_ns:
                return next(point for point in reversed(points) if point.time_ns <= time_ns)
        return None

    def _oldest(self) -> RamdiskPoint:
        return min((points[0] for _, points in self._tiers if points), key=lambda point: point.time_ns)


def _continues(before: RamdiskSnapshot | Absent, now: RamdiskSnapshot | Absent) -> bool:
    """Tell whether totals of `now` are those of `before`, grown."""
    if isinstance(before, Absent) or isinstance(now, Absent):
        return isinstance(before, Absent) and isinstance(now, Absent)
    if (before.epoch, before.epoch_started_ns) != (now.epoch, now.epoch_started_ns):
        return False
    return all(getattr(before, name) <= getattr(now, name) for name in _GROWING)


def _grown(previous: RamdiskPoint, point: RamdiskPoint, pick: Callable[[RamdiskSnapshot], int]) -> float | None:
    """Return by how much a total grew between neighbours; None where that cannot be told."""
    before, now = previous.ramdisk, point.ramdisk
    if isinstance(now, Absent):
        return None
    if point.run == previous.run and not isinstance(before, Absent):
        return max(float(pick(now) - pick(before)), 0.0)
    if previous.monotonic_ns <= now.epoch_started_ns <= point.monotonic_ns:  # the epoch began between the two
        return max(float(pick(now)), 0.0)
    return None
