"""The children index to DirEntry messages, for directories that have children: in row order, children in Java's.

    DirEntry{1 parent:id  2 children*:id, packed  3 refChildren*:index into INODE_REFERENCE, packed}

A child that is there by reference (renamed while a snapshot holds its old place) stands in field 3 by the index of its
reference. The references themselves are saved as they were loaded, so their indices hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from engine.fsimage.column_types import HEAP, I32S, I64, I64S
from engine.fsimage.columns import I32, U8, Flag, Namespace
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.save_order import java_children
from engine.fsimage.save_wire import SLACK, put_head, put_number, put_uvarint
from engine.native.kernel import bare, kernel

NO_ROOM = -1
_ENTRY, _CHILD = 40 + SLACK, 10  # the most bytes of an entry beside its children, and of a child
_BY_REFERENCE = 1024
U16S = types.Array(types.uint16, 1, "C")


class DirectoryWriter(NamedTuple):
    """What writing a namespace's directory entries needs."""

    namespace: Namespace
    children: I32  # as Tree.children, in Java's order
    reference_row: I32  # [r] ascending: rows that their directory lists by reference
    reference: I64Array  # [r] index in INODE_REFERENCE

    def room(self, start: int, end: int) -> int:
        """Return a size in which the entries of rows [start, end) fit."""
        child_start = self.namespace.tree.child_start
        return _ENTRY * (end - start) + _CHILD * int(child_start[end] - child_start[start])

    def write(self, out: U8, start: int, end: int) -> int:
        """Put the entries of rows [start, end) at the end of `out`; return where they begin."""
        n = self.namespace
        return int(
            put_directories(
                n.tree.child_start,
                self.children,
                n.inodes.inode_id,
                n.inodes.flags,
                self.reference_row,
                self.reference,
                start,
                end,
                out,
            )
        )


def make_directory_writer(namespace: Namespace) -> DirectoryWriter:
    """Find which child stands for which reference: the place of an inode renamed is its DstReference."""
    children = java_children(namespace)
    rows = np.flatnonzero(namespace.inodes.flags & np.uint16(Flag.BY_REFERENCE)).astype(np.int32)
    found = namespace.extras.references
    if found is None or not rows.size:
        return DirectoryWriter(namespace, children, np.zeros(0, np.int32), np.zeros(0, np.int64))
    by_id: dict[int, int] = {}
    for index in range(len(found.names) - 1, -1, -1):
        inode_id, is_current = int(found.referred_id[index]), int(found.dst_snapshot[index]) >= 0
        if is_current or inode_id not in by_id or int(found.dst_snapshot[by_id[inode_id]]) < 0:
            by_id[inode_id] = index
    pairs = [(int(row), by_id.get(int(namespace.inodes.inode_id[row]), -1)) for row in rows]
    known = [(row, index) for row, index in pairs if index >= 0]
    return DirectoryWriter(
        namespace,
        children,
        np.array([row for row, _ in known], np.int32),
        np.array([index for _, index in known], np.int64),
    )


@bare
def _reference_of(reference_row, reference, row):  # type: ignore[no-untyped-def]
    """Return the index of a row's reference, or -1: binary search."""
    low, high = np.int64(0), np.int64(reference_row.size)
    while low < high:
        middle = (low + high) // 2
        if reference_row[middle] < row:
            low = middle + 1
        else:
            high = middle
    if low < reference_row.size and reference_row[low] == row:
        return reference[low]
    return np.int64(-1)


@kernel(I64(I32S, I32S, I64S, U16S, I32S, I64S, I64, I64, HEAP), bare=True)
def put_directories(child_start, children, inode_id, flags, reference_row, reference, start, end, out):  # type: ignore[no-untyped-def]
    """Put delimited DirEntry messages of rows [start, end) at the end of `out`; return where they begin, or NO_ROOM."""
    base, at = np.uint64(out.ctypes.data), np.int64(out.size)
    for row in range(end - 1, start - 1, -1):
        first, last = np.int64(child_start[row]), np.int64(child_start[row + 1])
        if first == last:
            continue
        if _ENTRY + _CHILD * (last - first) > at:
            return np.int64(NO_ROOM)
        entry_end = at
        for k in range(last - 1, first - 1, -1):
            if flags[children[k]] & _BY_REFERENCE:
                index = _reference_of(reference_row, reference, children[k])
                if index >= 0:
                    at = put_uvarint(base, at, np.uint64(index))
        if at < entry_end:
            at = put_head(base, at, entry_end, 0x1A)
        listed_end = at
        for k in range(last - 1, first - 1, -1):
            child = children[k]
            if not flags[child] & _BY_REFERENCE or _reference_of(reference_row, reference, child) < 0:
                at = put_uvarint(base, at, np.uint64(inode_id[child]))
        if at < listed_end:
            at = put_head(base, at, listed_end, 0x12)
        at = put_number(base, at, 0x08, np.uint64(inode_id[row]))
        at = put_uvarint(base, at, np.uint64(entry_end - at))
    return at
