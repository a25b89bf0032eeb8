"""History: the snapshots of one source, kept in bounded tiers, and every rate made of them.

    tier 0   every snapshot            the last 2 minutes at 4 a second
    tier 1   one each second           the last 15 minutes
    tier 2   one each ten seconds      the last 3 hours

Live view, paused view, remote and recorded views ask the same questions here, so they cannot disagree:
`window` for what happened over some seconds up to an instant, `series` for a line to plot. An instant is a
time on History's own time line: nanoseconds since its first snapshot, which go on over a restart of the source.

Not safe for threads: whoever draws feeds it, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import numpy as np
import numpy.typing as npt

from dashboard.image_history import ImageHistory
from dashboard.ramdisk_history import RamdiskHistory
from dashboard.wal_window import (
    NOTHING_YET,
    Point,
    WalWindow,
    commit_p99_ns,
    point_of,
    sync_count,
    window_between,
)
from engine.snapshot import Absent, Event, Snapshot, WalSnapshot

SECOND_NS = 1_000_000_000
TIERS = ((0, 480), (SECOND_NS, 900), (10 * SECOND_NS, 1080))  # (ns between snapshots, how many)
EVENTS_KEPT = 200

Series = Literal["ops_per_second", "ops_per_sync", "commit_p99_ns"]
Floats = npt.NDArray[np.float64]

# A snapshot that comes a little early still fills its tier's slot: sources keep time only roughly.
_SLACK_NS = SECOND_NS // 10


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event, and when on the time line History learned of it."""

    time_ns: int
    event: Event


@dataclass(frozen=True, slots=True)
class _Step:
    """What happened between two neighbours of a tier; None where it cannot be told."""

    start_ns: int
    end_ns: int
    point: Point
    ops: float | None
    syncs: float | None
    p99_ns: float | None


@dataclass(slots=True)
class _Tier:
    step_ns: int
    size: int
    steps: deque[_Step] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = deque(maxlen=self.size)

    def add(self, point: Point) -> None:
        previous = self.steps[-1].point if self.steps else None
        if previous is None:
            self.steps.append(_Step(point.time_ns, point.time_ns, point, None, None, None))
        elif point.run != previous.run or point.time_ns - previous.time_ns >= self.step_ns - _SLACK_NS:
            self.steps.append(_step(previous, point))


class History:
    """What one source showed, from its first snapshot to its newest."""

    def __init__(self) -> None:
        self._tiers = [_Tier(step_ns, size) for step_ns, size in TIERS]
        self._events: deque[SeenEvent] = deque(maxlen=EVENTS_KEPT)
        self._runs = count(1)
        self._seen_event = 0
        self._snapshot: Snapshot | None = None
        self._point: Point | None = None
        self.ramdisk = RamdiskHistory(TIERS)
        self.image = ImageHistory(TIERS)
        self.added = 0

    @property
    def newest(self) -> Point | None:
        """The newest point, or None before the first snapshot."""
        return self._point

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot itself."""
        return self._snapshot

    @property
    def oldest_ns(self) -> int:
        """The earliest instant that can still be asked about."""
        return min((tier.steps[0].end_ns for tier in self._tiers if tier.steps), default=0)

    @property
    def newest_ns(self) -> int:
        """The instant of the newest snapshot."""
        return self._point.time_ns if self._point is not None else 0

    def add(self, snapshot: Snapshot) -> None:
        """Take the next snapshot. One that is no later than the last is dropped, unless the source started again."""
        previous, last = self._snapshot, self._point
        restarted = False
        if previous is None or last is None:
            point = point_of(snapshot, time_ns=0, run=next(self._runs))
        else:
            restarted = (snapshot.source_id, snapshot.source_started_ns) != (
                previous.source_id,
                previous.source_started_ns,
            )
            if not restarted and snapshot.monotonic_ns <= previous.monotonic_ns:
                return
            # Monotonic clocks of two starts need not agree; there the wall clock is the better guess.
            passed = snapshot.wall_ns - previous.wall_ns if restarted else snapshot.monotonic_ns - previous.monotonic_ns
            run = last.run if not restarted and _continues(previous.wal, snapshot.wal) else next(self._runs)
            point = point_of(snapshot, time_ns=last.time_ns + max(passed, 1), run=run)
            if restarted:
                self._seen_event = 0
        self._take_events(snapshot, point.time_ns)
        for tier in self._tiers:
            tier.add(point)
        self.ramdisk.add(
            snapshot.ramdisk, time_ns=point.time_ns, monotonic_ns=snapshot.monotonic_ns, restarted=restarted
        )
        self.image.add(snapshot.image, time_ns=point.time_ns)
        self._snapshot, self._point = snapshot, point
        self.added += 1

    def note(self, event: Event) -> None:
        """Add an event of the screen's own."""
        self._events.append(SeenEvent(self.newest_ns, event))

    def at(self, time_ns: int | None = None) -> Point | None:
        """Return the newest point at or before an instant, or the earliest there is; None without any."""
        if time_ns is None or self._point is None:
            return self._point
        return self._find(time_ns) or min((t.steps[0].point for t in self._tiers), key=lambda point: point.time_ns)

    def window(self, seconds: float, end_ns: int | None = None) -> WalWindow | Absent:
        """Return what the log did over some seconds up to an instant (by default, now).

        The window starts at the newest point at or before its beginning, so it may be a little longer. Where the
        log's epoch began inside it, it starts there; where the source was first seen inside it, at that point.
        """
        last = self.at(end_ns)
        if last is None:
            return NOTHING_YET
        if isinstance(last.wal, Absent):
            return last.wal
        start_ns = last.time_ns - round(seconds * SECOND_NS)
        first = self._find(start_ns)
        if first is None or first.run != last.run:
            if 0 <= last.monotonic_ns - last.wal.epoch_started_ns <= seconds * SECOND_NS:
                return window_between(None, last)
            first = self._first_of_run(last.run)
        return window_between(first, last)

    def cpu_share(self, seconds: float, end_ns: int | None = None) -> float | Absent:
        """Return the processor time of the source's process over a window, 1 being one core."""
        last = self.at(end_ns)
        if last is None:
            return NOTHING_YET
        first = self._find(last.time_ns - round(seconds * SECOND_NS)) or self._tiers[0].steps[0].point
        if isinstance(last.process, Absent):
            return last.process
        passed = last.monotonic_ns - first.monotonic_ns
        if isinstance(first.process, Absent) or passed <= 0 or last.process.cpu_seconds < first.process.cpu_seconds:
            return NOTHING_YET
        return (last.process.cpu_seconds - first.process.cpu_seconds) * SECOND_NS / passed

    def series(
        self, what: Series, *, seconds: float, columns: int, end_ns: int | None = None
    ) -> npt.NDArray[np.float64]:
        """Return a line to plot: float64[columns], oldest first.

        A rate is the mean over a column's share of the window, a p99 the highest seen in it. nan where nothing is
        known: before the first snapshot, over a restart, while no sync completed.
        """
        end = self.newest_ns if end_ns is None else end_ns
        edges = np.linspace(float(end - seconds * SECOND_NS), float(end), columns + 1)
        steps = list(self._steps_since(int(edges[0])))
        if not steps:
            return np.full(columns, np.nan)
        if what == "commit_p99_ns":
            return _highest(edges, steps)
        times = np.array([steps[0].start_ns, *(step.end_ns for step in steps)], np.float64)
        known = [step.ops is not None and step.syncs is not None for step in steps]
        ops = _between(edges, times, [step.ops or 0.0 for step in steps])
        if what == "ops_per_sync":
            divisor = _between(edges, times, [step.syncs or 0.0 for step in steps])
        else:
            lengths = np.diff(times) * known
            divisor = _between(edges, times, lengths.tolist()) / SECOND_NS
        with np.errstate(divide="ignore", invalid="ignore"):
            line: Floats = ops / divisor
        line[divisor <= 1e-6] = np.nan
        return line

    def events(self, end_ns: int | None = None) -> tuple[Event, ...]:
        """Return the events known at an instant, oldest first."""
        return tuple(seen.event for seen in self._events if end_ns is None or seen.time_ns <= end_ns)

    def _take_events(self, snapshot: Snapshot, time_ns: int) -> None:
        for event in snapshot.events:
            if event.number > self._seen_event:
                self._seen_event = event.number
                self._events.append(SeenEvent(time_ns, event))

    def _find(self, time_ns: int) -> Point | None:
        """Return the newest point at or before an instant, from the finest tier that reaches back to it."""
        for tier in self._tiers:
            if tier.steps and tier.steps[0].end_ns <= time_ns:
                return next(step.point for step in reversed(tier.steps) if step.end_ns <= time_ns)
        return None

    def _first_of_run(self, run: int) -> Point:
        steps = (step.point for tier in reversed(self._tiers) for step in tier.steps if step.point.run == run)
        return min(steps, key=lambda point: point.time_ns)

    def _steps_since(self, start_ns: int) -> Iterator[_Step]:
        """Yield steps without gap or overlap from `start_ns`: coarse ones up to where finer ones begin."""
        reached = start_ns
        for tier, finer in zip(reversed(self._tiers), [*reversed(self._tiers[:-1]), None], strict=True):
            limit = finer.steps[0].start_ns if finer is not None and finer.steps else self.newest_ns
            for step in tier.steps:
                if step.end_ns <= reached:
                    continue
                part = _clip(step, max(step.start_ns, reached), min(step.end_ns, limit))
                if part is not None:
                    yield part
                    reached = part.end_ns


def _start_of(snapshot: Snapshot) -> tuple[str, int]:
    return snapshot.source_id, snapshot.source_started_ns


def _continues(before: WalSnapshot | Absent, now: WalSnapshot | Absent) -> bool:
    """Tell whether totals of `now` are those of `before`, grown."""
    if isinstance(before, Absent) or isinstance(now, Absent):
        return isinstance(before, Absent) and isinstance(now, Absent)
    if before.epoch != now.epoch or before.epoch_started_ns != now.epoch_started_ns:
        return False
    pairs = ((before.commits, now.commits), (before.payload_bytes, now.payload_bytes), (before.rolls, now.rolls))
    return all(isinstance(a, Absent) or isinstance(b, Absent) or a <= b for a, b in pairs)


def _step(previous: Point, point: Point) -> _Step:
    start, end = previous.time_ns, point.time_ns
    if isinstance(point.wal, Absent) or isinstance(previous.wal, Absent):
        return _Step(start, end, point, None, None, None)
    commits, syncs = point.wal.commits, sync_count(point.wal, point.sync)
    if point.run == previous.run:
        commits_before, syncs_before = previous.wal.commits, sync_count(previous.wal, previous.sync)
    elif previous.monotonic_ns <= point.wal.epoch_started_ns <= point.monotonic_ns:
        commits_before, syncs_before = 0, 0  # the epoch began between the two
    else:
        return _Step(start, end, point, None, None, None)
    if any(isinstance(value, Absent) for value in (commits, commits_before, syncs, syncs_before)):
        return _Step(start, end, point, None, None, None)
    grown = max(float(commits - commits_before), 0.0), max(float(syncs - syncs_before), 0.0)  # type: ignore[operator]
    first = previous if point.run == previous.run else None
    return _Step(start, end, point, *grown, commit_p99_ns(first, point))


def _clip(step: _Step, start_ns: int, end_ns: int) -> _Step | None:
    """Return the part of a step from start to end, its counts spread evenly over it; None where nothing is left."""
    if end_ns <= start_ns:
        return None
    if (start_ns, end_ns) == (step.start_ns, step.end_ns):
        return step
    part = (end_ns - start_ns) / (step.end_ns - step.start_ns)
    ops = None if step.ops is None else step.ops * part
    syncs = None if step.syncs is None else step.syncs * part
    return _Step(start_ns, end_ns, step.point, ops, syncs, step.p99_ns)


def _highest(edges: Floats, steps: list[_Step]) -> Floats:
    """Return the highest p99 of the steps that reach into each column, nan where there is none."""
    line: Floats = np.full(edges.size - 1, np.nan)
    for step in steps:
        if step.p99_ns is not None:
            first = max(int(np.searchsorted(edges, step.start_ns, side="right")) - 1, 0)
            last = int(np.searchsorted(edges, step.end_ns, side="left"))
            line[first:last] = np.fmax(line[first:last], step.p99_ns)
    return line


def _between(edges: Floats, times: Floats, amounts: list[float]) -> Floats:
    """Return how much of `amounts`, each spread evenly between two neighbours of `times`, lies between `edges`."""
    running = np.concatenate(([0.0], np.cumsum(amounts)))
    result: Floats = np.diff(np.interp(edges, times, running))
    return result
