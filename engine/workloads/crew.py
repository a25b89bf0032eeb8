"""The crew: handler threads that can be added and taken away while a log runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.errors import TidegaugeError
from engine.native.memory import make_records
from engine.units import Bytes, Nanoseconds
from engine.wal.errors import RecordTooLarge
from engine.wal.log import Log
from engine.wal.opening import MAX_CALLERS
from engine.wal.state import CLOSED
from engine.workloads.handlers import HANDLER_DTYPE, make_pool, run_handler

_JOIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSettings:
    """What each handler of a crew does."""

    value_size_bytes: Bytes
    sync_every: int = 1
    limit: int = 0  # records each; 0: until stopped
    rate: int = 0  # records per second of the whole crew, open loop; 0: closed loop
    seed: int = 1


class Crew:
    """Handlers 0 to n-1 of one log. One thread manages a crew; totals may be read from any."""

    def __init__(self, log: Log, settings: HandlerSettings) -> None:
        """Make the payload pool; no handler runs yet. Raises RecordTooLarge for values that the log cannot take."""
        if settings.value_size_bytes > log.max_payload:
            raise RecordTooLarge(size=settings.value_size_bytes, limit=log.max_payload)
        self.settings = settings
        self.pool = make_pool(settings.value_size_bytes, settings.seed)
        self._log = log
        self._handlers = make_records(MAX_CALLERS, HANDLER_DTYPE)
        self._handlers["number"] = np.arange(MAX_CALLERS)
        self._threads: list[threading.Thread] = []
        self._leaving: list[threading.Thread] = []  # told to stop, still inside a commit when last looked at

    @property
    def size(self) -> int:
        """Return how many handlers are wanted."""
        return len(self._threads)

    def resize(self, count: int, *, start_ns: Nanoseconds = Nanoseconds(0)) -> None:
        """Have `count` handlers: start those missing, or stop the last ones and wait for their record in progress.

        start_ns: when an open loop's first record is meant to start, monotonic. Waits for a disk that does not answer
        for a bounded time. Raises TidegaugeError where it would have to start a handler that has not ended, or the
        system gives no thread or descriptor for one more: those that run by then go on.
        """
        count = min(max(count, 0), MAX_CALLERS)
        self._handlers["stop"][count : len(self._threads)] = 1
        self._leaving.extend(self._threads[count:])
        self._threads = self._threads[:count]
        if not self._have_left() and len(self._threads) < count:
            inside = f"stopped handlers that are still inside a commit: {len(self._leaving):,}"
            raise TidegaugeError(f"{inside}; the disk does not answer, so no handler was started")
        while len(self._threads) < count:
            self._start_one(len(self._threads), count, start_ns)

    def ask_to_stop(self) -> None:
        """Tell every handler to end after its record in progress; does not wait."""
        self._handlers["stop"] = 1

    def wait(self, seconds: float) -> bool:
        """Wait for handlers that end by themselves or were asked to; return whether all have."""
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                return False
        return True

    def records(self) -> npt.NDArray[np.int64]:
        """Return how many records each handler has committed since it was first started."""
        return self._handlers["done"].copy()

    def result(self) -> int:
        """Return the code that ended a handler early, or 0; a handler that met a closed log ended as asked."""
        results = self._handlers["result"]
        failed = results[(results != 0) & (results != CLOSED)]
        return int(failed[0]) if failed.size else 0

    def span_ns(self) -> Nanoseconds:
        """Return the time from the first handler's start to the last one's end; all have ended."""
        used = self._handlers[self._handlers["ended_ns"] > 0]
        return Nanoseconds(int(used["ended_ns"].max() - used["began_ns"].min())) if used.size else Nanoseconds(0)

    def restart_count(self) -> None:
        """Number records from 0 again; no handler runs."""
        for field in ("done", "result", "began_ns", "ended_ns"):
            self._handlers[field] = 0

    def _start_one(self, number: int, count: int, start_ns: Nanoseconds) -> None:
        handler = self._handlers[number]
        settings, shared = self.settings, self._log.shared
        handler["stop"] = handler["result"] = 0
        handler["limit"], handler["sync_every"] = settings.limit, settings.sync_every
        if settings.rate:
            # Handlers share the rate evenly and start one after the other, so that records are spread in time.
            handler["interval_ns"] = count * 1_000_000_000 // settings.rate
            handler["first_ns"] = start_ns + number * 1_000_000_000 // settings.rate
        row = self._log.acquire_row()
        payload = np.zeros(settings.value_size_bytes, np.uint8)
        arguments = (shared.log[0], shared.device[0], shared.buffers, shared.meters, row, handler, self.pool, payload)
        thread = threading.Thread(target=self._run, args=(row, arguments), name=f"handler-{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._log.release_row(row)
            raise TidegaugeError(
                f"handler {number + 1:,} of {count:,} did not start: {error} (see ulimit -u, -v)"
            ) from error
        self._threads.append(thread)

    def _have_left(self) -> bool:
        """Wait for handlers that were told to stop, as long as one may take; return whether all have ended."""
        for thread in self._leaving:
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                break
        self._leaving = [thread for thread in self._leaving if thread.is_alive()]
        return not self._leaving

    def _run(self, row: int, arguments: tuple[object, ...]) -> None:
        try:
            run_handler(*arguments)
        finally:
            self._log.release_row(row)
