"""The namespace of an image as columns: one row an inode, in the order of the file.

Row r is one inode; numpy columns hold what every inode has, CSR pairs what some have many of:

    names[name_start[r] : name_start[r + 1]]          the last path component, bytes as stored; the root's is empty
    block_*[block_start[r] : block_start[r + 1]]      the blocks of a file, in file order; a file's size is their sum
    children[child_start[r] : child_start[r + 1]]     rows of a directory's children, in name order (bytes)

Bytes an inode, beside its name: 62 in `InodeColumns`, 24 a block, 8 in `Tree`. What few inodes have (ACLs, xattrs,
quotas, symlink targets, clients of open files) stands in `Sparse` tables by row; the sections that only a save or
an expert reads (snapshots, diffs, references, cache, tokens) stay as bytes, checked, decoded on demand.
Columns are written by the loader alone; once a `Namespace` is handed out nobody writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ROOT_ID = 16385  # the inode id of "/" since ids exist; older layouts get ROOT_ID + row
NO_PARENT = -1  # parent of the root
DETACHED = -2  # parent of what no directory lists: held by a snapshot, or an orphan
UNSET_QUOTA = -1
MAX_ROWS = (1 << 31) - 2
MAX_BLOCKS = (1 << 32) - 2

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]
U16 = npt.NDArray[np.uint16]
U8 = npt.NDArray[np.uint8]


class Kind(IntEnum):
    """What an inode is: the low two bits of `flags`, numbered as the protobuf layout numbers them."""

    FILE = 1
    DIRECTORY = 2
    SYMLINK = 3


class Flag(IntFlag):
    """The other bits of `flags`."""

    KIND = 3
    UNDER_CONSTRUCTION = 4
    STRIPED = 8  # blocks are block groups of `ec_policy`; `replication` is 0
    ACL = 16
    XATTRS = 32
    QUOTA = 64  # a namespace or space quota is set
    TYPE_QUOTA = 128
    SNAPSHOTTABLE = 256
    IN_SNAPSHOT_ONLY = 512  # not in the current tree; a snapshot holds it
    BY_REFERENCE = 1024  # the current tree reaches it through INODE_REFERENCE (renamed under a snapshot)


class InodeColumns(NamedTuple):
    """What every inode has. A tuple of arrays, since kernels take it as one argument."""

    inode_id: I64  # [n]
    parent: I32  # [n] row, NO_PARENT or DETACHED
    name_start: I64  # [n + 1] into `names`
    mtime: I64  # [n] ms since 1970
    atime: I64  # [n] ms since 1970; 0 for directories
    preferred_block_size: I64  # [n] bytes; 0 for what is no file
    permission: U64  # [n] user << 40 | group << 16 | mode: ids of `Strings.users` and `.groups`
    replication: U16  # [n] 0 for what is no file, and for striped files
    flags: U16  # [n] Kind and Flag
    storage_policy: U8  # [n] 0: inherited
    ec_policy: U8  # [n] erasure coding policy of a striped file, else 0
    block_start: U32  # [n + 1] into BlockColumns


class BlockColumns(NamedTuple):
    """The blocks of all files."""

    block_id: I64  # [b]
    generation: I64  # [b] generation stamp
    length: I64  # [b] bytes


class Tree(NamedTuple):
    """Children by row: the inverse of `parent`, for directories and everything else (which has none)."""

    child_start: I32  # [n + 1] into children
    children: I32  # [inodes with a parent] rows, by name within a directory


def make_inode_columns(rows: int) -> InodeColumns:
    """Return zeroed columns for `rows` inodes; pages are touched only when written."""
    return InodeColumns(
        inode_id=np.zeros(rows, np.int64),
        parent=np.zeros(rows, np.int32),
        name_start=np.zeros(rows + 1, np.int64),
        mtime=np.zeros(rows, np.int64),
        atime=np.zeros(rows, np.int64),
        preferred_block_size=np.zeros(rows, np.int64),
        permission=np.zeros(rows, np.uint64),
        replication=np.zeros(rows, np.uint16),
        flags=np.zeros(rows, np.uint16),
        storage_policy=np.zeros(rows, np.uint8),
        ec_policy=np.zeros(rows, np.uint8),
        block_start=np.zeros(rows + 1, np.uint32),
    )


def make_block_columns(blocks: int) -> BlockColumns:
    """Return zeroed columns for `blocks` blocks."""
    return BlockColumns(*(np.zeros(blocks, np.int64) for _ in BlockColumns._fields))


def column_bytes(*tables: Iterable[npt.NDArray[Any]]) -> int:
    """Return the bytes that the arrays of these tables occupy."""
    return sum(column.nbytes for table in tables for column in table)


class Acls(NamedTuple):
    """ACL entries beyond the mode, by row."""

    row: I32  # [a] ascending
    start: I32  # [a + 1] into entry
    entry: U32  # name << 6 | scope << 5 | type << 3 | permission, as stored


class Xattrs(NamedTuple):
    """Extended attributes, by row."""

    row: I32  # [x] ascending; a row repeats for each attribute
    name: U32  # [x] namespace << 30 | name id << 6 | extension << 5, as stored
    value_start: I64  # [x + 1] into values
    values: U8


class Quotas(NamedTuple):
    """Namespace and space quotas of the directories that have one, by row."""

    row: I32  # [q] ascending
    namespace: I64  # [q] UNSET_QUOTA or a count
    space: I64  # [q] UNSET_QUOTA or bytes


class TypeQuotas(NamedTuple):
    """Space quotas by storage type, by row."""

    row: I32  # [t] ascending; a row repeats for each type
    storage_type: U8  # [t] DISK 1, SSD 2, ARCHIVE 3, RAM_DISK 4, PROVIDED 5, NVDIMM 6
    quota: I64  # [t]


class Texts(NamedTuple):
    """One byte string for each of some rows: symlink targets, clients of open files."""

    row: I32  # [s] ascending
    start: I64  # [s + 1] into heap
    heap: U8


@dataclass(frozen=True, slots=True)
class Sparse:
    """What few inodes have."""

    acls: Acls
    xattrs: Xattrs
    quotas: Quotas
    type_quotas: TypeQuotas
    symlink_targets: Texts
    client_names: Texts  # of files under construction
    client_machines: Texts


@dataclass(frozen=True, slots=True)
class Strings:
    """Names behind ids. Before layout -65 the four are one table; since then user 1 and group 1 differ."""

    users: Mapping[int, str]
    groups: Mapping[int, str]
    xattr_names: Mapping[int, str]
    others: Mapping[int, str]  # ACL names before -65, and what has no space of its own
    is_split: bool  # four id spaces (layout <= -65)

    def user(self, permission: int) -> str:
        """Return the owner's name of a packed permission; "" where the table lacks it."""
        return self.users.get(permission >> 40, "")

    def group(self, permission: int) -> str:
        """Return the group's name of a packed permission; "" where the table lacks it."""
        return self.groups.get(permission >> 16 & 0xFFFFFF, "")


@dataclass(frozen=True, slots=True)
class Header:
    """What an image says about itself. Fields a layout lacks are None."""

    layout_version: int  # negative
    is_protobuf: bool
    codec: str  # "" where nothing is compressed, else the class name as stored
    namespace_id: int
    inode_count: int  # as stated by the image
    generation_v1: int | None = None
    generation_v2: int | None = None
    generation_v1_limit: int | None = None
    last_block_id: int | None = None
    last_striped_block_id: int | None = None
    last_inode_id: int | None = None
    txid: int | None = None
    rolling_upgrade_start: int | None = None  # ms since 1970


@dataclass(frozen=True, slots=True)
class OpenFile:
    """One entry of the list of files under construction."""

    inode_id: int
    path: bytes


@dataclass(frozen=True, slots=True)
class References:
    """INODE_REFERENCE by index: an inode renamed while a snapshot holds its old place."""

    referred_id: I64
    names: tuple[bytes, ...]  # b"" for the new place (DstReference), else the old name (WithName)
    dst_snapshot: I64  # -1: not set
    last_snapshot: I64  # -1: not set


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One HDFS snapshot: its name is the name of its root's copy."""

    snapshot_id: int
    root_id: int
    name: bytes


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """What an image holds of HDFS snapshots; diffs are counted here and decoded by `snapshots.read_diffs`."""

    counter: int
    snapshottable: tuple[int, ...]  # inode ids
    snapshots: tuple[SnapshotInfo, ...]
    directory_diff_entries: int  # directories that have diffs
    directory_diffs: int
    file_diff_entries: int
    file_diffs: int


@dataclass(frozen=True, slots=True)
class CachePool:
    """One cache pool; absent fields are None."""

    name: str
    owner: str | None
    group: str | None
    mode: int | None
    limit: int | None
    max_relative_expiry: int | None
    default_replication: int | None = None


@dataclass(frozen=True, slots=True)
class CacheDirective:
    """One cache directive; `expiration` is ms, and relative where `is_relative`."""

    directive_id: int
    path: str
    replication: int
    pool: str
    expiration: int | None = None
    is_relative: bool = False


@dataclass(frozen=True, slots=True)
class CacheState:
    """Pools and directives of the cache manager."""

    next_directive_id: int
    pools: tuple[CachePool, ...]
    directives: tuple[CacheDirective, ...]


@dataclass(frozen=True, slots=True)
class SecretState:
    """Delegation state, counted; keys and tokens themselves are never kept."""

    current_key_id: int
    token_sequence: int
    keys: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ErasureCodingPolicy:
    """One erasure coding policy that the image carries."""

    policy_id: int
    name: str
    codec: str
    data_units: int
    parity_units: int
    cell_size: int
    state: str  # DISABLED, ENABLED, REMOVED, or "" before states existed
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Extras:
    """Sections beside the tree. `raw` holds their bytes as they stand in the file, decompressed, for saving again."""

    open_files: tuple[OpenFile, ...] = ()
    references: References | None = None
    snapshots: SnapshotState | None = None
    cache: CacheState | None = None
    secrets: SecretState | None = None
    ec_policies: tuple[ErasureCodingPolicy, ...] = ()
    unknown_sections: tuple[tuple[str, int], ...] = ()  # name, bytes
    raw: Mapping[str, memoryview] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Namespace:
    """One image in memory. Paths, lookups and walks are functions of `tree.py`; checks are in `integrity.py`."""

    header: Header
    inodes: InodeColumns
    names: U8
    blocks: BlockColumns
    tree: Tree
    strings: Strings
    sparse: Sparse
    extras: Extras
    root: int  # row of "/"

    @property
    def rows(self) -> int:
        """Inodes in the image, those that only snapshots hold included."""
        return int(self.inodes.inode_id.size)

    def kind(self, row: int) -> Kind:
        """Return what the inode at `row` is."""
        return Kind(int(self.inodes.flags[row]) & Flag.KIND)

    def name(self, row: int) -> bytes:
        """Return the last path component of `row`; empty for the root."""
        return bytes(self.names[self.inodes.name_start[row] : self.inodes.name_start[row + 1]])

    def size(self, row: int) -> int:
        """Return the bytes of a file, the sum of its blocks; 0 for anything else."""
        return int(self.blocks.length[self.inodes.block_start[row] : self.inodes.block_start[row + 1]].sum())

    def children(self, row: int) -> I32:
        """Return the rows of a directory's children, in name order; a view."""
        return self.tree.children[self.tree.child_start[row] : self.tree.child_start[row + 1]]

    def column_bytes(self) -> int:
        """Return the bytes of all columns, names apart."""
        return column_bytes(self.inodes, self.blocks, self.tree)
