"""A file that appears whole or not at all, with a small file that belongs to it (an MD5).

    1. NAME.tmp is written, and locked: a second writer of the same name is refused
    2. it and the companion's NAME.tmp are synced
    3. the old companion goes first, durably: an image never stands beside the MD5 of another
    4. both are renamed into place, then the folder is synced

A crash leaves the old file with its companion, the old or the new file without one, or the new file with its own.
What fails before the rename leaves no temporary file behind; what a crash leaves of one, the next writer takes over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import FileTrouble, TidegaugeError, printable
from engine.native.writeback import start_writeback
from engine.storage.contents import opened, reported
from engine.storage.folders import TEMPORARY, remove_file, rename_file, sync_folder
from engine.units import MIB

Bytes = bytes | bytearray | memoryview
_WRITEBACK_BYTES = 32 * MIB  # written while the rest is made, so that the last sync finds little to do


class AlreadyThere(TidegaugeError):
    """The name is taken, and the caller did not ask to replace what has it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{printable(str(path))}: there is a file of that name already")
        self.path = path


class BeingWritten(TidegaugeError):
    """Another process writes a file of that name."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{printable(str(path))}: another process is writing it")
        self.path = path


class NewFile:
    """A file in the making, for one thread: `write` appends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = 0
        self._begun = 0  # up to here the disk was told to write
        self.companion: tuple[Path, bytes] | None = None  # set before the block ends: appears with the file

    def write(self, data: Bytes) -> None:
        """Append bytes. May raise OSError, which `publish` turns into a FileTrouble."""
        view = memoryview(data)
        if not view.nbytes:
            return
        view = view.cast("B")
        done = 0
        while done < len(view):
            done += os.write(self._descriptor, view[done:])
        self.size += len(view)
        if self.size - self._begun >= _WRITEBACK_BYTES:  # a refusal (no such call on this file system) costs nothing
            start_writeback(self._descriptor, self._begun, self.size - self._begun)
            self._begun = self.size

    def sync(self) -> None:
        """Make what was written durable now; the end of the block does it, too. May raise OSError."""
        os.fsync(self._descriptor)


@contextmanager
def publish(path: Path, *, replace: bool) -> Iterator[NewFile]:
    """Make a file in the block; it has its name, durably, once the block has ended well.

    replace: whether an old file may be there. Raises FileTrouble, AlreadyThere or BeingWritten.
    """
    _refuse_other(path, replace)
    temporary = path.with_name(path.name + TEMPORARY)
    companion = None
    with opened(temporary, os.O_RDWR | os.O_CREAT, "write") as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BeingWritten(path) from error
        try:
            os.ftruncate(descriptor, 0)
            new = NewFile(descriptor)
            yield new
            os.fsync(descriptor)
            if new.companion is not None:
                companion = new.companion[0].with_name(new.companion[0].name + TEMPORARY)
                _write_whole(companion, new.companion[1])
            _refuse_other(path, replace)
            if new.companion is not None and new.companion[0].exists():
                remove_file(new.companion[0])
                sync_folder(path.parent)
            rename_file(temporary, path)
            if new.companion is not None and companion is not None:
                rename_file(companion, new.companion[0])
        except BaseException:
            for left in (temporary, companion):
                if left is not None:
                    with suppress(OSError):
                        left.unlink(missing_ok=True)
            raise
    sync_folder(path.parent)


def _refuse_other(path: Path, replace: bool) -> None:
    with reported(path, "write"):
        if path.is_symlink() or path.exists():
            if path.is_symlink() or not path.is_file():
                raise FileTrouble(path, "write", OSError("it is not a regular file"))
            if not replace:
                raise AlreadyThere(path)


def _write_whole(path: Path, content: bytes) -> None:
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, "write") as descriptor:
        done = 0
        while done < len(content):
            done += os.write(descriptor, content[done:])
        os.fsync(descriptor)
