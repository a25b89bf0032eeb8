"""The WAL lane: a log with a crew of handlers that runs until told otherwise, controlled while it does.

Controls return at once; a thread of the lane carries them out in order, and what came of them is seen in snapshots and
events. Another model, device or sync mode stops the handlers, drains, and goes on in a new segment: that begins an
epoch, in which totals start again from zero. The lane checkpoints as it goes, so its log keeps a bounded size.
"""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from engine.errors import TidegaugeError, error_text
from engine.events import EventLog, Severity
from engine.measure.clock import Clock
from engine.snapshot import Absent, FineHistogram, Histogram, SegmentRow, WalSnapshot, WalStages
from engine.storage.device import parse_device, parse_sync, sync_label
from engine.storage.faults import Fault, Site, error_name
from engine.storage.space import shortage
from engine.units import Bytes, Nanoseconds, Txid, format_duration
from engine.wal.log import DEFAULT_SEGMENT_SIZE, SLOW_SYNC_NS, Log
from engine.wal.models import parse_model
from engine.wal.opening import MAX_CALLERS
from engine.wal.state import AT_SYNC, AT_WRITE
from engine.workloads.crew import Crew, HandlerSettings

_TICK_SECONDS = 0.1
_JOIN_SECONDS = 15.0
_SEGMENTS_SHOWN = 12
_SITES = {AT_WRITE: "a write", AT_SYNC: "a sync"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WalSettings:
    """What the lane runs at first; controls change it later."""

    path: Path
    handlers: int = 8
    model: str = "group"
    device: str = "real"
    sync: str = "fdatasync"
    value_size_bytes: int = 1024
    segment_size: int = DEFAULT_SEGMENT_SIZE


@dataclass(frozen=True, slots=True)
class _Epoch:
    """The time of one model, device and sync mode; another one is another object."""

    number: int
    started_ns: Nanoseconds  # monotonic
    log: Log
    crew: Crew
    frozen: WalSnapshot | None = None  # what is shown of it from now on: it has ended


class WalLane:
    """A running log and its controls."""

    def __init__(self, settings: WalSettings, clock: Clock, events: EventLog) -> None:
        """Check the settings; nothing is opened yet. Raises BadValue or UnknownChoice."""
        parse_model(settings.model), parse_device(settings.device), parse_sync(settings.sync)
        self._settings, self._clock, self._events = settings, clock, events
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wal-lane", daemon=True)
        # Written by the lane's thread alone; each is replaced whole, so a reader sees the old or the new one.
        self._epoch: _Epoch | None = None
        self._epochs = 0
        self._handlers = settings.handlers
        self._is_running = False
        self._absent = "the log is being opened"
        self._seen_poison, self._seen_slow = False, 0
        self._trouble = ""  # the newest, so that what lasts is said once

    # Controls: each returns at once.

    def set_handlers(self, count: int) -> None:
        """Run that many handlers, 1 to MAX_CALLERS."""
        self._requests.put(lambda: self._set_handlers(min(max(count, 1), MAX_CALLERS)))

    def set_model(self, model: str) -> None:
        """Run another write-thread model. Raises UnknownChoice or BadValue at once."""
        parse_model(model)
        self._requests.put(lambda: self._reconfigure(replace(self._settings, model=model)))

    def set_device(self, device: str) -> None:
        """Run on another device. Raises UnknownChoice or BadValue at once."""
        parse_device(device)
        self._requests.put(lambda: self._reconfigure(replace(self._settings, device=device)))

    def set_sync(self, sync: str) -> None:
        """Sync in another way. Raises UnknownChoice at once."""
        parse_sync(sync)
        self._requests.put(lambda: self._reconfigure(replace(self._settings, sync=sync)))

    def start(self) -> None:
        """Start the handlers; the first call starts the lane."""
        if not self._thread.ident:
            self._requests.put(self._open)
            self._thread.start()
        else:
            self._requests.put(self._start_handlers)

    def stop(self) -> None:
        """Stop the handlers; the log stays open."""
        self._requests.put(self._stop_handlers)

    def reopen(self) -> None:
        """Open a poisoned log again: recovery runs."""
        self._requests.put(self._reopen)

    def stall_next_sync(self, duration: Nanoseconds) -> None:
        """Make the next sync take that much longer."""
        self._requests.put(lambda: self._stall(duration))

    def fail_next_sync(self) -> None:
        """Make the next sync fail with EIO, which stops the log."""
        self._requests.put(self._fail)

    def close(self) -> bool:
        """Stop everything and close the log; return whether it ended in time."""
        self._stop.set()
        epoch = self._epoch
        if epoch is not None:
            epoch.crew.ask_to_stop()
        if self._thread.ident:
            self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    # The lane's thread.

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._carry_out(self._next_request())
                self._carry_out(self._tick)
        finally:
            self._end()

    def _next_request(self) -> Callable[[], None]:
        try:
            return self._requests.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return lambda: None

    def _carry_out(self, request: Callable[[], None]) -> None:
        """Do one thing; what is in its way becomes an event, said once while it lasts."""
        try:
            request()
        except TidegaugeError as trouble:
            if str(trouble) != self._trouble:
                self._say("error", str(trouble))
            self._trouble = str(trouble)
        else:
            if request == self._tick:
                self._trouble = ""

    def _end(self) -> None:
        """Stop the handlers and close the log; what it counted can still be seen."""
        epoch, self._is_running = self._epoch, False
        if epoch is None:
            return
        epoch.crew.resize(0)
        epoch.log.close()
        last = _snapshot(epoch, running=False)
        self._epoch = replace(epoch, frozen=msgspec.structs.replace(last, state="closed"))

    def _open(self) -> None:
        settings = self._settings
        try:
            log = Log.open(
                settings.path,
                model=settings.model,
                device=settings.device,
                sync=settings.sync,
                segment_size=settings.segment_size,
                report=self._report,
            )
        except TidegaugeError as trouble:
            self._absent = str(trouble)
            raise
        found = log.durable_txid
        self._say("info", f"log open at {settings.path}: " + (f"recovered up to txid {found:,}" if found else "new"))
        self._begin_epoch(log)
        self._start_handlers()

    def _begin_epoch(self, log: Log) -> None:
        crew = Crew(log, HandlerSettings(value_size_bytes=Bytes(self._settings.value_size_bytes)))
        self._epochs += 1
        self._epoch = _Epoch(self._epochs, self._clock.monotonic_ns(), log, crew)
        self._seen_poison, self._seen_slow = False, 0

    def _set_handlers(self, count: int) -> None:
        self._handlers = count
        if self._is_running and self._epoch is not None:
            self._epoch.crew.resize(count)

    def _start_handlers(self) -> None:
        epoch = self._epoch
        if epoch is None or epoch.log.poison is not None:
            return
        short = shortage(epoch.log.folder, 2 * self._settings.segment_size)
        if short:
            self._say("error", f"handlers not started: {short}")
            return
        self._is_running = True  # first: no snapshot shows handlers at work and the lane stopped
        try:
            epoch.crew.resize(self._handlers)
        except TidegaugeError:
            self._is_running = epoch.crew.size > 0  # those that could be started run
            raise

    def _stop_handlers(self) -> None:
        if self._epoch is not None:
            self._epoch.crew.resize(0)
        self._is_running = False

    def _reconfigure(self, settings: WalSettings) -> None:
        epoch, self._settings = self._epoch, settings
        if epoch is None or epoch.log.poison is not None:
            return
        log = epoch.log
        epoch.crew.resize(0)
        # Totals restart inside: until the next epoch stands, this one is shown as it ended.
        self._epoch = replace(epoch, frozen=_snapshot(epoch, running=self._is_running))
        try:
            log.reconfigure(model=settings.model, device=settings.device, sync=settings.sync)
        except TidegaugeError:
            self._epoch, self._is_running = epoch, False
            raise
        self._begin_epoch(log)
        self._say("info", f"now {log.model.name} on {log.device.label}, sync {sync_label(log.sync)}")
        if self._is_running:
            self._start_handlers()

    def _reopen(self) -> None:
        epoch = self._epoch
        if epoch is not None and epoch.log.poison is None:
            self._start_handlers()
            return
        self._absent = "the log is being opened again"
        if epoch is not None:
            epoch.crew.resize(0)
            epoch.log.close()
        self._epoch = None
        self._open()

    def _stall(self, duration: Nanoseconds) -> None:
        if self._epoch is None:
            return
        if self._epoch.log.sync == "none":
            self._say("warn", "no stall injected: in sync mode none there is no sync to stall")
            return
        self._epoch.log.stall_next_sync(duration)
        self._say("warn", f"injected: the next sync takes {format_duration(duration)} longer")

    def _fail(self) -> None:
        if self._epoch is not None:
            log = self._epoch.log
            site = Site.SYNC if log.sync in ("fdatasync", "fsync") else Site.WRITE  # dsync syncs as it writes
            log.arm(Fault(site, 1, code=errno.EIO))
            self._say("warn", f"injected: the next {site.name.lower()} fails with EIO")

    def _tick(self) -> None:
        """Look after the log between requests: checkpoint, space, and what deserves an event."""
        if self._epoch is None:
            return
        log = self._epoch.log
        marks = log.watermarks()
        if marks["poison"]:
            if not self._seen_poison:
                self._seen_poison, self._is_running = True, False
                where = _SITES.get(marks["poison_site"], "a roll")
                self._say(
                    "error",
                    f"{error_name(marks['poison'])} at {where}: the log is poisoned; nothing above txid "
                    f"{marks['durable']:,} was acknowledged",
                )
            return
        log.checkpoint(Txid(marks["durable"]))
        slow = int(log.meter_totals()["slow_syncs"])
        if slow > self._seen_slow:
            self._say("warn", f"{slow - self._seen_slow} sync of {format_duration(SLOW_SYNC_NS)} or more")
        self._seen_slow = slow
        short = shortage(log.folder, 0) if self._is_running else None
        if short:
            self._stop_handlers()
            self._say("error", f"handlers stopped: {short}")

    def _report(self, severity: str, text: str) -> None:
        self._say("error" if severity == "error" else "warn", text)

    def _say(self, severity: Severity, text: str) -> None:
        self._events.add(severity, "wal", text)

    # What others see.

    def sample(self) -> WalSnapshot | Absent:
        """Return the totals of this instant; any thread may ask."""
        while True:  # again where an epoch ended meanwhile: its totals may have been restarted under our eyes
            epoch = self._epoch
            if epoch is None:
                return Absent(self._absent)
            snapshot = epoch.frozen or _snapshot(epoch, running=self._is_running)
            if self._epoch is epoch:
                return snapshot


def _snapshot(epoch: _Epoch, *, running: bool) -> WalSnapshot:
    log, crew = epoch.log, epoch.crew
    marks, totals = log.watermarks(), log.meter_totals()
    poison = log.poison
    state = "poisoned" if poison is not None else "running" if running else "stopped"
    stages = [Histogram(tuple(totals["stage"][k].tolist()), int(totals["stage_ns"][k])) for k in range(4)]
    return WalSnapshot(
        epoch=epoch.number,
        epoch_started_ns=epoch.started_ns,
        state=state,  # type: ignore[arg-type]  # one of the three literals above
        poison="" if poison is None else error_text(poison.errno),
        model=log.model.name,
        device=log.device.label,
        sync=sync_label(log.sync),
        path=str(log.folder),
        handlers=crew.size,
        value_size_bytes=crew.settings.value_size_bytes,
        waiting_handlers=marks["waiting"],
        durable_txid=Txid(marks["durable"]),
        written_txid=Txid(marks["written"]),
        appended_txid=Txid(marks["appended"]),
        commits=int(totals["commit"].sum() + totals["unsynced"]),
        payload_bytes=int(totals["payload_bytes"]),
        written_bytes=int(totals["written_bytes"]),
        pending_bytes=Bytes(marks["used"]),
        pending_limit_bytes=Bytes(2 * log.shared.buffers.shape[1]),
        sync_errors=int(totals["sync_errors"]),
        write_errors=int(totals["write_errors"]),
        rolls=marks["rolls"],
        slow_syncs=int(totals["slow_syncs"]),
        slow_sync_ns=SLOW_SYNC_NS,
        commit_latency=_fine(totals, "commit"),
        sync_latency=_fine(totals, "sync"),
        write_latency=Histogram(tuple(totals["write"].tolist()), int(totals["write_ns"])),
        ops_per_sync=Histogram(tuple(totals["ops_per_sync"].tolist()), int(totals["ops_synced"])),
        stages=WalStages(*stages),
        segments=_segments(log, marks),
    )


def _fine(totals: dict[str, npt.NDArray[np.int64]], name: str) -> FineHistogram:
    counts = totals[name]
    indexes = np.flatnonzero(counts)
    return FineHistogram(
        tuple(indexes.tolist()),
        tuple(counts[indexes].tolist()),
        int(totals[f"{name}_ns"]),
        int(totals[f"{name}_max_ns"]),
    )


def _segments(log: Log, marks: dict[str, int]) -> tuple[SegmentRow, ...]:
    """Return the newest segments: closed ones, the active one, the prepared one."""
    size = Bytes(int(log.shared.log["segment_size"][0]))
    rows = [
        SegmentRow(s.number, s.first_txid, s.used, size, "closed") for s in log.closed_segments()[-_SEGMENTS_SHOWN:]
    ]
    active = SegmentRow(marks["segment"], Txid(marks["segment_first"]), Bytes(marks["segment_used"]), size, "active")
    rows = [row for row in rows if row.number < active.number]
    rows.append(active)
    if marks["next_segment"]:
        rows.append(SegmentRow(marks["next_segment"], Txid(0), Bytes(0), size, "prepared"))
    return tuple(rows)
