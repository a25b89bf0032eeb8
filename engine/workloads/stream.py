"""A steady stream of files into a RAM-disk store: shows the backlog grow when the disk is slower, and drain after.

The stream is open: pieces are due by the clock, and one that is late because a write stalled is not forgiven up to a
second, so what a slow store does to its writers shows. Old files are deleted to keep the store within `keep_bytes`.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from engine.errors import TidegaugeError
from engine.measure.clock import Clock
from engine.ramdisk.store import Store
from engine.units import MIB, SECOND

_LATEST_NS = SECOND  # what a late stream may catch up on
_JOIN_SECONDS = 30.0
# Written without a pause, then paced: a block that takes no longer than it must is measured as it is.
_PACED_BYTES = 8 * MIB


class Stream:
    """One thread that writes files until it is told to stop."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        rate: Callable[[], int],
        file_size: int,
        keep_bytes: int,
        trouble: Callable[[str], None],
        first: int = 1,
    ) -> None:
        """Prepare. rate: bytes a second as asked for now, 0 as fast as it goes; first: the first file's number."""
        self._store, self._clock, self._rate = store, clock, rate
        self._file_size, self._keep = file_size, max(keep_bytes // file_size, 1)
        self._trouble = trouble
        self._stop = threading.Event()
        self._piece = memoryview(bytearray(os.urandom(1 * MIB)))
        self._kept: deque[str] = deque()
        self.number, self.written_bytes, self.files_written = first, 0, 0
        self._fill_left = 0  # bytes still to write without a limit
        self._due_ns = 0
        self._thread = threading.Thread(target=self._run, name="ramdisk-stream", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._due_ns = self._clock.monotonic_ns()
        self._thread.start()

    def stop(self) -> bool:
        """Stop, dropping the file at hand; return whether it ended in time."""
        self._stop.set()
        if self._thread.ident:
            self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    def fill(self) -> None:
        """Write without a limit until memory is full, but no more than twice what it holds: a fast disk keeps up."""
        self._fill_left = 2 * self._store.core.memory.capacity

    @property
    def is_alive(self) -> bool:
        """Return whether it still writes."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._write_one()
        except TidegaugeError as error:
            self._trouble(str(error))

    def _write_one(self) -> None:
        name = f"stream-{self.number:08d}"
        self.number += 1
        writer = self._store.create(name)
        try:
            left, unpaced = self._file_size, 0
            while left and not self._stop.is_set():
                piece = self._piece[: min(left, len(self._piece))]
                writer.write(piece)
                left -= len(piece)
                self.written_bytes += len(piece)
                unpaced += len(piece)
                if unpaced >= _PACED_BYTES or not left:
                    self._pace(unpaced)
                    unpaced = 0
            if left:
                writer.abort()
                return
            writer.close()
        except BaseException:
            writer.abort()
            raise
        self.files_written += 1
        self._kept.append(name)
        while len(self._kept) > self._keep:
            self._store.delete(self._kept.popleft())

    def _pace(self, size: int) -> None:
        """Wait until the next piece is due."""
        if self._fill_left > 0:
            is_full = self._store.core.memory.free < self._store.settings.block_size
            self._fill_left = 0 if is_full else self._fill_left - size
            self._due_ns = self._clock.monotonic_ns()
            return
        rate = self._rate()
        if rate <= 0:
            return
        now = self._clock.monotonic_ns()
        self._due_ns = max(self._due_ns + size * SECOND // rate, now - _LATEST_NS)
        if self._due_ns > now:
            self._clock.wait(self._stop, (self._due_ns - now) / SECOND)
