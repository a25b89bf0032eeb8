"""A log: a folder of segments that records are committed to, and read from after a crash.

    with Log.open(folder) as log:
        txid = log.commit(b"payload")      # durable when it returns

`commit` may be called from any number of Python threads; native handlers (engine/workloads) use the same path with
the arrays in `shared`. The first failed write or sync poisons the log: every waiter and every later commit gets
LogPoisoned, what was durable stays, and only opening the folder again, which runs recovery, makes a log of it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from engine.errors import FileTrouble
from engine.measure.clock import Clock, SystemClock
from engine.native.kernel import compile_all
from engine.storage import device as devices
from engine.storage.contents import positioned_write
from engine.storage.descriptors import close_descriptor
from engine.storage.device import DeviceSpec
from engine.storage.faults import Fault, FaultTable, arm
from engine.storage.folders import FolderLock
from engine.units import MIB, Bytes, Nanoseconds, Txid
from engine.wal import commit as commits
from engine.wal import control
from engine.wal.errors import LogBusy, LogClosed, LogPoisoned, RecordTooLarge
from engine.wal.meter_rows import MeterRows
from engine.wal.models import ModelThreads, WriteModel, parse_model
from engine.wal.opening import (
    CLOSER_ROW,
    MAX_CALLERS,
    MODEL_ROW,
    SharedState,
    claim,
    closed_segments,
    load,
)
from engine.wal.preparer import ClosedSegment, SegmentPreparer
from engine.wal.recovery import prepare_for_writing, recover
from engine.wal.seal import seal
from engine.wal.segment import check_segment_size
from engine.wal.settle import settle, settle_closed
from engine.wal.state import CLOSED, HANDLER, HANDLER_RECHECK, METER_DTYPE, METER_TOTALS

DEFAULT_SEGMENT_SIZE = Bytes(64 * MIB)
SLOW_SYNC_NS = Nanoseconds(100_000_000)  # as hbase.regionserver.wal.slowsync.ms
_CALLERS_PATIENCE_NS = 10_000_000_000  # a hung disk keeps its callers; nothing of theirs is closed then


class Log:
    """One open log. Make it with `Log.open`."""

    def __init__(
        self,
        folder: Path,
        lock: FolderLock,
        shared: SharedState,
        preparer: SegmentPreparer,
        *,
        model: WriteModel,
        device: DeviceSpec,
        sync: str,
    ) -> None:
        """Take over what `open` made."""
        self.folder, self.shared, self.max_payload = folder, shared, shared.max_payload
        self.model, self.device, self.sync = model, device, sync
        self._lock, self._preparer = lock, preparer
        self._rows = MeterRows(MAX_CALLERS)
        self._caller = threading.local()
        self._admin = threading.Lock()  # one flush, reconfigure or close at a time
        self._is_closed = False
        self._threads = self._start_threads()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        model: str = "group",
        device: str = "real",
        sync: str = "fdatasync",
        segment_size: int = DEFAULT_SEGMENT_SIZE,
        roll_records: int = 0,
        slow_sync_ns: int = SLOW_SYNC_NS,
        faults: FaultTable | None = None,
        clock: Clock | None = None,
        report: Callable[[str, str], None] | None = None,
    ) -> Log:
        """Open a log for writing, making it if the folder is missing or empty; recovers what is there.

        model, device, sync: as on the command line. roll_records: roll after that many records as well as by size.
        report: takes (severity, text) for what happens behind the caller's back. Raises BadValue, NotALog,
        LogLocked, LogDamaged, UnsupportedVersion, FileTrouble.
        """
        write_model, spec, mode = parse_model(model), devices.parse_device(device), devices.parse_sync(sync)
        size = check_segment_size(segment_size)
        clock, report = clock or SystemClock(), report or _nobody
        compile_all()
        lock = claim(folder)
        try:
            contents = prepare_for_writing(recover(folder))
            settle_closed(contents)
            write = faults.preallocate_write if faults is not None else positioned_write
            shared = load(contents, size, spec, mode, write=write, clock=clock)
            shared.log["roll_records"], shared.log["slow_sync_ns"] = roll_records, slow_sync_ns
            control.set_model(shared.log[0], write_model.code, write_model.syncers)
            if faults is not None:
                faults.attach(shared.device)
            closed = closed_segments(contents)
            preparer = SegmentPreparer(
                shared.log,
                folder,
                size,
                closed=closed,
                write=write,
                clock=clock,
                report=report,
                recycled=faults.note_recycled if faults is not None else _nobody,
            )
        except BaseException:
            lock.release()
            raise
        preparer.start()
        return cls(folder, lock, shared, preparer, model=write_model, device=spec, sync=mode)

    def commit(self, payload: bytes | bytearray | memoryview, *, durable: bool = True) -> Txid:
        """Commit one record; return its txid once it is durable.

        durable=False returns once it is appended: it is lost in a crash unless a later durable commit returned.
        Raises RecordTooLarge, LogClosed, or LogPoisoned: then this record was not acknowledged and never will be.
        """
        view = np.frombuffer(payload if isinstance(payload, bytes) else bytes(payload), np.uint8)
        if view.size > self.max_payload:
            raise RecordTooLarge(size=view.size, limit=self.max_payload)
        try:
            handle = self._caller.handle
        except AttributeError:
            handle = self._register_caller()
        code: int = commits.commit_from_python(handle, view, int(durable))
        if code < 0:
            raise self._error(code)
        return Txid(code)

    def checkpoint(self, txid: Txid) -> None:
        """Say that records up to `txid` are needed no more; whole segments of them are recycled or removed."""
        self._preparer.checkpoint(txid)

    def flush(self) -> None:
        """Make all that is appended durable. Raises LogPoisoned."""
        with self._admin:
            self._drain()

    def reconfigure(self, *, model: str | None = None, device: str | None = None, sync: str | None = None) -> None:
        """Continue on a new segment with another model, device or sync mode; meters restart from zero.

        Commits in progress end first; those that arrive meanwhile get LogClosed. What sync mode none left un-synced is
        synced before it goes on. Raises BadValue, LogPoisoned, LogClosed, FileTrouble, LogBusy where a hung disk keeps
        a commit: the log goes on as it was, or with a thread that does not end, can only be closed.
        """
        write_model = parse_model(model) if model else self.model
        spec = devices.parse_device(device) if device else self.device
        mode = devices.parse_sync(sync) if sync else self.sync
        with self._admin:
            if self._is_closed:
                raise LogClosed(self.folder)
            state = self.shared.log[0]
            control.refuse_commits(state, 1)
            self._drain()
            if not control.wait_for_callers(state, _CALLERS_PATIENCE_NS):
                control.refuse_commits(state, 0)
                raise LogBusy(self.folder)
            if not self._threads.stop():
                raise LogBusy(self.folder)
            self._sync_unsynced()
            devices.configure(self.shared.device, spec, mode)
            self.model, self.device, self.sync = write_model, spec, mode
            self.reset_meters()
            control.set_model(state, write_model.code, write_model.syncers)
            control.ask_for_roll(state)
            self._threads = self._start_threads()
            control.refuse_commits(state, 0)

    def close(self) -> None:
        """Take no more commits, make all that is appended durable, seal the log and let others open it.

        A poisoned log is only let go: nothing more is written to it. Calling it again does nothing.
        """
        with self._admin:
            if self._is_closed:
                return
            self._is_closed = True
            state, shared = self.shared.log[0], self.shared
            control.refuse_commits(state, 1)
            try:
                self._drain()
                self._sync_unsynced()
                failed = False
            except (LogPoisoned, FileTrouble):
                failed = True  # unsealed: recovery then looks at the end with more care
            idle = bool(control.wait_for_callers(state, _CALLERS_PATIENCE_NS))
            ended = self._threads.stop() and idle
            ended = self._preparer.stop() and ended
            if not failed and ended and int(state["appended"]) > 0:
                seal(state, shared.device[0], shared.buffers, shared.meters, CLOSER_ROW)
            if ended:  # else a hung disk still has our writes, and nobody else may open the log
                self._close_descriptors()
                self._lock.release()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # What is seen from outside.

    def watermarks(self) -> dict[str, int]:
        """Return control.WATERMARKS of one instant."""
        cells = np.zeros(len(control.WATERMARKS), np.int64)
        control.read_watermarks(self.shared.log[0], cells)
        return dict(zip(control.WATERMARKS, cells.tolist(), strict=True))

    def meter_totals(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return each meter summed over all threads (maxima: the largest), since the last reset."""
        parts = self._meters_in_use()
        totals = {}
        for name in METER_TOTALS:
            if name.endswith("_max_ns"):
                totals[name] = np.max([part[name].max(initial=0) for part in parts])
            else:
                totals[name] = parts[0][name].sum(axis=0) + parts[1][name].sum(axis=0)
        return totals

    def closed_segments(self) -> tuple[ClosedSegment, ...]:
        """Return the segments that were rolled away and are still there, oldest first."""
        return self._preparer.closed_segments()

    @property
    def poison(self) -> LogPoisoned | None:
        """Return the error that stopped the log, or None."""
        code = self.watermarks()["poison"]
        return LogPoisoned(code, path=self.folder) if code else None

    @property
    def durable_txid(self) -> Txid:
        """Return the highest txid known durable."""
        return Txid(self.watermarks()["durable"])

    # For native handlers and those who watch.

    def acquire_row(self) -> int:
        """Return a meter row for a native thread to write alone, until `release_row`.

        In the models where each handler syncs for itself, with the description it will sync through: one that cannot
        be had later, inside a commit, would stop the log. Raises FileTrouble.
        """
        row, shared = self._rows.take(), self.shared
        if self.model.code in (HANDLER, HANDLER_RECHECK):
            code = int(commits.open_own_description(shared.log[0], shared.device[0], shared.meters, row))
            if code:
                self._rows.give_back(row)
                raise FileTrouble(self.folder, "open the log for one more handler", OSError(code, ""))
        return row

    def release_row(self, row: int) -> None:
        """Give a meter row back; what it counted stays counted."""
        self._rows.give_back(row)

    def reset_meters(self) -> None:
        """Restart every meter from zero; no commit is in progress."""
        for part in self._meters_in_use():
            for name in METER_TOTALS:
                part[name] = 0

    def arm(self, *faults: Fault) -> None:
        """Plan faults on the live device, counted from now."""
        arm(self.shared.device, faults)

    def stall_next_sync(self, duration: Nanoseconds) -> None:
        """Make the next sync take that much longer."""
        self.shared.device["stall_ns"] = duration

    def _meters_in_use(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """Return the rows that may hold anything: of callers, and of the log's own threads."""
        meters = self.shared.meters
        return meters[: self._rows.high_water], meters[MODEL_ROW:]

    def _error(self, code: int) -> Exception:
        return LogClosed(self.folder) if code == CLOSED else LogPoisoned(-code, path=self.folder)

    def _drain(self) -> None:
        shared = self.shared
        code = int(commits.drain(shared.log[0], shared.device[0], shared.buffers, shared.meters, CLOSER_ROW))
        if code < 0:
            raise LogPoisoned(-code, path=self.folder)

    def _sync_unsynced(self) -> None:
        """Make durable what sync mode none left to the operating system: a seal, or another mode, vouches for it."""
        if self.sync == "none":
            closed = [(segment.number, segment.path) for segment in self.closed_segments()]
            code = settle(self.shared.log, self.shared.device, closed)
            if code:
                raise LogPoisoned(-code, path=self.folder)

    def _close_descriptors(self) -> None:
        state, meters = self.shared.log[0], self.shared.meters
        for descriptor in (*map(int, meters["descriptor"]), int(state["descriptor"]), int(state["folder"])):
            close_descriptor(descriptor)
        meters["descriptor"] = -1

    def _start_threads(self) -> ModelThreads:
        shared = self.shared
        threads = ModelThreads(self.model, shared.log, shared.device, shared.buffers, shared.meters, MODEL_ROW)
        threads.start()
        return threads

    def _register_caller(self) -> npt.NDArray[np.int64]:
        """Give the calling Python thread a meter row of its own, taken back when the thread is gone."""
        row = self._rows.take_for_this_thread(self._caller)
        shared = self.shared
        handle = np.zeros(commits.HANDLE_CELLS, np.int64)
        handle[commits.H_LOG] = shared.log.ctypes.data
        handle[commits.H_DEVICE] = shared.device.ctypes.data
        handle[commits.H_BUFFERS] = shared.buffers.ctypes.data
        handle[commits.H_BUFFER_BYTES] = shared.buffers.shape[1]
        handle[commits.H_METER] = shared.meters.ctypes.data + row * METER_DTYPE.itemsize
        self._caller.handle = handle
        return handle


def _nobody(*_: object) -> None:
    """Report to nobody."""
