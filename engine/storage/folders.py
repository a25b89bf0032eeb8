"""Folders: what is in one, entries that survive a crash, and a lock that lets one writer in.

A new or renamed file is durable only once its folder was synced too, and a file appears under its name only
when it is whole: it is made as NAME.tmp, synced, renamed, and then the folder is synced.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.storage.contents import PositionedWrite, opened, overwrite, reported, write_zeros

LOCK_NAME = "LOCK"
TEMPORARY = ".tmp"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder; links count as what they are, not as what they point to."""

    name: str
    is_file: bool


def list_folder(folder: Path) -> tuple[Entry, ...]:
    """Return what is in a folder, by name. Raises FileTrouble."""
    with reported(folder, "list the folder"), os.scandir(folder) as found:
        entries = [Entry(item.name, item.is_file(follow_symlinks=False)) for item in found]
    return tuple(sorted(entries, key=lambda entry: entry.name))


def make_folder(folder: Path) -> bool:
    """Make a folder whose parent exists, durably; return whether it was missing. Raises FileTrouble."""
    with reported(folder, "make the folder"):
        try:
            folder.mkdir()
        except FileExistsError:
            if folder.is_dir():
                return False
            raise
    sync_folder(folder.parent)
    return True


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable. Raises FileTrouble."""
    with reported(folder, "sync the folder"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def create_zeroed(path: Path, size: int, *, first: bytes = b"", write: PositionedWrite = os.pwrite) -> None:
    """Make a file of `size` bytes that begins with `first` and is zero from there, durable with its entry.

    Nothing is left behind where it fails, with ENOSPC for instance. Raises FileTrouble.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with opened(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, f"create {size:,} bytes") as descriptor:
            write_zeros(descriptor, 0, size, write)
            if first:
                write(descriptor, first, 0)
            os.fsync(descriptor)
        rename_file(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def recycle_file(old: Path, new: Path, *, zero_bytes: int) -> None:
    """Give a file that is no longer needed another name, its first bytes zeroed: durable on return.

    A crash leaves the file under the old name and whole, as NEW.tmp, or under the new name with its beginning zeroed;
    never whole under the new name, and never without its beginning under the old one. Raises FileTrouble.
    """
    temporary = new.with_name(new.name + TEMPORARY)
    rename_file(old, temporary)
    sync_folder(new.parent)
    overwrite(temporary, 0, bytes(zero_bytes))
    rename_file(temporary, new)
    sync_folder(new.parent)


def rename_file(old: Path, new: Path) -> None:
    """Rename within a folder; the caller syncs the folder. Raises FileTrouble."""
    with reported(old, f"rename to {new.name}"):
        old.rename(new)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there; the caller syncs the folder. Raises FileTrouble."""
    with reported(path, "remove"):
        path.unlink(missing_ok=True)


class FolderLock:
    """The right to write in a folder, held until `release` or the end of the process, however it ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let another writer in; harmless when called again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def lock_folder(folder: Path) -> FolderLock | None:
    """Take the folder's lock, or return None where another writer holds it. Raises FileTrouble.

    The lock belongs to the open file, not the process: a second open in the same process is refused as well.
    """
    path = folder / LOCK_NAME
    with reported(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _WHOLE_FILE)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
    return FolderLock(descriptor)


def lock_holder(folder: Path) -> int | None:
    """Return the process that wrote itself into the lock file, or None: for messages only."""
    try:
        with (folder / LOCK_NAME).open("rb") as file:
            text = file.read(20).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def is_locked(folder: Path) -> bool:
    """Return whether a writer has the folder locked now; asks without taking the lock, so it is in nobody's way."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _WHOLE_FILE)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


_FLOCK = struct.Struct("@hhqqi4x")  # struct flock of Linux on 64 bits: type, whence, start, length, pid
_WHOLE_FILE = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
