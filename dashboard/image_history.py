"""The image lane's part of History: its snapshots in the same tiers, so that a paused view finds its instant.

Rates need no differences of these: a snapshot holds the progress of its own load. Only the finest tier keeps that.
"""

from __future__ import annotations

from collections import deque

import msgspec

from dashboard.wal_window import NOTHING_YET
from engine.snapshot import Absent, ImageSnapshot

_SLACK_NS = 100_000_000


class ImageHistory:
    """What the image lane of one source showed."""

    def __init__(self, tiers: tuple[tuple[int, int], ...]) -> None:
        """`tiers`: ns between snapshots and how many, finest first."""
        self._tiers = [(step_ns, deque[tuple[int, ImageSnapshot | Absent]](maxlen=size)) for step_ns, size in tiers]

    def add(self, image: ImageSnapshot | Absent, *, time_ns: int) -> None:
        """Take the next snapshot; History has made sure that it is a later one."""
        kept = image
        for step_ns, points in self._tiers:
            if not points or time_ns - points[-1][0] >= step_ns - _SLACK_NS:
                points.append((time_ns, kept))
            if isinstance(kept, ImageSnapshot) and (kept.progress or kept.phases):
                kept = msgspec.structs.replace(kept, progress=(), phases=())

    def at(self, time_ns: int | None = None) -> ImageSnapshot | Absent:
        """Return the newest at or before an instant, or the earliest there is."""
        finest = self._tiers[0][1]
        if not finest:
            return NOTHING_YET
        if time_ns is None:
            return finest[-1][1]
        for _, points in self._tiers:
            if points[0][0] <= time_ns:
                return next(image for at, image in reversed(points) if at <= time_ns)
        return self._tiers[-1][1][0][1]
