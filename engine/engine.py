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
from engine.workloads.wal_lane import WalLane, WalSettings

_NO_LANE = Absent("not running: this lane is not part of this version yet")


class Engine:
    """The lanes of one process. Start it once, stop it once."""

    def __init__(self, wal: WalSettings, clock: Clock | None = None) -> None:
        """Prepare the lanes. Raises BadValue or UnknownChoice for settings that cannot be."""
        self._clock = clock or SystemClock()
        self._events = EventLog(self._clock)
        self._process = psutil.Process()
        self._version, self._host = tidegauge_version(), socket.gethostname()
        self._started = self._clock.wall_ns()
        self.wal = WalLane(wal, self._clock, self._events)

    def start(self) -> None:
        """Start the lanes; returns at once, and what goes wrong is an event and a reason in the snapshot."""
        self.wal.start()

    def stop(self) -> bool:
        """Stop the lanes and close what they have open; return whether all ended in time."""
        return self.wal.close()

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
            ramdisk=_NO_LANE,
            image=_NO_LANE,
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
