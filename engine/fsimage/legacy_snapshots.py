"""Layouts -43 to -51 (Hadoop 2.1 to 2.3, and the reserved 1.3): inodes that carry snapshots, read in plain Python.

Directories come by id, depth first, each with its snapshots, children and diffs, so there is no run of like records
for a kernel to read; such images lived for two releases and load at some 100,000 inodes a second.

    directory   BE64 id  (nothing more where a reference led here before)
                BE32 snapshots (-1: not snapshottable), each BE32 id, then BE32 quota
                BE32 children, each UTF8 name and inode
                BE32 diffs (-1: none): BE32 snapshot, BE32 children then, u8 is the root's copy, else u8 has a copy;
                    BE32 created names, BE32 deleted inodes
                BE32 directories below it
    inode       as legacy_layout has it, and: file diffs behind a file's blocks; u8 snapshottable, [u8 has diffs] behind
                a directory's quotas; -3 for a reference: u8 has a name of its own, BE32 snapshot, u8 first of its kind,
                then the inode, or the id of one met before
    snapshots   in the header: BE32 counter, BE32 count, each BE32 id and its root's copy

Source: FSImageFormat, SnapshotFSImageFormat and FSImageSerialization of Apache Hadoop 2.2.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np

from engine.fsimage.columns import (
    DETACHED,
    NO_PARENT,
    U8,
    BlockColumns,
    Flag,
    InodeColumns,
    Kind,
    SnapshotInfo,
    SnapshotState,
    Strings,
    make_block_columns,
    make_inode_columns,
)
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.legacy_layout import Feature
from engine.fsimage.legacy_reader import LegacyError, LegacyReader

_REFERENCE = -3
_MAX_NESTING = 64  # a reference to a reference, and so on: two levels are real
_MAX_I64 = (1 << 63) - 1


@dataclass(slots=True)
class SnapshotLoad:
    """Rows of an image as they are met; `columns` makes arrays of them."""

    reader: LegacyReader
    features: Feature
    users: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    numbers: array[int] = field(default_factory=lambda: array("q"))  # _FIELDS for each row
    names: bytearray = field(default_factory=bytearray)
    name_ends: array[int] = field(default_factory=lambda: array("q"))
    blocks: array[int] = field(default_factory=lambda: array("q"))  # id, bytes, generation
    quotas: list[tuple[int, int, int]] = field(default_factory=list)
    links: list[tuple[int, bytes]] = field(default_factory=list)
    parents: array[int] = field(default_factory=lambda: array("q"))
    flags: array[int] = field(default_factory=lambda: array("q"))
    row_of: dict[int, int] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    snapshottable: list[int] = field(default_factory=list)
    directory_diff_entries: int = 0
    directory_diffs: int = 0
    file_diff_entries: int = 0
    file_diffs: int = 0

    def inode(self, name: bytes, *, parent: int, is_copy: bool, keep: bool = True, depth: int = 0) -> int:
        """Read an inode behind its name; return its row, or -1 where it is not kept (a snapshot's copy)."""
        reader, features = self.reader, self.features
        at = reader.at
        if depth > _MAX_NESTING:
            raise LegacyError(at, f"references nested {depth} deep", f"{_MAX_NESTING}")
        inode_id = reader.i64() if features & Feature.INODE_ID else -1
        replication, mtime, atime, block_size = reader.u16(), reader.i64(), reader.i64(), reader.i64()
        count = reader.i32()
        if count == _REFERENCE:
            return self._reference(parent, is_copy, keep, depth)
        flags, first_block = Flag(0), len(self.blocks)
        quota, target = (-1, -1), b""
        if count >= 0:
            kind = Kind.FILE
            self._blocks(count, keep)
            self._file_diffs()
            if is_copy and reader.u8():
                reader.utf8(), reader.utf8()
        elif count == -1:
            kind, quota = Kind.DIRECTORY, (reader.i64(), reader.i64())
            if reader.u8():
                flags |= Flag.SNAPSHOTTABLE
            else:
                reader.u8()
        elif count == -2:
            kind, target = Kind.SYMLINK, bytes(reader.text_bytes())
        else:
            raise LegacyError(at, f"{count:,} blocks", "-1 (directory), -2 (symlink), -3 (reference), or blocks")
        permission = self._permission()
        if not keep:
            del self.blocks[first_block:]
            return -1
        row = len(self.parents)
        if not 0 <= inode_id <= _MAX_I64:
            raise LegacyError(at, f"inode id {inode_id}", "0 or more")
        if inode_id in self.row_of:
            raise LegacyError(at, f"inode {inode_id} again", "once")
        self.row_of[inode_id] = row
        is_file = kind is Kind.FILE
        self.numbers.extend(
            (
                inode_id,
                mtime,
                0 if kind is Kind.DIRECTORY else atime,
                block_size * is_file,
                permission,
                replication * is_file,
            )
        )
        self.names += name
        self.name_ends.append(len(self.names))
        self.numbers.append(len(self.blocks) // 3)
        if quota != (-1, -1):
            self.quotas.append((row, *quota))
            flags |= Flag.QUOTA
        if kind is Kind.SYMLINK:
            self.links.append((row, target))
        self.parents.append(parent)
        self.flags.append(kind | flags)
        return row

    def _blocks(self, count: int, keep: bool) -> None:
        reader, total = self.reader, 0
        left = (len(reader.data) - reader.at) // 24
        if count > left:
            raise LegacyError(reader.at, f"{count:,} blocks", f"0 to {left:,}")
        for _ in range(count):
            at = reader.at
            block_id, length, generation = reader.i64(), reader.i64(), reader.i64()
            total += length
            if length < 0 or total > _MAX_I64:
                raise LegacyError(at, f"a block of {length & (1 << 64) - 1:,} bytes", "a file of less than 2^63 bytes")
            if keep:
                self.blocks.extend((block_id, length, generation))

    def _permission(self) -> int:
        user, group = self.reader.text(), self.reader.text()
        users = self.users.setdefault(user, len(self.users) + 1)
        groups = self.groups.setdefault(group, len(self.groups) + 1)
        return users << 40 | groups << 16 | self.reader.u16()

    def _reference(self, parent: int, is_copy: bool, keep: bool, depth: int) -> int:
        reader = self.reader
        reader.u8(), reader.i32()  # has a name of its own, its snapshot
        if reader.u8():
            name = bytes(reader.utf8())
            row = self.inode(name, parent=parent, is_copy=is_copy, keep=keep, depth=depth + 1)
        else:
            at, inode_id = reader.at, reader.i64()
            if inode_id not in self.row_of:
                raise LegacyError(at, f"a reference to inode {inode_id}, which has not been met", "one met before")
            row = self.row_of[inode_id]
            if parent >= 0 and self.parents[row] == DETACHED:
                self.parents[row] = parent
        if row >= 0:
            if parent >= 0:
                self.flags[row] |= Flag.BY_REFERENCE
            self.held.add(row)
        return row

    def _file_diffs(self) -> None:
        reader = self.reader
        count = reader.i32()
        if count < 0:
            return
        self.file_diff_entries += 1
        self._bounded(count, 13, "file diffs")
        for _ in range(count):
            self.file_diffs += 1
            reader.i32(), reader.i64()  # snapshot, file size
            if reader.u8():
                name = bytes(reader.utf8())
                if self.features & Feature.SLIM_SNAPSHOTS:
                    self._permission()
                    reader.take(8 + 8 + 2 + 8)  # mtime, atime, replication, block size
                else:
                    self.inode(name, parent=DETACHED, is_copy=True, keep=False)

    def _bounded(self, count: int, smallest: int, what: str) -> None:
        most = (len(self.reader.data) - self.reader.at) // smallest
        if count > most:
            raise LegacyError(self.reader.at, f"{count:,} {what}", f"0 to {most:,}")

    def tree(self, check: object) -> None:
        """Read the root and every directory below it."""
        reader = self.reader
        at = reader.at
        if reader.u16() != 0 or self.inode(b"", parent=NO_PARENT, is_copy=False) != 0 or self.flags[0] & 3 != 2:
            raise LegacyError(at, "a first record that is not the root directory", "the root")
        visited: set[int] = set()
        pending = [1]  # directories still to come, by level
        while pending:
            if pending[-1] == 0:
                pending.pop()
                continue
            pending[-1] -= 1
            if callable(check):
                check()
            below = self._directory(visited)
            if below:
                pending.append(below)

    def _directory(self, visited: set[int]) -> int:
        """Read one directory; return how many stand below it."""
        reader = self.reader
        at, inode_id = reader.at, reader.i64()
        row = self.row_of.get(inode_id, -1)
        if row < 0 or self.flags[row] & 3 != Kind.DIRECTORY:
            raise LegacyError(at, f"directory {inode_id}, which has not been met", "parents before children")
        if inode_id in visited:
            return 0
        visited.add(inode_id)
        snapshots = reader.i32()
        if snapshots >= 0:
            reader.take(4 * snapshots + 4)
            self.flags[row] |= Flag.SNAPSHOTTABLE
            self.snapshottable.append(inode_id)
        for _ in range(reader.count(16, "children")):
            name = bytes(reader.utf8())
            self.inode(name, parent=row, is_copy=False)
        self._directory_diffs()
        return reader.count(8, "directories")

    def _directory_diffs(self) -> None:
        reader = self.reader
        count = reader.i32()
        if count < 0:
            return
        self.directory_diff_entries += 1
        self._bounded(count, 17, "directory diffs")
        for _ in range(count):
            self.directory_diffs += 1
            reader.i32(), reader.i32()  # snapshot, children then
            if not reader.u8() and reader.u8():
                name = bytes(reader.utf8())
                if self.features & Feature.SLIM_SNAPSHOTS:
                    self._permission()
                    reader.take(8 + 8 + 8)  # mtime, quotas
                else:
                    self.inode(name, parent=DETACHED, is_copy=True, keep=False)
            for _ in range(reader.count(2, "created names")):
                reader.utf8()
            for _ in range(reader.count(16, "deleted inodes")):
                name = bytes(reader.utf8())
                row = self.inode(name, parent=DETACHED, is_copy=True)
                self.held.add(row)

    def columns(self) -> tuple[InodeColumns, BlockColumns, U8, Strings]:
        """Return the columns of what was read."""
        rows = len(self.parents)
        inodes, blocks = make_inode_columns(rows), make_block_columns(len(self.blocks) // 3)
        numbers = np.array(self.numbers, np.int64).reshape(rows, 7)
        inodes.inode_id[:], inodes.mtime[:], inodes.atime[:] = numbers[:, 0], numbers[:, 1], numbers[:, 2]
        inodes.preferred_block_size[:], inodes.permission[:] = numbers[:, 3], numbers[:, 4].astype(np.uint64)
        inodes.replication[:] = numbers[:, 5]
        inodes.block_start[1:] = numbers[:, 6]
        inodes.name_start[1:] = np.array(self.name_ends, np.int64)
        inodes.parent[:], inodes.flags[:] = np.array(self.parents), np.array(self.flags)
        table: I64Array = np.array(self.blocks, np.int64).reshape(-1, 3)
        blocks.block_id[:], blocks.length[:], blocks.generation[:] = table[:, 0], table[:, 1], table[:, 2]
        users, groups = ({number: name for name, number in known.items()} for known in (self.users, self.groups))
        return inodes, blocks, np.frombuffer(self.names, np.uint8), Strings(users, groups, {}, {}, is_split=True)

    def state(self, counter: int, snapshots: tuple[SnapshotInfo, ...]) -> SnapshotState:
        """Return what the image holds of snapshots; counter and list come from the header."""
        return SnapshotState(
            counter,
            tuple(self.snapshottable),
            snapshots,
            self.directory_diff_entries,
            self.directory_diffs,
            self.file_diff_entries,
            self.file_diffs,
        )


def read_header_snapshots(reader: LegacyReader, features: Feature) -> tuple[int, tuple[SnapshotInfo, ...]]:
    """Read the header's list of snapshots; return (counter, snapshots)."""
    counter = reader.i32()
    found = []
    for _ in range(reader.count(32, "snapshots")):
        snapshot_id, name, at = reader.i32(), bytes(reader.utf8()), reader.at
        root_id = reader.i64() if features & Feature.INODE_ID else -1
        reader.at = at
        SnapshotLoad(reader, features).inode(name, parent=DETACHED, is_copy=False, keep=False)
        found.append(SnapshotInfo(snapshot_id, root_id, name))
    return counter, tuple(found)
