"""A file that appears whole or not at all, with a small file that belongs to it (an MD5).

    1. NAME.tmp is written, and locked: a second writer of the same name is refused
    2. it and the companion's NAME.tmp are synced
    3. the old companion goes first, durably: an image never stands beside the MD5 of another
    4. both are renamed into place, then the folder is synced

A crash leaves the old file with its companion, the old or the new file without one, or the new file with its own.
What fails before the rename leaves no temporary file behind; what a crash leaves of one, the next writer takes over.

A long file gets its blocks ahead of its bytes, and is synced behind them while the rest is made:

    ......... synced | syncing ... | written ... | room .........
                                                 ^ size         ^ what the file system says the size is, until the end

Writing into room that is there takes a third of the time (measured on ext4), and the last sync finds little to do.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import FileTrouble, TidegaugeError, printable
from engine.native.preallocate import preallocate
from engine.storage.contents import opened, reported
from engine.storage.folders import TEMPORARY, remove_file, rename_file, sync_folder
from engine.units import MIB

Bytes = bytes | bytearray | memoryview
_SYNC_BYTES = 32 * MIB  # synced at a time while the rest is made; a shorter file is synced once, at its end
_ROOM_BYTES = 128 * MIB  # asked for at a time


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
        self._room = 0  # blocks are there up to here; -1 where the file system gives none
        self._behind: _SyncBehind | None = None
        self._failure: OSError | None = None  # what a sync behind the writer met: Linux tells it once, we until the end
        self.companion: tuple[Path, bytes] | None = None  # set before the block ends: appears with the file

    def write(self, data: Bytes) -> None:
        """Append bytes. May raise OSError, which `publish` turns into a FileTrouble."""
        view = memoryview(data)
        if not view.nbytes:
            return
        view = view.cast("B")
        is_long = self.size >= _SYNC_BYTES
        if is_long and 0 <= self._room < self.size + len(view):
            self._make_room(len(view))
        done = 0
        while done < len(view):
            done += os.write(self._descriptor, view[done:])
        self.size += len(view)
        if is_long:
            if self._behind is None:
                self._behind = _SyncBehind(self._descriptor)
            self._behind.reach(self.size)

    def sync(self) -> None:
        """Make what was written durable now; the end of the block does it, too. May raise OSError."""
        self.stop()
        if self._failure is not None:
            raise self._failure
        if self._room > self.size:
            os.ftruncate(self._descriptor, self.size)
            self._room = self.size
        os.fsync(self._descriptor)

    def stop(self) -> None:
        """Wait for a sync that runs behind the writer; nothing of ours uses the descriptor after that."""
        if self._behind is not None:
            self._failure = self._behind.stop() or self._failure
            self._behind = None

    def _make_room(self, wanted: int) -> None:
        end = self.size + max(_ROOM_BYTES, wanted)
        refused = int(preallocate(self._descriptor, self.size, end - self.size)) < 0
        self._room = -1 if refused else end  # a disk without so much room may still have room for the bytes


class _SyncBehind:
    """A thread that syncs a growing file, some megabytes at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._changed = threading.Condition()  # guards the two below
        self._written, self._is_stopped = 0, False
        self._failure: OSError | None = None  # the thread's, until it has ended
        self._thread = threading.Thread(target=self._run, name="sync-behind", daemon=True)
        self._thread.start()

    def reach(self, size: int) -> None:
        """Say how many bytes are written."""
        with self._changed:
            self._written = size
            self._changed.notify()

    def stop(self) -> OSError | None:
        """End the thread, which may be in the middle of a sync; return what failed."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        self._thread.join()
        return self._failure

    def _run(self) -> None:
        synced = 0
        while True:
            with self._changed:
                while self._written - synced < _SYNC_BYTES and not self._is_stopped:
                    self._changed.wait()
                if self._is_stopped:
                    return
                written = self._written
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                self._failure = error
                return
            synced = written


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
            try:
                yield new
                new.sync()
            finally:
                new.stop()
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
