"""What is inside files, for code that is not a hot path: read whole, zero, overwrite, copy, each made durable.

Files are read with read(2), not mapped: a bad sector or a file cut short under a mapping kills the process with
SIGBUS, and those are the files that recovery and `wal verify` are for. Every refusal is a FileTrouble.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import FileTrouble
from engine.units import MIB

PositionedWrite = Callable[[int, bytes, int], int]  # os.pwrite, or one that fails as a test planned
positioned_write: PositionedWrite = os.pwrite
_PIECE = 4 * MIB
_ZEROS = bytes(1 * MIB)


def read_file(
    path: Path, *, limit: int, from_disk: bool = False, into: npt.NDArray[np.uint8] | None = None
) -> npt.NDArray[np.uint8]:
    """Return the first `limit` bytes of a regular file, fewer where it is shorter; the array is the caller's.

    into: memory to read into where it is large enough, which saves faulting in new pages: most of the time a large
    read takes. from_disk: ask the kernel to forget its clean pages first; after a failed sync they may hold bytes
    that the disk does not. Raises FileTrouble, also for what is no regular file.
    """
    with opened(path, os.O_RDONLY, "read") as descriptor:
        size = min(os.fstat(descriptor).st_size, limit)
        if from_disk:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        content = into[:size] if into is not None and into.size >= size else np.empty(size, np.uint8)
        view = memoryview(content.data)
        done = 0
        while done < size:
            count = os.preadv(descriptor, [view[done : done + _PIECE]], done)
            if count == 0:  # it was cut short meanwhile
                return content[:done].copy()
            done += count
        return content


def file_size(path: Path) -> int:
    """Return the size of a regular file. Raises FileTrouble."""
    with opened(path, os.O_RDONLY, "read") as descriptor:
        return os.fstat(descriptor).st_size


def write_zeros(descriptor: int, start: int, end: int, write: PositionedWrite = os.pwrite) -> None:
    """Write zeros to [start, end), for real: space that is only reserved makes each later sync write the journal too.

    Synced piece by piece: a log commits on the same disk meanwhile and would wait behind all of them at once. May
    raise OSError: for use inside `opened`.
    """
    at = synced = start
    while at < end:
        at += write(descriptor, _ZEROS[: end - at], at)
        if at - synced >= _PIECE:
            os.fdatasync(descriptor)
            synced = at


def zero_to_end(path: Path, start: int, size: int) -> None:
    """Make a file `size` bytes long with zeros from `start`, durably."""
    with opened(path, os.O_RDWR, "write zeros") as descriptor:
        write_zeros(descriptor, start, size)
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)


def sync_contents(path: Path) -> None:
    """Make what a file holds durable."""
    with opened(path, os.O_RDWR, "sync") as descriptor:
        os.fsync(descriptor)


def overwrite(path: Path, offset: int, content: bytes) -> None:
    """Put bytes at an offset, durably."""
    with opened(path, os.O_RDWR, "write") as descriptor:
        done = 0
        while done < len(content):
            done += os.pwrite(descriptor, content[done:], offset + done)
        os.fsync(descriptor)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file to a new one, durably, with holes where it holds zeros; the caller syncs the folder."""
    with opened(source, os.O_RDONLY, "read") as reading, opened(target, _CREATE, "create") as writing:
        size = os.fstat(reading).st_size
        at = 0
        while at < size and (piece := os.pread(reading, _PIECE, at)):
            if piece.count(0) != len(piece):
                done = 0
                while done < len(piece):
                    done += os.pwrite(writing, piece[done:], at + done)
            at += len(piece)
        os.ftruncate(writing, size)
        os.fsync(writing)


_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL


@contextmanager
def opened(path: Path, flags: int, doing: str) -> Iterator[int]:
    """Open a regular file, no symbolic link, for the block; an OSError inside becomes FileTrouble `cannot DOING`."""
    with reported(path, doing):
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("it is not a regular file")
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def reported(path: Path, doing: str) -> Iterator[None]:
    """Turn an OSError of the block into a FileTrouble that names `path`."""
    try:
        yield
    except OSError as error:
        raise FileTrouble(path, doing, error) from error
