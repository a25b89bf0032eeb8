"""Columns to INode messages: what `inode_kernel` reads, written as a NameNode writes it, field for field.

A NameNode sets the same fields for every inode of a kind, whatever their values, so its images and ours are equal to
the byte: `storagePolicyID` since layout -60, `blockType` since -64, quotas of a directory even where unset, replication
of a file unless it is striped, which has its policy's id instead. Fields stand in the order of their numbers.
Source: FSImageFormatPBINode.Saver and fsimage.proto of Apache Hadoop (fields and numbers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.fsimage.column_types import BLOCK_COLUMNS, HEAP, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.columns import Namespace, Sparse
from engine.fsimage.inode_kernel import SPARSE_ARRAYS, SparseArrays
from engine.fsimage.save_wire import (
    SLACK,
    put_byte,
    put_bytes,
    put_fixed32,
    put_fixed64,
    put_head,
    put_number,
    put_uvarint,
)
from engine.native.kernel import bare, kernel

NO_ROOM = -1
STORAGE_POLICY_SINCE, BLOCK_TYPE_SINCE = -60, -64  # layout versions; lower is later

# Cursors into the sparse tables.
ACL, XATTR, QUOTA, TYPE_QUOTA, LINK, CLIENT = range(6)

# The most bytes that an inode takes beside what is counted: lengths, tags and varints of every field.
INODE_ROOM, BLOCK_ROOM, _XATTR, _TYPE_QUOTA = 192 + SLACK, 36, 18, 16

_FILE, _DIRECTORY = 1, 2
_OPEN, _STRIPED, _FLAG_TYPE_QUOTA = 4, 8, 128
_UNSET = np.int64(-1)


def sparse_arrays(sparse: Sparse) -> SparseArrays:
    """Return the sparse tables as the one tuple that kernels take."""
    s = sparse
    tables = (s.acls, s.xattrs, s.quotas, s.type_quotas, s.symlink_targets, s.client_names)
    columns = [column for table in tables for column in table]
    return SparseArrays._make([*columns, s.client_machines.start, s.client_machines.heap])


class InodeWriter(NamedTuple):
    """What writing a namespace's inodes needs; pieces of rows are independent of each other."""

    namespace: Namespace
    sparse: SparseArrays
    layout_version: int

    def ends(self, row: int) -> I64Array:
        """Return how far each sparse table belongs to rows before `row`."""
        s = self.sparse
        tables = (s.acl_row, s.xattr_row, s.quota_row, s.type_quota_row, s.link_row, s.client_row)
        wanted = np.int32(row)  # of the columns' type: another would copy them
        return np.array([np.searchsorted(table, wanted) for table in tables], np.int64)

    def room(self, start: int, end: int) -> int:
        """Return a size in which rows [start, end) fit whatever they hold."""
        inodes, s = self.namespace.inodes, self.sparse
        a, b = self.ends(start), self.ends(end)
        total = INODE_ROOM * (end - start)
        total += int(inodes.name_start[end] - inodes.name_start[start])
        total += BLOCK_ROOM * (int(inodes.block_start[end]) - int(inodes.block_start[start]))
        total += 4 * int(s.acl_start[b[ACL]] - s.acl_start[a[ACL]])
        total += _XATTR * int(b[XATTR] - a[XATTR]) + int(s.xattr_start[b[XATTR]] - s.xattr_start[a[XATTR]])
        total += _TYPE_QUOTA * int(b[TYPE_QUOTA] - a[TYPE_QUOTA])
        total += int(s.link_start[b[LINK]] - s.link_start[a[LINK]])
        total += int(s.client_start[b[CLIENT]] - s.client_start[a[CLIENT]])
        return total + int(s.machine_start[b[CLIENT]] - s.machine_start[a[CLIENT]])

    def write(self, out: np.ndarray[tuple[int], np.dtype[np.uint8]], start: int, end: int) -> int:
        """Put rows [start, end) at the end of `out`, which has room for them; return where they begin."""
        n = self.namespace
        return int(
            put_inodes(n.inodes, n.blocks, n.names, self.sparse, self.ends(end), start, end, self.layout_version, out)
        )


@kernel(I64(INODE_COLUMNS, BLOCK_COLUMNS, HEAP, SPARSE_ARRAYS, I64S, I64, I64, I64, HEAP), bare=True)
def put_inodes(inodes, blocks, names, sparse, cursors, start, end, layout, out):  # type: ignore[no-untyped-def]
    """Put delimited INode messages of rows [start, end) at the end of `out`; return where they begin, or NO_ROOM.

    cursors: int64[6], how far each sparse table belongs to rows before `end`; walked down to `start`.
    """
    base, at = np.uint64(out.ctypes.data), np.int64(out.size)
    nearest = _nearest(sparse, cursors)
    for row in range(end - 1, start - 1, -1):
        flags = np.int64(inodes.flags[row])
        kind = flags & 3
        name, name_end = inodes.name_start[row], inodes.name_start[row + 1]
        first, last = np.int64(inodes.block_start[row]), np.int64(inodes.block_start[row + 1])
        has_more = nearest == row  # few rows are in any sparse table
        room = INODE_ROOM + (name_end - name) + BLOCK_ROOM * (last - first)
        if has_more:
            room += _sparse_room(sparse, cursors, row)
        if room > at:
            return np.int64(NO_ROOM)
        message_end = at
        if kind == _FILE:
            if flags & _STRIPED:
                at = put_number(base, at, 0x60, np.uint64(inodes.ec_policy[row]))
            if layout <= BLOCK_TYPE_SINCE:
                at = put_number(base, at, 0x58, np.uint64((flags & _STRIPED) // _STRIPED))
            if layout <= STORAGE_POLICY_SINCE:
                at = put_number(base, at, 0x50, np.uint64(inodes.storage_policy[row]))
            if has_more:
                at = _put_xattrs(base, at, sparse, cursors, row, 0x4A)
                at = _put_acl(base, at, sparse, cursors, row, 0x42)
            if flags & _OPEN:
                at = _put_client(base, at, sparse, cursors, row)
            for block in range(last - 1, first - 1, -1):
                block_end = at
                at = put_number(base, at, 0x18, np.uint64(blocks.length[block]))
                at = put_number(base, at, 0x10, np.uint64(blocks.generation[block]))
                at = put_number(base, at, 0x08, np.uint64(blocks.block_id[block]))
                at = put_head(base, at, block_end, 0x32)
            at = put_fixed64(base, at, 0x29, inodes.permission[row])
            at = put_number(base, at, 0x20, np.uint64(inodes.preferred_block_size[row]))
            at = put_number(base, at, 0x18, np.uint64(inodes.atime[row]))
            at = put_number(base, at, 0x10, np.uint64(inodes.mtime[row]))
            if not flags & _STRIPED:
                at = put_number(base, at, 0x08, np.uint64(inodes.replication[row]))
        elif kind == _DIRECTORY:
            if has_more or flags & _FLAG_TYPE_QUOTA:
                at = _put_type_quotas(base, at, sparse, cursors, row, flags)
                at = _put_xattrs(base, at, sparse, cursors, row, 0x32)
                at = _put_acl(base, at, sparse, cursors, row, 0x2A)
            at = put_fixed64(base, at, 0x21, inodes.permission[row])
            quota = cursors[QUOTA] - 1
            namespace_quota, space_quota = _UNSET, _UNSET
            if quota >= 0 and sparse.quota_row[quota] == row:
                namespace_quota, space_quota = sparse.quota_namespace[quota], sparse.quota_space[quota]
            at = put_number(base, at, 0x18, np.uint64(space_quota))
            at = put_number(base, at, 0x10, np.uint64(namespace_quota))
            at = put_number(base, at, 0x08, np.uint64(inodes.mtime[row]))
        else:
            at = put_number(base, at, 0x20, np.uint64(inodes.atime[row]))
            at = put_number(base, at, 0x18, np.uint64(inodes.mtime[row]))
            link = cursors[LINK] - 1
            if link >= 0 and sparse.link_row[link] == row:
                target_end = at
                at = put_bytes(base, at, sparse.link_heap, sparse.link_start[link], sparse.link_start[link + 1])
                at = put_head(base, at, target_end, 0x12)
            at = put_fixed64(base, at, 0x09, inodes.permission[row])
        at = put_head(base, at, message_end, ((kind + 3) << 3) | 2)
        name_stop = at
        at = put_head(base, put_bytes(base, at, names, name, name_end), name_stop, 0x1A)
        at = put_number(base, at, 0x10, np.uint64(inodes.inode_id[row]))
        at = put_number(base, at, 0x08, np.uint64(kind))
        at = put_uvarint(base, at, np.uint64(message_end - at))
        if has_more:
            _pass(sparse, cursors, row)
            nearest = _nearest(sparse, cursors)
    return at


@bare
def _nearest(sparse, cursors):  # type: ignore[no-untyped-def]
    """Return the last row below the cursors that any sparse table has, or -1."""
    found = np.int64(-1)
    if cursors[ACL] > 0:
        found = max(found, np.int64(sparse.acl_row[cursors[ACL] - 1]))
    if cursors[XATTR] > 0:
        found = max(found, np.int64(sparse.xattr_row[cursors[XATTR] - 1]))
    if cursors[QUOTA] > 0:
        found = max(found, np.int64(sparse.quota_row[cursors[QUOTA] - 1]))
    if cursors[TYPE_QUOTA] > 0:
        found = max(found, np.int64(sparse.type_quota_row[cursors[TYPE_QUOTA] - 1]))
    if cursors[LINK] > 0:
        found = max(found, np.int64(sparse.link_row[cursors[LINK] - 1]))
    if cursors[CLIENT] > 0:
        found = max(found, np.int64(sparse.client_row[cursors[CLIENT] - 1]))
    return found


@bare
def _pass(sparse, cursors, row):  # type: ignore[no-untyped-def]
    """Take the cursors below `row`, whatever of it was written: an inode has no entries of another kind's."""
    while cursors[ACL] > 0 and sparse.acl_row[cursors[ACL] - 1] == row:
        cursors[ACL] -= 1
    while cursors[XATTR] > 0 and sparse.xattr_row[cursors[XATTR] - 1] == row:
        cursors[XATTR] -= 1
    while cursors[QUOTA] > 0 and sparse.quota_row[cursors[QUOTA] - 1] == row:
        cursors[QUOTA] -= 1
    while cursors[TYPE_QUOTA] > 0 and sparse.type_quota_row[cursors[TYPE_QUOTA] - 1] == row:
        cursors[TYPE_QUOTA] -= 1
    while cursors[LINK] > 0 and sparse.link_row[cursors[LINK] - 1] == row:
        cursors[LINK] -= 1
    while cursors[CLIENT] > 0 and sparse.client_row[cursors[CLIENT] - 1] == row:
        cursors[CLIENT] -= 1


@bare
def _sparse_room(sparse, cursors, row):  # type: ignore[no-untyped-def]
    """Return what `row`'s entries of the sparse tables may take beside its fixed part."""
    room = np.int64(0)
    k = cursors[ACL] - 1
    while k >= 0 and sparse.acl_row[k] == row:
        room += 4 * np.int64(sparse.acl_start[k + 1] - sparse.acl_start[k])
        k -= 1
    k = cursors[XATTR] - 1
    while k >= 0 and sparse.xattr_row[k] == row:
        room += _XATTR + sparse.xattr_start[k + 1] - sparse.xattr_start[k]
        k -= 1
    k = cursors[TYPE_QUOTA] - 1
    while k >= 0 and sparse.type_quota_row[k] == row:
        room += _TYPE_QUOTA
        k -= 1
    k = cursors[LINK] - 1
    if k >= 0 and sparse.link_row[k] == row:
        room += sparse.link_start[k + 1] - sparse.link_start[k]
    k = cursors[CLIENT] - 1
    if k >= 0 and sparse.client_row[k] == row:
        room += sparse.client_start[k + 1] - sparse.client_start[k]
        room += sparse.machine_start[k + 1] - sparse.machine_start[k]
    return room


@bare
def _put_acl(base, at, sparse, cursors, row, tag):  # type: ignore[no-untyped-def]
    k = cursors[ACL] - 1
    if k < 0 or sparse.acl_row[k] != row:
        return at
    end = at
    while k >= 0 and sparse.acl_row[k] == row:
        for entry in range(sparse.acl_start[k + 1] - 1, sparse.acl_start[k] - 1, -1):
            at = put_fixed32(base, at, sparse.acl_entry[entry])
        k -= 1
    if at < end:
        at = put_head(base, at, end, 0x12)
    return put_head(base, at, end, tag)


@bare
def _put_xattrs(base, at, sparse, cursors, row, tag):  # type: ignore[no-untyped-def]
    k = cursors[XATTR] - 1
    if k < 0 or sparse.xattr_row[k] != row:
        return at
    end = at
    while k >= 0 and sparse.xattr_row[k] == row:
        entry_end = at
        at = put_bytes(base, at, sparse.xattr_values, sparse.xattr_start[k], sparse.xattr_start[k + 1])
        if at < entry_end:
            at = put_head(base, at, entry_end, 0x12)
        at = put_byte(base, put_fixed32(base, at, sparse.xattr_name[k]), 0x0D)
        at = put_head(base, at, entry_end, 0x0A)
        k -= 1
    return put_head(base, at, end, tag)


@bare
def _put_client(base, at, sparse, cursors, row):  # type: ignore[no-untyped-def]
    """FileUnderConstructionFeature, of every open file, and of it alone."""
    k = cursors[CLIENT] - 1
    found = k >= 0 and sparse.client_row[k] == row
    end = at
    if found:
        at = put_bytes(base, at, sparse.machine_heap, sparse.machine_start[k], sparse.machine_start[k + 1])
    at = put_head(base, at, end, 0x12)
    name_end = at
    if found:
        at = put_bytes(base, at, sparse.client_heap, sparse.client_start[k], sparse.client_start[k + 1])
    at = put_head(base, at, name_end, 0x0A)
    return put_head(base, at, end, 0x3A)


@bare
def _put_type_quotas(base, at, sparse, cursors, row, flags):  # type: ignore[no-untyped-def]
    k, end = cursors[TYPE_QUOTA] - 1, at
    while k >= 0 and sparse.type_quota_row[k] == row:
        entry_end = at
        at = put_number(base, at, 0x10, np.uint64(sparse.type_quota[k]))
        at = put_number(base, at, 0x08, np.uint64(sparse.type_quota_type[k]))
        at = put_head(base, at, entry_end, 0x0A)
        k -= 1
    return put_head(base, at, end, 0x3A) if at < end or flags & _FLAG_TYPE_QUOTA else at
