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
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.measure.clock import Clock
from engine.native import chunks
from engine.ramdisk.replica_file import Footer, Kind, checksum_count, encode_tail
from engine.storage.file_calls import DIRECT_ALIGNMENT, FileCalls, Place, aligned_buffer
from engine.units import KIB, MIB, SECOND

COPY_MODES = ("buffered", "sendfile", "direct", "fadvise")
PIECE = 8 * MIB
FIRST_PIECE = 1 * MIB
_ROOM_FOR_END = 64 * KIB  # in each buffer, behind a piece: checksums and footer, unless chunks are tiny


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
        length, kind = job.footer.length, job.footer.kind
        cells = np.zeros(checksum_count(length, job.footer.chunk if kind else 0), np.uint32)
        if mode == "direct":
            self._calls.set_direct(job.target, True)
        if mode == "sendfile":
            self._calls.seek(job.target, 0)
        whole = length // DIRECT_ALIGNMENT * DIRECT_ALIGNMENT  # the rest goes with the end, composed in memory
        is_read = mode != "sendfile" or kind is not Kind.NONE
        pieces = list(_pieces(length))
        ahead = _Ahead(self, job, cells, pieces) if is_read else None
        part = memoryview(b"")
        try:
            for number, (at, size) in enumerate(pieces):
                if ahead is not None:
                    part = ahead.next()
                if not is_wanted():
                    raise CopyStopped
                if number + 1 < len(pieces):
                    self._put(job, mode, at, part, size)
        finally:
            if ahead is not None:
                ahead.wait()  # it reads from the caller's descriptor
        if len(cells):
            _compare(cells, job.expected, job.footer.chunk, len(cells) - 1, len(cells))
        tail = encode_tail(job.footer, cells)
        at, size = pieces[-1]
        if mode != "sendfile" and ahead is not None and len(tail) <= _ROOM_FOR_END:
            # The end follows the last piece in its buffer, so one write takes both.
            last = ahead.last_with(tail)
            self._put(job, mode, at, last, len(last))
            return cells
        self._put(job, mode, at, part, whole - at)
        rest = bytearray(part[whole - at :] if ahead is not None else length - whole)
        if ahead is None:
            self._calls.read(job.source, memoryview(rest), whole, Place.COPY_READ)
        self._put_end(job, mode, whole, bytes(rest) + tail)
        return cells

    def _put(self, job: CopyJob, mode: str, at: int, part: memoryview, size: int) -> None:
        """Bring `size` bytes to the target, in their turn. Raises CopyStopped where waiting was cut short."""
        self._pace.take(size, self._rate(), self._stop)
        if self._stop.is_set():  # also where the wait ended early: what it waited for is not due yet
            raise CopyStopped
        if mode == "sendfile":
            self._calls.send(job.target, job.source, at, size)
            return
        self._calls.write(job.target, part[:size], at, Place.COPY_WRITE)
        if mode == "fadvise":
            self._calls.start_write_back(job.target, at, size)
            if at:
                self._calls.drop_from_cache(job.target, max(at - PIECE, 0), min(at, PIECE))

    def _put_end(self, job: CopyJob, mode: str, at: int, end: bytes) -> None:
        """Write the end of the file, from an aligned buffer where it goes around the page cache."""
        self._pace.take(len(end), self._rate(), self._stop)
        if self._stop.is_set():
            raise CopyStopped
        data = memoryview(end)
        if mode == "direct":
            data = aligned_buffer(len(end))
            data[:] = end
        self._calls.write(job.target, data, at, Place.COPY_WRITE)

    def read_piece(self, job: CopyJob, at: int, size: int, number: int) -> memoryview:
        """Read a piece into the buffer whose turn it is; the helper's work."""
        part = self._two_buffers()[number % 2][:size]
        self._calls.read(job.source, part, at, Place.COPY_READ)
        return part

    def submit(self, function: Callable[[int], memoryview], number: int) -> Future[memoryview]:
        """Run something on the helper."""
        return self._helper.submit(function, number)

    def buffer(self, number: int) -> memoryview:
        """Return the whole buffer that piece `number` is in."""
        return self._two_buffers()[number % 2]

    def _two_buffers(self) -> tuple[memoryview, memoryview]:
        if self._buffers is None:
            self._buffers = aligned_buffer(PIECE + _ROOM_FOR_END), aligned_buffer(PIECE + _ROOM_FOR_END)
        return self._buffers


class _Ahead:
    """Reads and checksums the pieces of one block, one ahead of who writes them."""

    def __init__(
        self, copier: Copier, job: CopyJob, cells: npt.NDArray[np.uint32], pieces: list[tuple[int, int]]
    ) -> None:
        self._copier, self._job, self._cells, self._pieces = copier, job, cells, pieces
        self._stream = chunks.new_stream()
        self._number = 0  # of the piece that `next` returns
        self._ahead: Future[memoryview] | None = copier.submit(self._fetch, 0)

    def next(self) -> memoryview:
        """Return the next piece, and begin to read the one after it into the other buffer."""
        assert self._ahead is not None
        part = self._ahead.result()
        self._number += 1
        more = self._number < len(self._pieces)
        self._ahead = self._copier.submit(self._fetch, self._number) if more else None
        return part

    def last_with(self, tail: bytes) -> memoryview:
        """Return the last piece with `tail` right behind it."""
        number = len(self._pieces) - 1
        size, buffer = self._pieces[number][1], self._copier.buffer(number)
        buffer[size : size + len(tail)] = tail
        return buffer[: size + len(tail)]

    def wait(self) -> None:
        """Wait until nothing is being read."""
        if self._ahead is not None:
            self._ahead.exception()

    def _fetch(self, number: int) -> memoryview:
        at, size = self._pieces[number]
        part = self._copier.read_piece(self._job, at, size, number)
        chunk, cells = self._job.footer.chunk, self._cells
        if len(cells):
            done = chunks.take_in(np.frombuffer(part, np.uint8), chunk, self._stream, cells)
            _compare(cells, self._job.expected, chunk, at // chunk, done)
            if number + 1 == len(self._pieces):
                chunks.finish(chunk, self._stream, cells)
        return part


def _pieces(length: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, size) of a block's pieces: a short one first, since nothing can be written while it is read."""
    at = 0
    while at < length or at == 0:
        size = min(FIRST_PIECE if at == 0 else PIECE, length - at)
        yield at, size
        at += max(size, 1)


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
