"""Calls on large files: write, read, copy, sync, rename, each at a named place where a test may make it fail.

A `FileCalls` is handed to whoever moves replicas. Before each risky call it asks its `strike` hook, which does
nothing in life, and in a test raises the OSError that was planned, or ends the process at that very line. Everything
raises OSError: the caller knows what it was doing and turns it into words.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from engine.native.memory import make_bytes

DIRECT_ALIGNMENT = 4096
_MAX_CALL = 0x7FFFF000  # the most that one read, write or sendfile of Linux moves


class Place(Enum):
    """Where a fault can strike, named after what is being done."""

    RAM_CREATE = "create on the RAM disk"
    RAM_WRITE = "write to the RAM disk"
    RAM_FINALISE = "finalise on the RAM disk"
    DISK_CREATE = "create on disk"
    DISK_WRITE = "write to disk"
    DISK_FINALISE = "finalise on disk"
    COPY_READ = "read the RAM copy"
    COPY_CREATE = "create the disk copy"
    COPY_WRITE = "write the disk copy"
    COPY_SYNC = "sync the disk copy"
    COPY_PUBLISH = "rename the disk copy"
    FOLDER_SYNC = "sync the folder"
    PERSISTED = "note a persisted block"
    EVICT = "free the RAM copy"
    REMOVE = "remove"
    READ = "read"
    CLOSE_FILE = "close the file"
    DELETE_FILE = "delete the file"
    RECOVER = "recover"


Strike = Callable[[Place], None]


def no_strike(place: Place) -> None:
    """Let every call through."""


class FileCalls:
    """The operating system's calls on files, with the fault hook before each."""

    def __init__(self, strike: Strike = no_strike) -> None:
        """Ask `strike` before each call; it may raise OSError or not return."""
        self.strike = strike

    def create(self, path: Path, place: Place, *, direct: bool = False) -> int:
        """Create a file that is not there and open it for writing and reading."""
        self.strike(place)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags | (os.O_DIRECT if direct else 0), 0o644)

    def open_existing(self, path: Path, place: Place, *, writable: bool = False) -> int:
        """Open a regular file that is there."""
        self.strike(place)
        return os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)

    def set_direct(self, descriptor: int, direct: bool) -> None:
        """Make the writes of an open file go around the page cache, or through it again."""
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT if direct else flags & ~os.O_DIRECT)

    def write(self, descriptor: int, data: memoryview, offset: int, place: Place) -> None:
        """Write all of `data` at `offset`."""
        done = 0
        while done < len(data):
            self.strike(place)
            count = os.pwrite(descriptor, data[done : done + _MAX_CALL], offset + done)
            if count == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))  # no progress and no reason: it would never end
            done += count

    def read(self, descriptor: int, into: memoryview, offset: int, place: Place) -> None:
        """Fill `into` from `offset`. Raises OSError (EIO) where the file ends sooner."""
        done = 0
        while done < len(into):
            self.strike(place)
            count = os.preadv(descriptor, [into[done : done + _MAX_CALL]], offset + done)
            if count == 0:
                raise OSError(errno.EIO, f"it ends at byte {offset + done:,}")
            done += count

    def send(self, target: int, source: int, offset: int, length: int) -> None:
        """Copy a range to where `target` stands, inside the kernel."""
        done = 0
        while done < length:
            self.strike(Place.COPY_WRITE)
            count = os.sendfile(target, source, offset + done, min(length - done, _MAX_CALL))
            if count == 0:
                raise OSError(errno.EIO, f"it ends at byte {offset + done:,}")
            done += count

    def seek(self, descriptor: int, offset: int) -> None:
        """Make the next `send` go to `offset`."""
        os.lseek(descriptor, offset, os.SEEK_SET)

    def resize(self, descriptor: int, size: int) -> None:
        """Cut or extend a file."""
        os.ftruncate(descriptor, size)

    def size(self, descriptor: int) -> int:
        """Return a file's size."""
        return os.fstat(descriptor).st_size

    def sync(self, descriptor: int) -> None:
        """Make a file durable; after an error nothing may be believed of it."""
        self.strike(Place.COPY_SYNC)
        os.fsync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Make a folder's entries durable."""
        self.strike(Place.FOLDER_SYNC)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def start_write_back(self, descriptor: int, offset: int, length: int) -> None:
        """Ask that a range be written soon, without waiting; best effort."""
        _sync_file_range(descriptor, offset, length, _RANGE_WRITE)

    def drop_from_cache(self, descriptor: int, offset: int, length: int) -> None:
        """Wait until a range is written and forget its pages; length 0 is to the end."""
        if length:
            _sync_file_range(descriptor, offset, length, _RANGE_WAIT_BEFORE | _RANGE_WRITE | _RANGE_WAIT_AFTER)
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)

    def rename(self, old: Path, new: Path, place: Place) -> None:
        """Rename; what stood under the new name is gone."""
        self.strike(place)
        old.rename(new)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        self.strike(Place.REMOVE)
        path.unlink(missing_ok=True)

    def close(self, descriptor: int) -> None:
        """Close; -1 is none."""
        if descriptor >= 0:
            os.close(descriptor)


def aligned_buffer(size: int) -> memoryview:
    """Return `size` zero bytes at an address that direct I/O takes."""
    return memoryview(make_bytes(size, DIRECT_ALIGNMENT).data).cast("B")


def can_write_directly(folder: Path) -> bool:
    """Return whether files in a folder take writes around the page cache; some file systems refuse at the write."""
    path = folder / f".direct-{os.getpid()}"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError:
        path.unlink(missing_ok=True)
        return False
    try:
        return os.pwrite(descriptor, aligned_buffer(DIRECT_ALIGNMENT), 0) == DIRECT_ALIGNMENT
    except OSError:
        return False
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


# Flags of sync_file_range(2), which Python's os module does not have.
_RANGE_WAIT_BEFORE, _RANGE_WRITE, _RANGE_WAIT_AFTER = 1, 2, 4
_libc = ctypes.CDLL(None, use_errno=True)
_libc.sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def _sync_file_range(descriptor: int, offset: int, length: int, flags: int) -> None:
    """Call sync_file_range. A hint: errors are left to the fsync that follows, whose answer counts."""
    _libc.sync_file_range(descriptor, offset, length, flags)
