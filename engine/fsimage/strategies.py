"""Four ways to load a legacy image, side by side: what HADOOP-3248 changed, and what columns change.

    objects        as 0.17 did: an object for each path, permission and block; each inode's parent found by walking from
                   the root (getExistingPathINode, 19.9 M calls and 4 of the 7 minutes of the report)
    lean           the report's change to loading: no path and no permission objects, owners as numbers; same walk
    parent-cache   HADOOP-3364: records of one directory stand together, so the parent is the last one's, and no walk
    columnar       ours: kernels, columns, all threads (load.py)

The first three are one thread's, as the NameNode's load was, and plain Python, as it was plain Java: compare them with
each other, and columnar with the clock. Full-path layouts alone: later ones write each parent once.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from struct import Struct

from engine.errors import BadValue
from engine.fsimage.container import open_container
from engine.fsimage.errors import LoadCancelled
from engine.fsimage.legacy_layout import Feature
from engine.fsimage.legacy_load import LegacyHead, damage, read_head
from engine.fsimage.legacy_reader import LegacyError, LegacyReader
from engine.fsimage.load import LOADING, load_image
from engine.measure.clock import Clock
from engine.measure.phases import Phase, PhaseTree
from engine.units import Bytes, Nanoseconds

_ALL_TIMES = Feature.MTIME | Feature.ATIME | Feature.BLOCK_SIZE
_WITH_ATIME, _BLOCK, _OLD_BLOCK = Struct(">Hqqq"), Struct(">qqq"), Struct(">qq")
_CHECK_EVERY = 1024  # records between two looks at the cancel flag: some tens of milliseconds of plain Python


class Strategy(Enum):
    """How to load; the value is what a flag takes."""

    OBJECTS = "objects"
    LEAN = "lean"
    PARENT_CACHE = "parent-cache"
    COLUMNAR = "columnar"


@dataclass(frozen=True, slots=True)
class StrategyRun:
    """What one load took. `resolve_*` is the search for parents; its time is counted call by call, as profiled then."""

    strategy: Strategy
    inodes: int
    elapsed: Nanoseconds
    resolve_calls: int  # walks from the root; for columnar, lookups in the table of directories
    resolve_elapsed: Nanoseconds | None  # None for columnar: a lookup is too short to time
    memory: Bytes = Bytes(0)  # what the loaded tree holds, its names among it
    name_bytes: Bytes | None = None  # of that, names; None where they are not apart


@dataclass(frozen=True, slots=True)
class _Permission:
    """FsPermission: the mode, as an object of its own."""

    mode: int


@dataclass(frozen=True, slots=True)
class _PermissionStatus:
    """Owner, group and mode of one record, allocated for each as 0.17 did."""

    user: str
    group: str
    permission: _Permission


@dataclass(frozen=True, slots=True)
class _Path:
    """A full path as an object: Hadoop's UTF8, then its text."""

    data: bytes

    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class _Block:
    """One block of a file."""

    block_id: int
    length: int
    generation: int = 0


class Node:
    """One inode in the object tree; directories keep children sorted by name and find them by binary search."""

    __slots__ = ("blocks", "children", "name", "names", "owner", "times")

    def __init__(self, name: bytes, owner: object, times: tuple[int, int, int, int], blocks: object) -> None:
        self.name, self.owner, self.times, self.blocks = name, owner, times, blocks
        self.names: list[bytes] | None = None if blocks is not None else []
        self.children: list[Node] | None = None if blocks is not None else []

    def child(self, name: bytes) -> Node | None:
        """Return the child of that name, or None."""
        if self.names is None or self.children is None:
            return None
        at = bisect_left(self.names, name)
        return self.children[at] if at < len(self.names) and self.names[at] == name else None

    def add(self, child: Node) -> bool:
        """Put a child at its place; return False where this is no directory."""
        if self.names is None or self.children is None:
            return False
        at = bisect_left(self.names, child.name)
        self.names.insert(at, child.name)
        self.children.insert(at, child)
        return True

    def walk(self, path: bytes = b"") -> Iterator[tuple[bytes, Node]]:
        """Yield (path, node) of this node and all below, parents first."""
        stack = [(path, self)]
        while stack:
            at, node = stack.pop()
            yield at or b"/", node
            stack.extend((at + b"/" + child.name, child) for child in reversed(node.children or []))


@dataclass(slots=True)
class _Resolver:
    """Finds parents, and counts what that costs."""

    root: Node
    clock: Clock
    calls: int = 0
    elapsed: int = 0

    def from_root(self, parts: list[bytes]) -> Node | None:
        """Walk from the root along all parts but the last: getExistingPathINode."""
        begin = self.clock.monotonic_ns()
        node: Node | None = self.root
        for part in parts[1:-1]:
            if node is None:
                break
            node = node.child(part)
        self.calls += 1
        self.elapsed += self.clock.monotonic_ns() - begin
        return node


def run_strategy(
    path: Path,
    strategy: Strategy,
    *,
    clock: Clock,
    threads: int = 2,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
    most: int | None = None,
    memory: Callable[[], int] = lambda: 0,
) -> StrategyRun:
    """Load a full-path legacy image by a strategy, and say what it took. Raises as load_image does, and BadValue.

    phases: the tree to report to. most: inodes after which the object strategies stop; the first of an image are a
    whole tree, since parents stand before children. memory: says how many bytes the process holds at the moment.
    """
    held = memory()
    if strategy is Strategy.COLUMNAR:
        begin = clock.monotonic_ns()
        lookups: list[int] = []
        loaded = load_image(
            path, clock=clock, threads=threads, phases=phases, cancel=cancel, check_md5=False, lookups=lookups
        )
        elapsed = Nanoseconds(clock.monotonic_ns() - begin)
        names = Bytes(loaded.namespace.names.size)
        return StrategyRun(
            strategy, loaded.namespace.rows, elapsed, sum(lookups), None, Bytes(memory() - held), names
        )  # fmt: skip
    begin = clock.monotonic_ns()
    root, inodes, resolver = load_objects(path, strategy, clock=clock, phases=phases, cancel=cancel, most=most)
    elapsed = Nanoseconds(clock.monotonic_ns() - begin)
    held = Bytes(memory() - held)
    del root
    return StrategyRun(strategy, inodes, elapsed, resolver.calls, Nanoseconds(resolver.elapsed), held)


def load_objects(
    path: Path,
    strategy: Strategy,
    *,
    clock: Clock,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
    most: int | None = None,
) -> tuple[Node, int, _Resolver]:
    """Load into a tree of objects; return its root, the inodes read (`most` at most), and the resolver."""
    tree = PhaseTree(clock) if phases is None else phases
    container = open_container(path)
    if container.is_protobuf:
        raise BadValue(what="image", given=path.name, allowed=f"a legacy layout for strategy {strategy.value}")
    head = read_head(container)
    if head.features & Feature.LOCAL_NAMES or head.header.codec:
        raise BadValue(
            what="image", given=path.name, allowed="an uncompressed layout with full paths (to -29, -32, -41)"
        )
    rows = head.header.inode_count if most is None else min(head.header.inode_count, max(most, 1))
    with (
        tree.phase(LOADING, size_bytes=Bytes(container.data.size)) as loading,
        loading.phase("Inodes", total=rows) as step,
    ):
        try:
            root, resolver = _read_tree(head, rows, strategy, clock, step, cancel or threading.Event())
        except LegacyError as error:
            raise damage(container, error.offset, error.found, error.allowed) from error
    return root, rows, resolver


def _read_tree(
    head: LegacyHead, rows: int, strategy: Strategy, clock: Clock, step: Phase, cancel: threading.Event
) -> tuple[Node, _Resolver]:
    """Read the first `rows` records into the tree. Raises LegacyError or LoadCancelled."""
    reader = LegacyReader(head.data.data, head.start)
    read_rest = _READERS[strategy]
    record_at, first = reader.at, bytes(reader.utf8())
    root = read_rest(reader, head.features, b"", {})
    if first not in (b"", b"/") or root.children is None:
        raise LegacyError(record_at, "a first record that is not the root directory", "the root")
    resolver = _Resolver(root, clock)
    owners: dict[tuple[bytes, bytes], int] = {}
    last_parent_path, parent, told_at = b"", root, head.start
    for index in range(1, rows):
        if index % _CHECK_EVERY == 0:
            if cancel.is_set():
                raise LoadCancelled
            step.advance(_CHECK_EVERY, read=reader.at - told_at)
            told_at = reader.at
        record_at = reader.at
        full = bytes(reader.utf8())
        above, _, name = full.rpartition(b"/")
        found: Node | None
        if strategy is Strategy.PARENT_CACHE and above == last_parent_path:
            found = parent
        elif strategy is Strategy.OBJECTS:
            text = _Path(full).text()
            found = resolver.from_root([part.encode("utf-8", "surrogateescape") for part in text.split("/")])
        else:
            found = resolver.from_root(full.split(b"/"))
        node = read_rest(reader, head.features, name, owners)
        if found is None or not found.add(node):
            raise LegacyError(record_at, "a path whose parent has not been met", "parents before children")
        last_parent_path, parent = above, found
    step.advance((rows - 1) % _CHECK_EVERY + 1, read=reader.at - told_at)
    return root, resolver


def _fields(reader: LegacyReader, features: Feature) -> tuple[int, int, int, int, int]:
    if features & _ALL_TIMES == _ALL_TIMES:
        replication, mtime, atime, block_size = _WITH_ATIME.unpack(reader.take(26))
    else:
        replication = reader.u16()
        mtime = reader.i64() if features & Feature.MTIME else 0
        atime = reader.i64() if features & Feature.ATIME else 0
        block_size = reader.i64() if features & Feature.BLOCK_SIZE else 0
    at, blocks = reader.at, reader.i32()
    size = 24 if features & Feature.GENERATION else 16
    if blocks < -2 or blocks * size > len(reader.data) - reader.at:
        raise LegacyError(at, f"{blocks:,} blocks", "-1 (directory), -2 (symlink), or blocks that follow")
    if blocks == 0 and features & Feature.EMPTY_IS_DIRECTORY:
        blocks = -1
    return replication, mtime, atime, block_size, blocks


def _blocks_of(features: Feature) -> Struct:
    return _BLOCK if features & Feature.GENERATION else _OLD_BLOCK


def _block_bytes(reader: LegacyReader, features: Feature, count: int) -> memoryview:
    return reader.take(max(count, 0) * _blocks_of(features).size)


def _quota(reader: LegacyReader, features: Feature, blocks: int) -> None:
    if blocks == -1:
        reader.take((8 if features & Feature.NAMESPACE_QUOTA else 0) + (8 if features & Feature.SPACE_QUOTA else 0))
    elif blocks == -2:
        reader.text_bytes()


def _read_objects(reader: LegacyReader, features: Feature, name: bytes, _: dict[tuple[bytes, bytes], int]) -> Node:
    """An object for every block, permission and path."""
    replication, mtime, atime, block_size, count = _fields(reader, features)
    blocks = [_Block(*numbers) for numbers in _blocks_of(features).iter_unpack(_block_bytes(reader, features, count))]
    _quota(reader, features, count)
    status = None
    if features & Feature.PERMISSION:
        user, group = reader.text(), reader.text()
        status = _PermissionStatus(user, group, _Permission(reader.u16()))
    return Node(name, status, (replication, mtime, atime, block_size), None if count == -1 else blocks)


def _read_lean(reader: LegacyReader, features: Feature, name: bytes, owners: dict[tuple[bytes, bytes], int]) -> Node:
    """Owner, group and mode as one number; blocks as they stand."""
    replication, mtime, atime, block_size, count = _fields(reader, features)
    blocks = _block_bytes(reader, features, count)
    _quota(reader, features, count)
    packed = 0
    if features & Feature.PERMISSION:
        key = bytes(reader.text_bytes()), bytes(reader.text_bytes())
        packed = owners.setdefault(key, len(owners)) << 16 | reader.u16()
    return Node(name, packed, (replication, mtime, atime, block_size), None if count == -1 else blocks)


_Reader = Callable[[LegacyReader, Feature, bytes, dict[tuple[bytes, bytes], int]], Node]
_READERS: dict[Strategy, _Reader] = {
    Strategy.OBJECTS: _read_objects,
    Strategy.LEAN: _read_lean,
    Strategy.PARENT_CACHE: _read_lean,
}
