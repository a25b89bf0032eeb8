"""What HDFS snapshots changed: SNAPSHOT_DIFF as records, decoded on demand from the bytes that a load kept and checked.

    for entry in read_diffs(namespace):             an inode with diffs, in file order
        for diff in entry.diffs:                    newest first, as a NameNode writes them

A diff says what differs between its snapshot and the next younger state: names created since, inodes deleted since
(alone in the section, or by index of INODE_REFERENCE where they live on elsewhere), and, where attributes changed, the
inode as it was. Images of layouts -43 to -51 hold diffs in another form; of those a load keeps counts alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.fsimage.columns import Kind, Namespace
from engine.fsimage.wire import Message, WireError, read_delimited

_FILE_DIFF, _DIRECTORY_DIFF = 1, 2
_UNSET = -1


@dataclass(frozen=True, slots=True)
class InodeCopy:
    """Attributes of an inode as a snapshot saw it. What its kind does not have is 0, quotas -1."""

    mtime: int  # ms since 1970
    atime: int
    permission: int  # as in InodeColumns
    replication: int
    preferred_block_size: int
    storage_policy: int
    namespace_quota: int
    space_quota: int


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A file in one snapshot. blocks: (id, generation, bytes), where they are other than today's; else empty."""

    snapshot_id: int
    size: int
    name: bytes
    copy: InodeCopy | None  # None: attributes did not change
    blocks: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class DirectoryDiff:
    """A directory in one snapshot."""

    snapshot_id: int
    children: int  # it had then
    is_snapshot_root: bool
    name: bytes
    copy: InodeCopy | None
    created: tuple[bytes, ...]  # names that came after the snapshot
    deleted: tuple[int, ...]  # ids of inodes that went after it
    deleted_references: tuple[int, ...]  # the same by index in INODE_REFERENCE


@dataclass(frozen=True, slots=True)
class DiffEntry:
    """One inode and its diffs."""

    inode_id: int
    kind: Kind
    diffs: tuple[FileDiff, ...] | tuple[DirectoryDiff, ...]


def read_diffs(namespace: Namespace) -> Iterator[DiffEntry]:
    """Yield the diffs of a namespace; none where its image has no such section. Raises WireError on a bad one."""
    data = namespace.extras.raw.get("SNAPSHOT_DIFF", memoryview(b""))
    at, end = 0, len(data)
    while at < end:
        head, at = read_delimited(data, at, end)
        kind, inode_id, count = head.number(1), head.number(2), head.number(3)
        if kind == _FILE_DIFF:
            files = []
            for _ in range(count):  # bounded: each takes a byte at least, and reading past the end raises
                message, at = read_delimited(data, at, end)
                files.append(_file_diff(message))
            yield DiffEntry(inode_id, Kind.FILE, tuple(files))
        elif kind == _DIRECTORY_DIFF:
            directories = []
            for _ in range(count):
                message, at = read_delimited(data, at, end)
                created = []
                for _ in range(message.number(6)):
                    name, at = read_delimited(data, at, end)
                    created.append(bytes(name.data(1)))
                directories.append(_directory_diff(message, tuple(created)))
            yield DiffEntry(inode_id, Kind.DIRECTORY, tuple(directories))
        else:
            raise WireError(head.start, f"a snapshot diff of type {kind}", "FILEDIFF (1) or DIRECTORYDIFF (2)")


def _file_diff(message: Message) -> FileDiff:
    return FileDiff(
        snapshot_id=message.number(1),
        size=message.number(2),
        name=bytes(message.data(3)),
        copy=_file_copy(message),
        blocks=tuple((block.number(1), block.number(2), block.number(3)) for block in message.messages(5)),
    )


def _directory_diff(message: Message, created: tuple[bytes, ...]) -> DirectoryDiff:
    return DirectoryDiff(
        snapshot_id=message.number(1),
        children=message.number(2),
        is_snapshot_root=bool(message.number(3)),
        name=bytes(message.data(4)),
        copy=_directory_copy(message),
        created=created,
        deleted=tuple(message.numbers(7)),
        deleted_references=tuple(message.numbers(8)),
    )


def _file_copy(diff: Message) -> InodeCopy | None:
    for copy in diff.messages(4):
        return InodeCopy(
            mtime=copy.signed(2),
            atime=copy.signed(3),
            permission=copy.number(5),
            replication=copy.number(1),
            preferred_block_size=copy.number(4),
            storage_policy=copy.number(10),
            namespace_quota=_UNSET,
            space_quota=_UNSET,
        )
    return None


def _directory_copy(diff: Message) -> InodeCopy | None:
    for copy in diff.messages(5):
        return InodeCopy(
            mtime=copy.signed(1),
            atime=0,
            permission=copy.number(4),
            replication=0,
            preferred_block_size=0,
            storage_policy=0,
            namespace_quota=copy.signed(2, _UNSET),
            space_quota=copy.signed(3, _UNSET),
        )
    return None
