"""The RAM-disk lane: a store with a stream of files that runs until told otherwise, controlled while it does.

Controls return at once; a thread of the lane carries them out in order, and what came of them is seen in snapshots
and events. Wiping simulates a reboot: the store is closed, the RAM folder removed, the store opened again; that begins
an epoch, in which totals start again from zero.
"""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import BadValue, FileTrouble, TidegaugeError, UnknownChoice
from engine.events import EventLog, Severity
from engine.measure.clock import Clock
from engine.ramdisk.copying import COPY_MODES
from engine.ramdisk.core import StoreSettings
from engine.ramdisk.meters import LadderMeter
from engine.ramdisk.replica import Checksum, Replica, State
from engine.ramdisk.store import Store
from engine.snapshot import Absent, Histogram, RamdiskSnapshot, ReplicaRow
from engine.storage.space import shortage
from engine.units import MIB, Bytes, Nanoseconds, format_size
from engine.workloads.stream import Stream

_TICK_SECONDS = 0.1
_JOIN_SECONDS = 60.0
_ROWS_SHOWN = 14
CHECKSUMS = tuple(choice.value for choice in Checksum)


@dataclass(frozen=True, slots=True, kw_only=True)
class RamdiskSettings:
    """What the lane runs at first; controls change it later. rate: bytes a second of the stream."""

    ram_dir: Path
    disk_dirs: tuple[Path, ...]
    ram_capacity: int
    rate: int
    ram_dir_may_be_disk: bool = False
    block_size: int = 16 * MIB
    file_size: int = 64 * MIB
    chunk: int = 64 << 10
    checksum: str = "on"
    copy_mode: str = "direct"
    persist_rate: int = 0
    starts_streaming: bool = True
    refused: str = ""  # why there is no place for the store; the lane then says so instead of opening one


class RamdiskLane:
    """A running store and its controls."""

    def __init__(self, settings: RamdiskSettings, clock: Clock, events: EventLog) -> None:
        """Check the settings; nothing is opened yet. Raises BadValue or UnknownChoice."""
        _check_checksum(settings.checksum)
        _check_mode(settings.copy_mode)
        _check_rate(settings.rate)
        self._settings, self._clock, self._events = settings, clock, events
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ramdisk-lane", daemon=True)
        # Written by the lane's thread alone; each is replaced whole, so a reader sees the old or the new one.
        self._store: Store | None = None
        self._stream: Stream | None = None
        self._epoch, self._epoch_started = 0, clock.monotonic_ns()
        self._is_streaming = settings.starts_streaming
        self._next_file = 1
        self._absent = "the store is being opened"

    # Controls: each returns at once.

    def start(self) -> None:
        """Start the stream; the first call starts the lane, and one after a store that did not open tries again."""
        if not self._thread.ident:
            self._requests.put(self._open)
            self._thread.start()
        else:
            self._requests.put(self._start_stream)

    def stop(self) -> None:
        """Stop the stream; the lazy writers go on."""
        self._requests.put(self._stop_stream)

    def set_rate(self, rate: int) -> None:
        """Write that many bytes a second; 0 is as fast as it goes. Raises BadValue."""
        _check_rate(rate)
        self._requests.put(lambda: self._change(rate=rate))

    def set_checksum(self, checksum: str) -> None:
        """Write new files with checksums on, deferred or off. Raises UnknownChoice at once."""
        _check_checksum(checksum)
        self._requests.put(lambda: self._change(checksum=checksum))

    def set_copy_mode(self, mode: str) -> None:
        """Copy in another mode. Raises UnknownChoice at once."""
        _check_mode(mode)
        self._requests.put(lambda: self._change(copy_mode=mode))

    def set_persist_rate(self, rate: int) -> None:
        """Limit the lazy writers, as a slow disk would; 0 is no limit. Raises BadValue."""
        _check_rate(rate)
        self._requests.put(lambda: self._change(persist_rate=rate))

    def fill(self) -> None:
        """Write as fast as it goes until memory is full, then go on at the stream's rate."""
        self._requests.put(self._fill)

    def wipe(self) -> None:
        """Simulate a reboot: everything that is in memory only is lost."""
        self._requests.put(self._wipe)

    def ask_to_stop(self) -> None:
        """Begin to stop; `close` waits for it."""
        self._stop.set()
        self._requests.put(lambda: None)  # the lane looks up at once

    def close(self) -> bool:
        """Stop everything and close the store; return whether it ended in time."""
        self.ask_to_stop()
        if self._thread.ident:
            self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    # The lane's thread.

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._requests.get(timeout=_TICK_SECONDS)()
            except queue.Empty:
                self._tick()
            except TidegaugeError as trouble:
                self._say("error", str(trouble))
            except OSError as trouble:  # someone else's hand in our folders: said, and the lane goes on
                self._say("error", str(FileTrouble(trouble.filename or self._settings.ram_dir, "go on", trouble)))
        self._end_stream()
        if self._store is not None:
            self._store.close()

    def _open(self) -> None:
        settings = self._settings
        try:
            if settings.refused:
                raise TidegaugeError(settings.refused)
            store = Store.open(
                StoreSettings(
                    ram_dir=settings.ram_dir,
                    disk_dirs=settings.disk_dirs,
                    ram_capacity=settings.ram_capacity,
                    ram_dir_may_be_disk=settings.ram_dir_may_be_disk,
                    block_size=settings.block_size,
                    checksum=Checksum(settings.checksum),
                    chunk=settings.chunk,
                    copy_mode=settings.copy_mode,
                    persist_rate=settings.persist_rate,
                ),
                clock=self._clock,
                report=self._report,
            )
        except TidegaugeError as trouble:
            self._absent = str(trouble)
            raise
        self._epoch, self._epoch_started = self._epoch + 1, self._clock.monotonic_ns()
        found = store.recovered
        if found.lost:
            names = ", ".join(repr(file.name) for file in found.lost[:3])
            more = f" and {len(found.lost) - 3:,} more" if len(found.lost) > 3 else ""
            self._say("error", f"{len(found.lost):,} files that were in memory only are lost: {names}{more}")
        kept = f"{found.files:,} files, {found.blocks_on_disk:,} blocks on disk, {found.blocks_in_ram:,} in memory"
        self._say("info", f"store open: {kept if found.files else 'new'}")
        self._drop_lost(store)
        self._store = store
        if self._is_streaming:
            self._start_stream()

    def _drop_lost(self, store: Store) -> None:
        """Delete what a wipe has lost: the event named it, and nobody else owns the stream's files."""
        for lost in store.recovered.lost:
            store.delete(lost.name)

    def _start_stream(self) -> None:
        self._is_streaming = True
        if self._store is None:
            self._open()  # which comes back here once there is a store
            return
        store, settings = self._store, self._settings
        if self._stream is not None and self._stream.is_alive:
            return
        short = shortage(settings.disk_dirs[0], 2 * settings.ram_capacity)
        if short:
            self._is_streaming = False
            self._say("error", f"stream not started: {short}")
            return
        self._stream = Stream(
            store,
            self._clock,
            rate=lambda: self._settings.rate,
            file_size=settings.file_size,
            keep_bytes=settings.ram_capacity * 3 // 2,
            trouble=lambda text: self._say("error", f"stream stopped: {text}"),
            first=self._next_file,
        )
        for info in store.files():  # of an earlier stream
            store.delete(info.name)
        self._stream.start()

    def _stop_stream(self) -> None:
        self._is_streaming = False
        self._end_stream()

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop()
            self._next_file = stream.number

    def _change(self, **changes: object) -> None:
        self._settings = settings = replace(self._settings, **changes)  # type: ignore[arg-type]  # checked by callers
        if "persist_rate" in changes:
            limit = f"persist limited to {format_size(settings.persist_rate)}/s (simulated slow disk)"
            self._say("warn", limit if settings.persist_rate else "persist no longer limited")
        store = self._store
        if store is None:
            return
        store.set_checksum(Checksum(settings.checksum))
        store.set_copy_mode(settings.copy_mode)
        store.set_persist_rate(settings.persist_rate)

    def _fill(self) -> None:
        self._start_stream()
        if self._stream is not None:
            self._stream.fill()

    def _wipe(self) -> None:
        store = self._store
        if store is None:
            return
        was_streaming = self._is_streaming
        self._end_stream()
        self._store, self._absent = None, "the store is being opened again"
        store.close()
        shutil.rmtree(store.core.ram.path, ignore_errors=True)
        self._say("warn", "simulated reboot: memory wiped")
        self._is_streaming = was_streaming
        self._open()

    def _tick(self) -> None:
        """Look after the store between requests: space on the disk."""
        stream = self._stream
        if stream is not None and self._is_streaming:
            if not stream.is_alive:
                self._is_streaming = False
                return
            short = shortage(self._settings.disk_dirs[0], 0)
            if short:
                self._stop_stream()
                self._say("error", f"stream stopped: {short}")

    def _report(self, severity: str, text: str) -> None:
        self._say("error" if severity == "error" else "warn", text)

    def _say(self, severity: Severity, text: str) -> None:
        self._events.add(severity, "ramdisk", text)

    # What others see.

    def sample(self) -> RamdiskSnapshot | Absent:
        """Return the totals of this instant; any thread may ask."""
        store = self._store
        if store is None:
            return Absent(self._absent)
        return snapshot_of(
            store,
            epoch=self._epoch,
            epoch_started_ns=self._epoch_started,
            is_streaming=self._is_streaming,
            stream_rate=self._settings.rate,
        )


def snapshot_of(
    store: Store, *, epoch: int, epoch_started_ns: Nanoseconds, is_streaming: bool, stream_rate: int
) -> RamdiskSnapshot:
    """Return a store's totals; holds its guard for some microseconds."""
    core, settings = store.core, store.settings
    with core.guard:
        now = core.clock.monotonic_ns()
        memory, tracker, meters, live = core.memory, core.tracker, core.meters, core.live
        oldest = tracker.at_risk.first
        busy = meters.persist_busy_ns + sum(now - began for began in core.persisting_since.values())
        return RamdiskSnapshot(
            epoch=epoch,
            epoch_started_ns=epoch_started_ns,
            state="closed" if core.is_closing else "streaming" if is_streaming else "idle",
            ram_dir=str(core.ram.parent),
            ram_label=core.ram.label,
            disk=", ".join(str(volume.root) for volume in core.volumes),
            policy=settings.policy.value,
            checksum=live.checksum.value,
            copy_mode=live.copy_mode,
            chunk_bytes=Bytes(settings.chunk),
            block_size_bytes=Bytes(settings.block_size),
            persist_rate_bytes=Bytes(live.persist_rate),
            stream_rate_bytes=Bytes(stream_rate),
            capacity_bytes=Bytes(memory.capacity),
            used_bytes=Bytes(memory.used),
            reserved_bytes=Bytes(memory.reserved),
            spare_bytes=Bytes(memory.spare),
            backlog_blocks=len(tracker.at_risk),
            backlog_bytes=Bytes(tracker.backlog_bytes),
            oldest_at_risk_ns=Nanoseconds(now - oldest.since_ns if oldest is not None else 0),
            failing_blocks=tracker.failing,
            ram_blocks_written=meters.ram_blocks_written,
            ram_bytes_written=meters.ram_bytes_written,
            disk_blocks_written=meters.disk_blocks_written,
            disk_bytes_written=meters.disk_bytes_written,
            fallback_blocks=meters.fallback_blocks,
            fallback_bytes=meters.fallback_bytes,
            moved_blocks=meters.moved_blocks,
            recycled_files=meters.recycled_files,
            ram_reads=meters.ram_reads,
            disk_reads=meters.disk_reads,
            persisted_blocks=meters.persisted_blocks,
            persisted_bytes=meters.persisted_bytes,
            persist_busy_ns=Nanoseconds(busy),
            persist_errors=meters.persist_errors,
            evicted_blocks=meters.evicted_blocks,
            evicted_bytes=meters.evicted_bytes,
            evicted_without_read=meters.evicted_without_read,
            deleted_before_persist_blocks=meters.deleted_before_persist_blocks,
            deleted_before_persist_bytes=meters.deleted_before_persist_bytes,
            deleted_files=meters.deleted_files,
            corrupt_blocks=meters.corrupt_blocks,
            lost_blocks=meters.lost_blocks,
            write_stalls=meters.write_stalls,
            write_stall_ns=Nanoseconds(meters.write_stall_ns),
            files=len(core.files),
            lost_files=len(store.recovered.lost),
            ram_write=_histogram(meters.ram_write),
            disk_write=_histogram(meters.disk_write),
            persist_window=_histogram(meters.persist_window),
            eviction_window=_histogram(meters.eviction_window),
            replicas=_rows(store, now),
        )


def _histogram(meter: LadderMeter) -> Histogram:
    return Histogram(tuple(meter.counts), meter.total_ns)


_STATES = {
    State.AT_RISK: "at risk",
    State.CORRUPT: "corrupt",
    State.UNSYNCED: "not synced",
    State.LOST: "lost",
    State.PERSISTED: "persisted",
    State.ON_DISK: "persisted",
}


def _rows(store: Store, now: Nanoseconds) -> tuple[ReplicaRow, ...]:
    """Return rows for the table, under the guard: the newest at risk, then what was persisted or read last."""
    tracker = store.core.tracker
    shown = tracker.at_risk.newest(_ROWS_SHOWN)
    shown += tracker.evictable.newest(_ROWS_SHOWN - len(shown))
    return tuple(_row(replica, now) for replica in shown)


def _row(replica: Replica, now: Nanoseconds) -> ReplicaRow:
    is_on_disk = replica.volume >= 0
    place = "memory + disk" if replica.in_ram and is_on_disk else "memory" if replica.in_ram else "disk"
    return ReplicaRow(
        file=replica.owner.name,
        block=replica.index,
        size_bytes=Bytes(replica.length),
        place=place,  # type: ignore[arg-type]  # one of the literals
        state=_STATES.get(replica.state, "lost"),  # type: ignore[arg-type]  # likewise
        age_ns=Nanoseconds(now - replica.since_ns),
        reads=replica.reads,
    )


def _check_checksum(checksum: str) -> None:
    if checksum not in CHECKSUMS:
        raise UnknownChoice(what="checksum", given=checksum, choices=CHECKSUMS)


def _check_mode(mode: str) -> None:
    if mode not in COPY_MODES:
        raise UnknownChoice(what="copy mode", given=mode, choices=COPY_MODES)


def _check_rate(rate: int) -> None:
    if rate < 0:
        raise BadValue(what="rate", given=str(rate), allowed="0 or more bytes a second")
