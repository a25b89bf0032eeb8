"""The tree: a children index from parents, its order and its reach; paths, lookups and walks.

The index is made from `parent` alone, so every layout shares it: count children, sum up, fill in row order. Kernels
then check that each directory's children stand in name order (a NameNode writes them so), sort those that do not, and
walk from the root to see what it reaches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import types

from engine.fsimage.column_types import BLOCK_COLUMNS, HEAP, I32S, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import DETACHED, I32, NO_PARENT, U8, Flag, InodeColumns, Kind, Namespace, Tree
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.pieces import run_pieces
from engine.measure.phases import Phase
from engine.native.crc32c import load_u64
from engine.native.kernel import bare, kernel

_PIECE_ROWS = 1 << 17
_KIND, _DIRECTORY = 3, 2
U16S = types.Array(types.uint16, 1, "C")


@kernel(I64(I32S, I32S), bare=True)
def count_children(parent, child_start):  # type: ignore[no-untyped-def]
    """Make `child_start` (int32[rows + 1], zeroed) of `parent`; return how many rows have one, or -1 at a bad one."""
    rows = parent.size
    for row in range(rows):
        above = np.int64(parent[row])
        if above >= rows:
            return np.int64(-1)
        if above >= 0:
            child_start[above + 1] += 1
    for row in range(rows):
        child_start[row + 1] += child_start[row]
    return np.int64(child_start[rows])


@kernel(types.void(I32S, I32S, I32S), bare=True)
def fill_children(parent, child_start, children):  # type: ignore[no-untyped-def]
    """Put each row that has a parent into `children`, in row order. `child_start` is moved and moved back."""
    for row in range(parent.size):
        above = np.int64(parent[row])
        if above >= 0:
            children[child_start[above]] = np.int32(row)
            child_start[above] += 1
    for row in range(parent.size, 0, -1):  # each start now stands at the next one's
        child_start[row] = child_start[row - 1]
    if child_start.size > 0:
        child_start[0] = np.int32(0)


@bare
def _compare(names, name_start, left, right):  # type: ignore[no-untyped-def]
    """Return below, at or above 0 as the name of row `left` sorts before, with or after that of `right`."""
    a, a_end = name_start[left], name_start[left + 1]
    b, b_end = name_start[right], name_start[right + 1]
    common, i = min(a_end - a, b_end - b), np.int64(0)
    while i + 8 <= common and load_u64(names, a + i) == load_u64(names, b + i):  # siblings share long prefixes
        i += 8
    for k in range(i, common):
        difference = np.int64(names[a + k]) - np.int64(names[b + k])
        if difference != 0:
            return difference
    return (a_end - a) - (b_end - b)


@bare
def _sift(names, name_start, children, first, root, count):  # type: ignore[no-untyped-def]
    at = root
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _compare(names, name_start, children[first + child], children[first + child + 1]) < 0:
            child += 1
        if _compare(names, name_start, children[first + at], children[first + child]) >= 0:
            return
        children[first + at], children[first + child] = children[first + child], children[first + at]
        at = child


@bare
def _sort(names, name_start, children, first, last):  # type: ignore[no-untyped-def]
    """Sort children[first:last] by name: heap sort, which no input makes slow and which needs no memory."""
    count = last - first
    for root in range(count // 2 - 1, -1, -1):
        _sift(names, name_start, children, first, root, count)
    for end in range(count - 1, 0, -1):
        children[first], children[first + end] = children[first + end], children[first]
        _sift(names, name_start, children, first, 0, end)


@kernel(types.void(HEAP, I64S, I32S, I32S, I64, I64, I64S, I64S), bare=True)
def order_children(names, name_start, child_start, children, start, end, duplicates, totals):  # type: ignore[no-untyped-def]
    """Bring the children of rows [start, end) into name order.

    duplicates: the first rows whose name a sibling before them has. totals: int64[3]; directories sorted, rows with a
    sibling's name, rows without a name.
    """
    for row in range(start, end):
        first, last = np.int64(child_start[row]), np.int64(child_start[row + 1])
        if last == first:
            continue
        is_sorted = True
        for at in range(first + 1, last):
            if _compare(names, name_start, children[at - 1], children[at]) > 0:
                is_sorted = False
                break
        if not is_sorted:
            _sort(names, name_start, children, first, last)
            totals[0] += 1
        if name_start[children[first]] == name_start[children[first] + 1]:
            totals[2] += 1
        for at in range(first + 1, last):
            if _compare(names, name_start, children[at - 1], children[at]) == 0:
                if totals[1] < duplicates.size:
                    duplicates[totals[1]] = children[at]
                totals[1] += 1


@kernel(I64(I32S, I32S, U16S, I64, I32S), bare=True)
def count_reached(child_start, children, flags, root, queue):  # type: ignore[no-untyped-def]
    """Return how many rows the root reaches, itself among them; -1 where `queue` is too short.

    queue: int32[directories + 1]. Every row has one parent, so none is met twice, and the walk ends.
    """
    queue[0] = np.int32(root)
    head, tail, reached = 0, 1, np.int64(1)
    while head < tail:
        row = np.int64(queue[head])
        head += 1
        for at in range(child_start[row], child_start[row + 1]):
            child = children[at]
            reached += 1
            if flags[child] & _KIND == _DIRECTORY and child_start[child + 1] > child_start[child]:
                if tail == queue.size:
                    return np.int64(-1)
                queue[tail] = child
                tail += 1
    return reached


@kernel(types.void(I32S, I32S), bare=True)
def find_tops(parent, top):  # type: ignore[no-untyped-def]
    """Set top[row] to the row where going up from `row` ends, or to -1 where it never ends (a cycle).

    top: int32[rows], -2 (unknown) before. Marks its way with -3, so each row is passed a bounded number of times.
    """
    for row in range(parent.size):
        at = np.int64(row)
        while top[at] == -2 and parent[at] >= 0:
            top[at] = np.int32(-3)
            at = np.int64(parent[at])
        end = np.int64(at) if top[at] == -2 else np.int64(top[at])
        if end == -3:
            end = np.int64(-1)
        if top[at] == -2:
            top[at] = np.int32(end)
        at = np.int64(row)
        while top[at] == -3:
            top[at] = np.int32(end)
            at = np.int64(parent[at])


@kernel(types.void(INODE_COLUMNS, BLOCK_COLUMNS, I64S), bare=True)
def sum_sizes(inodes, blocks, sizes):  # type: ignore[no-untyped-def]
    """Set sizes[row] to the sum of the row's block lengths."""
    for row in range(sizes.size):
        total = np.int64(0)
        for block in range(inodes.block_start[row], inodes.block_start[row + 1]):
            total += blocks.length[block]
        sizes[row] = total


@dataclass(frozen=True, slots=True)
class Order:
    """What ordering the children met."""

    sorted_directories: int  # not in name order as stored
    same_names: int
    first_same_names: tuple[int, ...]  # rows
    nameless: int  # inodes with an empty name below a directory


def index_children(parent: I32) -> Tree:
    """Return the children index of `parent`, each directory's children in row order."""
    child_start = np.zeros(parent.size + 1, np.int32)
    children = np.zeros(max(int(count_children(parent, child_start)), 0), np.int32)
    fill_children(parent, child_start, children)
    return Tree(child_start, children)


def order_by_name(
    inodes: InodeColumns, names: U8, tree: Tree, *, threads: int, phase: Phase, cancel: threading.Event, most: int
) -> Order:
    """Bring every directory's children into name order, on all threads, and say what was met."""
    rows = int(inodes.parent.size)
    pieces = -(-rows // _PIECE_ROWS)
    totals = np.zeros((pieces, 3), np.int64)
    found = np.zeros((pieces, most), np.int64)

    def order(piece: int) -> None:
        start, end = piece * _PIECE_ROWS, min((piece + 1) * _PIECE_ROWS, rows)
        order_children(
            names, inodes.name_start, tree.child_start, tree.children, start, end, found[piece], totals[piece]
        )
        phase.advance(end - start)

    run_pieces(pieces, order, threads=threads, phase=phase, cancel=cancel)
    same = [int(row) for piece in range(pieces) for row in found[piece, : min(most, totals[piece, 1])]]
    sums = totals.sum(axis=0)
    return Order(int(sums[0]), int(sums[1]), tuple(same[:most]), int(sums[2]))


def reach(inodes: InodeColumns, tree: Tree, root: int, directories: int) -> int:
    """Return how many inodes the root reaches, itself among them."""
    queue = np.zeros(directories + 1, np.int32)
    return int(count_reached(tree.child_start, tree.children, inodes.flags, root, queue))


def file_sizes(namespace: Namespace) -> I64Array:
    """Return bytes by row: int64[rows], the caller's; 0 for what is no file."""
    sizes = np.zeros(namespace.rows, np.int64)
    sum_sizes(namespace.inodes, namespace.blocks, sizes)
    return sizes


def path_of(namespace: Namespace, row: int) -> bytes:
    """Return the full path of a row. What the current tree does not reach shows below `(detached)`."""
    parts: list[bytes] = []
    at, parent = row, namespace.inodes.parent
    for _ in range(namespace.rows):  # bounded: a damaged image may hold a cycle
        above = int(parent[at])
        if above == NO_PARENT:
            return b"/" + b"/".join(reversed(parts))
        parts.append(namespace.name(at))
        if above == DETACHED:
            break
        at = above
    return b"(detached)/" + b"/".join(reversed(parts[:1000]))


def child_named(namespace: Namespace, row: int, name: bytes) -> int | None:
    """Return the row of a directory's child by name, or None: binary search in name order."""
    children = namespace.children(row)
    low, high = 0, len(children)
    while low < high:
        middle = (low + high) // 2
        if namespace.name(int(children[middle])) < name:
            low = middle + 1
        else:
            high = middle
    if low < len(children) and namespace.name(int(children[low])) == name:
        return int(children[low])
    return None


def find(namespace: Namespace, path: bytes) -> int | None:
    """Return the row of an absolute path, or None."""
    row: int | None = namespace.root
    for part in path.split(b"/"):
        if part and row is not None:
            row = child_named(namespace, row, part)
    return row


def find_id(namespace: Namespace, inode_id: int) -> int | None:
    """Return the row of an inode id, or None; looks through the column."""
    if not 0 <= inode_id < 1 << 63:
        return None
    rows = np.flatnonzero(namespace.inodes.inode_id == inode_id)
    return int(rows[0]) if rows.size else None


def walk(namespace: Namespace, row: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Yield (path, row) of `row` (the root) and all below it, parents first, siblings in name order."""
    start = namespace.root if row is None else row
    stack = [(path_of(namespace, start), start)]
    while stack:
        path, at = stack.pop()
        yield path, at
        if namespace.kind(at) is Kind.DIRECTORY:
            prefix = path if path.endswith(b"/") else path + b"/"
            stack.extend((prefix + namespace.name(int(child)), int(child)) for child in namespace.children(at)[::-1])


def count_kinds(inodes: InodeColumns) -> dict[Kind, int]:
    """Return how many inodes of each kind there are."""
    counts = np.bincount(inodes.flags & np.uint16(Flag.KIND), minlength=4)
    return {kind: int(counts[kind]) for kind in Kind}
