"""The engine: the lanes of one process, sampled into snapshots.

    with Engine(WalSettings(path=folder)) as engine:
        engine.wal.set_handlers(50)
        snapshot = engine.sample()

Lanes run in background threads and are controlled through `engine.wal`; `sample` may be called from any thread and
costs about a millisecond.
"""

from __future__ import annotations

import socket
from types import TracebackType

import psutil

from engine.environment import tidegauge_version
from engine.events import EventLog
from engine.measure.clock import Clock, SystemClock
from engine.snapshot import Absent, ProcessSnapshot, Snapshot
from engine.units import Bytes
from engine.workloads.image_lane import ImageLane, ImageSettings
from engine.workloads.ramdisk_lane import RamdiskLane, RamdiskSettings
from engine.workloads.wal_lane import WalLane, WalSettings

_NO_RAMDISK = Absent("not running: no RAM disk was asked for")
_NO_IMAGE = Absent("not running: no image was asked for")


class Engine:
    """The lanes of one process. Start it once, stop it once."""

    def __init__(
        self,
        wal: WalSettings,
        clock: Clock | None = None,
        *,
        ramdisk: RamdiskSettings | None = None,
        image: ImageSettings | None = None,
    ) -> None:
        """Prepare the lanes; a lane without settings is not there. Raises BadValue or UnknownChoice."""
        self._clock = clock or SystemClock()
        self._events = EventLog(self._clock)
        self._process = psutil.Process()
        self._version, self._host = tidegauge_version(), socket.gethostname()
        self._started = self._clock.wall_ns()
        self.wal = WalLane(wal, self._clock, self._events)
        self.ramdisk = RamdiskLane(ramdisk, self._clock, self._events) if ramdisk is not None else None
        self.image = ImageLane(image, self._clock, self._events) if image is not None else None

    def start(self) -> None:
        """Start the lanes; returns at once, and what goes wrong is an event and a reason in the snapshot.

        The image lane waits for what it is told to load.
        """
        self.wal.start()
        if self.ramdisk is not None:
            self.ramdisk.start()

    def stop(self) -> bool:
        """Stop the lanes and close what they have open; return whether all ended in time."""
        if self.image is not None:
            self.image.ask_to_stop()  # a load winds down while the log drains
        ended = self.wal.close()
        if self.ramdisk is not None:
            ended = self.ramdisk.close() and ended
        return ended if self.image is None else self.image.close() and ended

    def sample(self) -> Snapshot:
        """Return the totals of this instant."""
        return Snapshot(
            source_id="local",
            source_started_ns=self._started,
            wall_ns=self._clock.wall_ns(),
            monotonic_ns=self._clock.monotonic_ns(),
            version=self._version,
            host=self._host,
            wal=self.wal.sample(),
            ramdisk=_NO_RAMDISK if self.ramdisk is None else self.ramdisk.sample(),
            image=_NO_IMAGE if self.image is None else self.image.sample(),
            process=self._sample_process(),
            events=self._events.newest(),
        )

    def __enter__(self) -> Engine:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _sample_process(self) -> ProcessSnapshot | Absent:
        try:
            with self._process.oneshot():
                times = self._process.cpu_times()
                resident, threads = self._process.memory_info().rss, self._process.num_threads()
        except psutil.Error as trouble:
            return Absent(f"the operating system does not say: {trouble}")
        return ProcessSnapshot(times.user + times.system, Bytes(resident), threads)
