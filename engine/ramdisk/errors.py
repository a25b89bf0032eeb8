"""What can go wrong with a RAM-disk store: one class for each thing a caller does differently.

NotTmpfs         the RAM directory is no tmpfs: name another, or say that it is meant
NotAStore        a disk directory holds something else
StoreLocked      another process has this store open
StoreClosed      the store was closed
NoSuchFile       no file of that name
NameTaken        a file of that name is there, or being written
NotAllowed       append, truncate: a file is written once
FileLost         blocks of this file were in memory only, and are gone
CorruptReplica   bytes do not match their checksums, with file, block and offset
NoRoom           neither memory nor a disk can take the block
"""

from __future__ import annotations

from pathlib import Path

from engine.errors import TidegaugeError, printable, quoted
from engine.units import format_size


class NotTmpfs(TidegaugeError):
    """The RAM directory is on a disk, and nobody said that this is meant."""

    def __init__(self, path: Path, *, file_system: str) -> None:
        super().__init__(
            f"{printable(str(path))} is {file_system}, not tmpfs: what is written there is not in memory; "
            "use --ram-dir /dev/shm, or --ram-dir-is-not-tmpfs to use it all the same"
        )
        self.path, self.file_system = path, file_system


class NotAStore(TidegaugeError):
    """A directory that a store should use holds something else."""

    def __init__(self, path: Path, *, found: str) -> None:
        super().__init__(f"{printable(str(path))}: not a tidegauge RAM-disk store: {found}; use an empty directory")
        self.path, self.found = path, found


class StoreLocked(TidegaugeError):
    """Another process has the store open."""

    def __init__(self, path: Path, *, holder: int | None) -> None:
        who = f"process {holder}" if holder else "another process"
        super().__init__(f"{printable(str(path))}: {who} has this store open; a store has one owner at a time")
        self.path, self.holder = path, holder


class StoreClosed(TidegaugeError):
    """The store was closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{printable(str(path))}: this store is closed")


class NoSuchFile(TidegaugeError):
    """No file of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no file {quoted(name)} in this store")
        self.name = name


class NameTaken(TidegaugeError):
    """A file of that name is there or being written."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a file {quoted(name)} is already in this store; delete it first")
        self.name = name


class NotAllowed(TidegaugeError):
    """A file is written once: HDFS refuses the same for lazy-persist files (HDFS-7634)."""

    def __init__(self, name: str, doing: str) -> None:
        super().__init__(f"{quoted(name)}: {doing} is not allowed, a file here is written once; write a new one")
        self.name, self.doing = name, doing


class FileLost(TidegaugeError):
    """Blocks of the file were in memory only, and memory is gone."""

    def __init__(self, name: str, *, lost: int, blocks: int, size: int) -> None:
        super().__init__(
            f"{quoted(name)}: {lost:,} of {blocks:,} blocks ({format_size(size)}) were in memory only and are lost; "
            "delete the file and write it again"
        )
        self.name, self.lost, self.blocks, self.size = name, lost, blocks, size


class CorruptReplica(TidegaugeError):
    """Bytes of a block do not match their checksum, and there is no other copy that does."""

    def __init__(self, name: str, *, block: int, offset: int, path: Path) -> None:
        super().__init__(
            f"{quoted(name)}: block {block:,} is corrupt at byte {offset:,} of the file: its bytes in "
            f"{printable(str(path))} do not match their checksum"
        )
        self.name, self.block, self.offset, self.path = name, block, offset, path


class NoRoom(TidegaugeError):
    """Neither memory nor any disk volume can take a block."""

    def __init__(self, name: str, *, size: int, why: str) -> None:
        super().__init__(
            f"{quoted(name)}: no room for a block of {format_size(size)}: {why}; "
            "delete files, or use --block-size with a smaller size"
        )
        self.name, self.size = name, size
