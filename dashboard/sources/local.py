"""The engine in this process as a source: a thread of its own samples it four times a second.

The newest snapshot is one attribute, replaced whole, so a reader sees the old one or the new one and takes no lock.
The screen pulls; nothing here calls it, so neither can wait for the other.
"""

from __future__ import annotations

import threading
from typing import Protocol

from dashboard.sources import ImageControls, RamdiskControls, WalControls
from engine.measure.clock import Clock, SystemClock
from engine.snapshot import Snapshot

SAMPLES_PER_SECOND = 4


class EngineLike(Protocol):
    """What the dashboard needs of an engine."""

    @property
    def wal(self) -> WalControls:
        """Its log's controls."""

    @property
    def ramdisk(self) -> RamdiskControls | None:
        """Its RAM disk's controls; None where it has none."""

    @property
    def image(self) -> ImageControls | None:
        """Its image lane; None where it has none."""

    def start(self) -> None:
        """Start the lanes; returns at once."""

    def stop(self) -> object:
        """Stop the lanes and close what they have open."""

    def sample(self) -> Snapshot:
        """Return the totals of this instant; called from the source's thread."""


class LocalSource:
    """Samples an engine. Start it once, close it once."""

    name = "local"

    def __init__(self, engine: EngineLike, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock or SystemClock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="local-source", daemon=True)
        # Both are written by the thread alone.
        self._latest: Snapshot | None = None
        self._taken = 0

    @property
    def controls(self) -> WalControls | None:
        """The engine's own."""
        return self._engine.wal

    @property
    def ramdisk(self) -> RamdiskControls | None:
        """The engine's own."""
        return self._engine.ramdisk

    @property
    def image(self) -> ImageControls | None:
        """The engine's own."""
        return self._engine.image

    @property
    def taken(self) -> int:
        """How many snapshots were taken."""
        return self._taken

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return self._latest

    def close(self, timeout: float) -> bool:
        """Stop sampling; the engine goes on."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._latest = self._engine.sample()
            self._taken += 1
            if self._clock.wait(self._stop, 1 / SAMPLES_PER_SECOND):
                return
