"""What an image load did, from the points of its progress: rates over its own time, and how busy its threads were.

A load may be over in half a second, so it is plotted over its own time and not over the last minute: a snapshot
carries totals at instants of the load, and the differences are made here, whether it is live, paused or replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.snapshot import ImageProgress, ImageSnapshot

LUMP_NS, LUMP_SHARE = 400_000_000, 0.05
RECENT_NS = 500_000_000  # how far a running load's utilisation looks back
RUNNING = ("making", "loading")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """One thread of a load. share: of the time, 1 being all of it."""

    name: str
    share: float
    cpu_ns: int


def inodes_per_second(image: ImageSnapshot) -> float | None:
    """Return the load's rate from its beginning; None before there is one."""
    return image.inodes * 1e9 / image.elapsed_ns if image.inodes > 0 and image.elapsed_ns > 0 else None


def bytes_per_second(image: ImageSnapshot) -> float | None:
    """Return how much of the file a second of the load took in: its size over the time, by how far it is."""
    if image.elapsed_ns <= 0 or image.size_bytes <= 0:
        return None
    done = min(max(share_done(image), 0.0), 1.0)
    return image.size_bytes * done * 1e9 / image.elapsed_ns if done else None


def share_done(image: ImageSnapshot) -> float:
    """Return how much of the load is done, as the phase tree says."""
    return next((row.done for row in image.phases if row.name == "LoadingFsImage"), 0.0)


def rate_line(image: ImageSnapshot, pick: Callable[[ImageProgress], int], columns: int) -> Floats:
    """Return a rate over the time of the load: float64[columns], its beginning first; nan where nothing is known."""
    points = usable_points(image)
    if len(points) < 2 or columns < 1:
        return np.full(max(columns, 0), np.nan)
    kept = _changes([(point.elapsed_ns, pick(point)) for point in points])
    times = np.array([time for time, _ in kept], np.float64)
    totals = np.array([total for _, total in kept], np.float64)
    edges = np.linspace(0.0, times[-1], columns + 1)
    passed = np.interp(edges, np.concatenate(([0.0], times)), np.concatenate(([0.0], totals)))
    line: Floats = np.maximum(np.diff(passed), 0.0) / np.diff(edges) * 1e9
    return line


def _changes(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points at which a total had grown: it grows in lumps, and between two of them nothing stood still.

    Where it has not grown for longer than a lump may take, it did stand still, and that is kept.
    """
    duration = points[-1][0]
    lump = max(duration * LUMP_SHARE, min(LUMP_NS, duration / 4))
    kept = [points[0]]
    for before, point in pairwise(points):
        if point[1] != kept[-1][1] or point[0] - kept[-1][0] > lump:
            if point[1] != kept[-1][1] and before[0] - kept[-1][0] > lump:
                kept.append(before)
            kept.append(point)
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def usable_points(image: ImageSnapshot) -> list[ImageProgress]:
    """Return the points in order: a snapshot from outside may say anything."""
    kept: list[ImageProgress] = []
    for point in image.progress:
        if point.elapsed_ns > (kept[-1].elapsed_ns if kept else 0):
            kept.append(point)
    return kept


def thread_use(image: ImageSnapshot) -> list[ThreadUse]:
    """Return how busy each thread is: while the load runs over its last moments, after it over all of it."""
    points = usable_points(image)
    last = points[-1] if points else None
    first = None
    if image.state in RUNNING and last is not None:
        first = next((p for p in reversed(points) if p.elapsed_ns <= last.elapsed_ns - RECENT_NS), None)
    uses = []
    for place, thread in enumerate(image.cpu):
        if last is None:
            share = 0.0
        elif first is None or place >= len(first.cpu_ns) or place >= len(last.cpu_ns):
            share = thread.cpu_ns / last.elapsed_ns
        else:
            share = (last.cpu_ns[place] - first.cpu_ns[place]) / (last.elapsed_ns - first.elapsed_ns)
        uses.append(ThreadUse(thread.name, min(max(share, 0.0), 1.0), thread.cpu_ns))
    return uses
