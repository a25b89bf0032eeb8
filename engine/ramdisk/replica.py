"""Blocks and files as the store knows them in memory.

A block has one Replica for its whole life. Where its bytes are, and how safe they are, is its state:

    OPEN ──finalise──► AT_RISK ──persist──► PERSISTED ──evict──► ON_DISK        policy lazy, in memory
    OPEN ──finalise──► AT_RISK ──sync─────────────────────────► ON_DISK        policy lazy, fallen back to disk
    OPEN ──finalise──► UNSYNCED                                                policy disk: nobody syncs it
    OPEN ──finalise──► ON_DISK                                                 policy disk-sync: synced at close
    any of them ──► DELETED;   AT_RISK ──► CORRUPT (bytes do not match) or LOST (the RAM disk lost them)

A replica is a small object on purpose: a store may track a million.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from engine.ramdisk.replica_file import file_size
from engine.units import Bytes


class State(IntEnum):
    """How safe a replica is."""

    OPEN = 0
    AT_RISK = 1
    PERSISTED = 2
    ON_DISK = 3
    UNSYNCED = 4
    DELETED = 5
    CORRUPT = 6
    LOST = 7


class Policy(Enum):
    """Where the blocks of a file go."""

    LAZY = "lazy"  # memory, else disk; made durable by the lazy writer
    DISK = "disk"  # disk, through the page cache, never synced: what HDFS does
    DISK_SYNC = "disk-sync"  # disk, synced when the file is closed


class Checksum(Enum):
    """When checksums are computed."""

    ON = "on"  # by whoever writes, as it writes
    DEFERRED = "deferred"  # by the lazy writer, when it copies (HDFS-6934)
    OFF = "off"


class StoredFile:
    """One file: its settings and its blocks in order. Owned by the store's guard once it is published."""

    __slots__ = ("block_size", "blocks", "checksum", "chunk", "file_id", "is_deleted", "length", "name", "policy")

    def __init__(
        self, file_id: int, name: str, *, block_size: int, chunk: int, checksum: Checksum, policy: Policy
    ) -> None:
        self.file_id, self.name, self.block_size = file_id, name, block_size
        self.chunk, self.checksum, self.policy = chunk, checksum, policy
        self.length = 0
        self.blocks: list[Replica] = []
        self.is_deleted = False

    @property
    def cell_chunk(self) -> int:
        """Return the chunk size that replica files have cells for; 0 without checksums."""
        return 0 if self.checksum is Checksum.OFF else self.chunk


class Replica:
    """One block's replica. Owned by the store's guard, but for its bytes.

    volume: the disk volume that has a copy, or -1. pins: readers and the lazy writer at work on it; while there is
    one it is not evicted and its file is not recycled. since_ns: monotonic, when it was finalised.
    slot: the tracker's number for it, by which it is linked into a Chain; 0 where it is not tracked.
    """

    __slots__ = (
        "block_id",
        "file",
        "in_ram",
        "index",
        "length",
        "pins",
        "reads",
        "since_ns",
        "slot",
        "state",
        "volume",
    )

    def __init__(self, block_id: int, file: StoredFile | None, index: int) -> None:
        self.block_id, self.file, self.index = block_id, file, index
        self.length = self.reads = self.pins = self.since_ns = self.slot = 0
        self.volume, self.in_ram, self.state = -1, False, State.OPEN

    @property
    def owner(self) -> StoredFile:
        """Return the file it is a block of."""
        assert self.file is not None  # only a replica that was made alone, in a test, has none
        return self.file

    @property
    def stored_bytes(self) -> Bytes:
        """Return what its file takes on a volume."""
        return file_size(self.length, self.owner.cell_chunk)
