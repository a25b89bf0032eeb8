"""Copying a replica from memory to disk: four ways, checked on the way, at a limited rate.

    buffered   read and write through the page cache
    sendfile   inside the kernel, still through the page cache (HDFS since HDFS-7090)
    direct     around the page cache with O_DIRECT, so that nobody else's cached pages go
    fadvise    through the page cache, each part written out and forgotten as the next is copied

Two buffers: while one part is written, a helper reads the next and checksums it. So the bytes are compared with what
their writer computed before they reach the disk, or get the checksums they did not have, and the disk does not wait.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.measure.clock import Clock
from engine.native import chunks
from engine.ramdisk.replica_file import Footer, Kind, checksum_count, encode_tail
from engine.storage.file_calls import DIRECT_ALIGNMENT, FileCalls, Place, aligned_buffer
from engine.units import MIB, SECOND

COPY_MODES = ("buffered", "sendfile", "direct", "fadvise")
PIECE = 8 * MIB  # a multiple of every chunk size


class CopyStopped(Exception):
    """The copy was not wanted any more."""


class BadChunk(Exception):
    """The replica does not match its checksums. offset: of the first bad chunk in the block."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class Pace:
    """A limit in bytes a second that several threads share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()  # guards the next line
        self._due_ns = 0

    def take(self, size: int, rate: int, stop: threading.Event) -> None:
        """Wait until `size` more bytes may go at `rate` bytes a second; 0 is no limit."""
        if rate <= 0:
            return
        with self._guard:
            now = self._clock.monotonic_ns()
            begin = max(self._due_ns, now)
            self._due_ns = begin + size * SECOND // rate
            wait_ns = self._due_ns - now
        self._clock.wait(stop, wait_ns / SECOND)


@dataclass(frozen=True, slots=True)
class CopyJob:
    """One copy. expected: the checksums to compare with, or None. footer: kind CRC32C asks for checksums to be made."""

    source: int
    target: int
    footer: Footer
    expected: npt.NDArray[np.uint32] | None


class Copier:
    """Copies replicas, one at a time. helper: runs one thing beside the caller."""

    def __init__(
        self,
        calls: FileCalls,
        pace: Pace,
        helper: Executor,
        *,
        rate: Callable[[], int],
        stop: threading.Event,
    ) -> None:
        self._calls, self._pace, self._helper, self._rate, self._stop = calls, pace, helper, rate, stop
        self._buffers: tuple[memoryview, memoryview] | None = None

    def copy(self, job: CopyJob, mode: str, is_wanted: Callable[[], bool]) -> npt.NDArray[np.uint32]:
        """Copy the block and its end to the target, not synced yet; return its checksums.

        Raises OSError, BadChunk, CopyStopped.
        """
        length, chunk = job.footer.length, job.footer.chunk
        needs_reading = mode != "sendfile" or job.footer.kind is not Kind.NONE
        cells = np.zeros(checksum_count(length, chunk if job.footer.kind else 0), np.uint32)
        stream = chunks.new_stream()
        buffers = self._two_buffers() if needs_reading else ()
        if mode == "direct":
            self._calls.set_direct(job.target, True)
        if mode == "sendfile":
            self._calls.seek(job.target, 0)
        whole = length // DIRECT_ALIGNMENT * DIRECT_ALIGNMENT  # the rest goes with the end, composed in memory

        def fetch(number: int) -> memoryview:
            at = number * PIECE
            part = buffers[number % 2][: min(PIECE, length - at)]
            self._calls.read(job.source, part, at, Place.COPY_READ)
            if len(cells):
                self._check(part, at, chunk, stream, cells, job.expected)
            return part

        count = -(-length // PIECE)
        rest = b""
        ahead = self._helper.submit(fetch, 0) if needs_reading and count else None
        try:
            for number in range(count):
                at, part = number * PIECE, ahead.result() if ahead is not None else memoryview(b"")
                ahead = self._helper.submit(fetch, number + 1) if needs_reading and number + 1 < count else None
                if self._stop.is_set() or not is_wanted():
                    raise CopyStopped
                size = min(PIECE, whole - at)
                self._pace.take(size, self._rate(), self._stop)
                self._put(job, mode, at, size, part)
                if at + PIECE >= length and needs_reading:
                    rest = bytes(part[size:])
        finally:
            if ahead is not None:
                ahead.exception()  # it reads from the caller's descriptor: wait for it
        if not needs_reading and whole < length:
            last = bytearray(length - whole)
            self._calls.read(job.source, memoryview(last), whole, Place.COPY_READ)
            rest = bytes(last)
        if len(cells):
            chunks.finish(chunk, stream, cells)
            _compare(cells, job.expected, chunk, len(cells) - 1, len(cells))
        self._put_end(job, mode, whole, encode_tail(job.footer, cells, rest))
        return cells

    def _put(self, job: CopyJob, mode: str, at: int, size: int, part: memoryview) -> None:
        if mode == "sendfile":
            self._calls.send(job.target, job.source, at, size)
            return
        self._calls.write(job.target, part[:size], at, Place.COPY_WRITE)
        if mode == "fadvise":
            self._calls.start_write_back(job.target, at, size)
            if at:
                self._calls.drop_from_cache(job.target, at - PIECE, PIECE)

    def _put_end(self, job: CopyJob, mode: str, at: int, end: bytes) -> None:
        """Write the end of the file, from an aligned buffer where it goes around the page cache."""
        self._pace.take(len(end), self._rate(), self._stop)
        data = memoryview(end)
        if mode == "direct":
            data = aligned_buffer(len(end))
            data[:] = end
        self._calls.write(job.target, data, at, Place.COPY_WRITE)

    def _check(
        self,
        part: memoryview,
        at: int,
        chunk: int,
        stream: npt.NDArray[np.int64],
        cells: npt.NDArray[np.uint32],
        expected: npt.NDArray[np.uint32] | None,
    ) -> None:
        done = chunks.take_in(np.frombuffer(part, np.uint8), chunk, stream, cells)
        _compare(cells, expected, chunk, at // chunk, done)

    def _two_buffers(self) -> tuple[memoryview, memoryview]:
        if self._buffers is None:
            self._buffers = aligned_buffer(PIECE), aligned_buffer(PIECE)
        return self._buffers


def _compare(
    cells: npt.NDArray[np.uint32], expected: npt.NDArray[np.uint32] | None, chunk: int, first: int, end: int
) -> None:
    if expected is not None:
        different = np.flatnonzero(cells[first:end] != expected[first:end])
        if different.size:
            raise BadChunk((first + int(different[0])) * chunk)


def refuses_direct(error: OSError) -> bool:
    """Return whether an error says that the file system takes no direct writes."""
    return error.errno == errno.EINVAL
