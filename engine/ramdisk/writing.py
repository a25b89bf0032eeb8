"""Writing a file: its blocks one after another, each in memory if there is room, else on disk.

A writer's bytes are copied once, from its buffer into the replica's file. A block that memory stops taking half way
(someone else filled the tmpfs) moves to disk with what it has, and goes on there. A file is not a file before `close`
returned: until then a crash leaves nothing of it.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from engine.errors import FileTrouble
from engine.ramdisk.checksums import BlockChecksums
from engine.ramdisk.core import Core
from engine.ramdisk.errors import NoRoom, NotAllowed
from engine.ramdisk.journal import MAX_BLOCKS
from engine.ramdisk.memory import Grant
from engine.ramdisk.replica import Checksum, Policy, Replica, StoredFile
from engine.ramdisk.replica_file import Footer, Kind, checksum_count, encode_tail, file_size
from engine.ramdisk.volumes import Volume, replica_name
from engine.storage.file_calls import Place
from engine.units import MIB

_MOVE_PIECE = 4 * MIB


class FileWriter:
    """A file being written, by one thread. Leaving a `with` block by an exception drops it."""

    def __init__(self, core: Core, file: StoredFile) -> None:
        self._core, self._file = core, file
        self._block: _BlockWriter | None = None
        self._is_done = False
        self._synced_volumes: set[int] = set()

    @property
    def name(self) -> str:
        """Return the file's name."""
        return self._file.name

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes; on return the buffer is the caller's again.

        Raises NoRoom, FileTrouble, StoreClosed; the file can only be aborted then.
        """
        if self._is_done:
            raise NotAllowed(self.name, "writing to a file that was closed")
        view = memoryview(data).cast("B")
        while len(view):
            if self._block is None:
                self._block = self._open_block()
            piece = view[: self._block.left]
            self._block.write(piece)
            view = view[len(piece) :]
            if not self._block.left:
                self._end_block()

    def close(self) -> None:
        """Make it a file: on return it is in the journal and survives the end of this process.

        Its bytes survive a power cut when they are persisted (policy disk-sync: on return). Raises LogPoisoned.
        """
        if self._is_done:
            return
        if self._block is not None:
            self._end_block()
        for number in self._synced_volumes:
            folder = self._core.volumes[number].replicas
            try:
                self._core.calls.sync_folder(folder)
            except OSError as error:
                raise FileTrouble(folder, "sync the folder", error) from error
        self._core.publish(self._file)
        self._is_done = True

    def abort(self) -> None:
        """Drop what was written."""
        if self._is_done:
            return
        self._is_done = True
        if self._block is not None:
            self._block.abandon()
        self._core.drop_unpublished(self._file)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.abort()
            return
        try:
            self.close()
        except BaseException:
            self.abort()
            raise

    def _open_block(self) -> _BlockWriter:
        if len(self._file.blocks) >= MAX_BLOCKS:
            raise NoRoom(
                self.name, size=self._file.block_size, why=f"a file has at most {MAX_BLOCKS:,} blocks; use larger ones"
            )
        return _BlockWriter(self._core, self._core.new_block(self._file))

    def _end_block(self) -> None:
        assert self._block is not None
        volume = self._block.finalise()
        self._block = None
        if volume is not None and self._file.policy is Policy.DISK_SYNC:
            self._synced_volumes.add(volume.number)


class _BlockWriter:
    """One block being written. Exactly one of grant and volume is there."""

    def __init__(self, core: Core, replica: Replica) -> None:
        self._core, self._replica, self._file = core, replica, replica.owner
        self._at = 0
        self._began_ns = core.clock.monotonic_ns()
        self._grant: Grant | None = None
        self._volume: Volume | None = None
        self._checksums: BlockChecksums | None = None
        self._descriptor = -1
        if self._file.policy is not Policy.LAZY or not self._open_in_ram():
            self._open_on_disk()
        if self._checksums is None:
            self._checksums = self._new_checksums()

    @property
    def left(self) -> int:
        """Return how many bytes the block still takes."""
        return self._file.block_size - self._at

    def write(self, data: memoryview) -> None:
        """Append bytes, no more than `left`."""
        base = self._at
        self._at += len(data)
        if self._checksums is None:
            self._put(data, base)
            if self._checksums is not None:  # it has just moved to disk, where nobody computes them later
                self._checksums.take_in(data)
        else:
            self._checksums.write(data, lambda piece, at: self._put(piece, base + at))

    def finalise(self) -> Volume | None:
        """Write the end of the file, give it its name and hand it over; return its volume if it is on disk."""
        core, replica = self._core, self._replica
        tail = self._encode_tail()
        size = file_size(self._at, self._file.cell_chunk)
        if self._grant is not None:
            try:
                core.calls.resize(self._descriptor, size)
                core.calls.write(self._descriptor, memoryview(tail), self._at, Place.RAM_WRITE)
                self._rename(Place.RAM_FINALISE)
            except OSError as error:
                self._move_to_disk(self._at, error)
                return self.finalise()
        else:
            self._finish_on_disk(memoryview(tail))
        core.calls.close(self._descriptor)
        self._descriptor = -1
        core.finalised(
            replica,
            length=self._at,
            grant=self._grant,
            volume=self._volume.number if self._volume is not None else -1,
            write_ns=core.clock.monotonic_ns() - self._began_ns,
        )
        return self._volume

    def abandon(self) -> None:
        """Remove what was written of it."""
        core = self._core
        core.calls.close(self._descriptor)
        self._descriptor = -1
        for name in ("open", "replica"):
            try:
                core.calls.remove(self._folder / replica_name(self._replica.block_id, name))
            except OSError as error:
                core.report("warn", f"a file of a block that was given up stays: {error}")
        if self._grant is not None:
            core.give_back(self._grant)
            self._grant = None

    @property
    def _folder(self) -> Path:
        return self._volume.replicas if self._volume is not None else self._core.ram.path

    def _new_checksums(self) -> BlockChecksums | None:
        if self._file.checksum is Checksum.OFF or (
            self._file.checksum is Checksum.DEFERRED and self._file.policy is Policy.LAZY and self._volume is None
        ):
            return None
        return BlockChecksums(self._file.block_size, self._file.chunk, self._core.helper)

    def _open_in_ram(self) -> bool:
        core = self._core
        grant = core.reserve(file_size(self._file.block_size, self._file.cell_chunk))
        if grant is None:
            return False
        path = core.ram.path / replica_name(self._replica.block_id, "open")
        try:
            if grant.spare is not None:
                core.calls.rename(grant.spare.path, path, Place.RAM_CREATE)
                self._descriptor = core.calls.open_existing(path, Place.RAM_CREATE, writable=True)
                core.recycled()
            else:
                self._descriptor = core.calls.create(path, Place.RAM_CREATE)
                core.calls.resize(self._descriptor, grant.size)  # a tmpfs gives huge pages only within a file's size
        except OSError as error:
            core.give_back(grant)
            core.report("warn", f"{FileTrouble(path, 'write to the RAM disk', error)}; the block goes to disk")
            return False
        self._grant = grant
        return True

    def _open_on_disk(self) -> None:
        core, size = self._core, file_size(self._file.block_size, self._file.cell_chunk)
        volume = core.pick_volume(size)
        if volume is None:
            raise NoRoom(self._file.name, size=size, why="no disk directory has so much left")
        path = volume.replicas / replica_name(self._replica.block_id, "open")
        try:
            self._descriptor = core.calls.create(path, Place.DISK_CREATE)
        except OSError as error:
            raise FileTrouble(path, "write the block", error) from error
        self._volume = volume
        if self._checksums is None:  # deferred is the lazy writer's work, and it copies nothing here
            self._checksums = self._new_checksums()

    def _put(self, data: memoryview, offset: int) -> None:
        """Write a piece to where the block is, moving the block to disk when memory refuses it."""
        if self._grant is not None:
            try:
                self._core.calls.write(self._descriptor, data, offset, Place.RAM_WRITE)
                return
            except OSError as error:
                self._move_to_disk(offset, error)
        try:
            self._core.calls.write(self._descriptor, data, offset, Place.DISK_WRITE)
        except OSError as error:
            raise FileTrouble(self._folder, "write the block", error) from error

    def _move_to_disk(self, length: int, reason: OSError) -> None:
        """Copy the first `length` bytes of the block to a disk file and go on there."""
        core, source, grant = self._core, self._descriptor, self._grant
        assert grant is not None
        old = core.ram.path / replica_name(self._replica.block_id, "open")
        core.report("warn", f"{FileTrouble(old.parent, 'write to the RAM disk', reason)}; the block goes to disk")
        had_checksums = self._checksums is not None
        self._descriptor, self._grant = -1, None
        try:
            self._open_on_disk()
            piece = memoryview(bytearray(min(_MOVE_PIECE, length) or 1))
            for at in range(0, length, _MOVE_PIECE):
                part = piece[: min(_MOVE_PIECE, length - at)]
                core.calls.read(source, part, at, Place.READ)
                core.calls.write(self._descriptor, part, at, Place.DISK_WRITE)
                if self._checksums is not None and not had_checksums:
                    self._checksums.take_in(part)
        except OSError as error:
            raise FileTrouble(self._folder, "move a block to disk", error) from error
        finally:
            core.calls.close(source)
            try:
                core.calls.remove(old)
            except OSError as error:
                core.report("warn", str(FileTrouble(old, "remove", error)))
            core.give_back(grant)
        core.moved()

    def _finish_on_disk(self, tail: memoryview) -> None:
        calls = self._core.calls
        try:
            calls.write(self._descriptor, tail, self._at, Place.DISK_WRITE)
            if self._file.policy is Policy.DISK_SYNC:
                calls.sync(self._descriptor)
            self._rename(Place.DISK_FINALISE)
        except OSError as error:
            raise FileTrouble(self._folder, "finish the block", error) from error

    def _rename(self, place: Place) -> None:
        block_id = self._replica.block_id
        folder = self._folder
        self._core.calls.rename(folder / replica_name(block_id, "open"), folder / replica_name(block_id), place)

    def _encode_tail(self) -> bytes:
        """Return the footer and, where they are known, the checksums."""
        chunk, count = self._file.cell_chunk, checksum_count(self._at, self._file.cell_chunk)
        if self._checksums is not None:
            cells, kind = self._checksums.finish(), Kind.CRC32C
        else:
            cells, kind = np.zeros(count, np.uint32), Kind.PENDING if count else Kind.NONE
        return encode_tail(footer_of(self._core, self._replica, self._at, kind, chunk), cells)


def footer_of(core: Core, replica: Replica, length: int, kind: Kind, chunk: int) -> Footer:
    """Return a replica's footer; the checksums' own checksum is filled in when it is encoded."""
    count = checksum_count(length, chunk)
    return Footer(kind, core.store_id, replica.block_id, replica.owner.file_id, length, replica.index, chunk, count, 0)
