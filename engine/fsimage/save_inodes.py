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
    put_byte,
    put_bytes,
    put_fixed32,
    put_fixed64,
    put_head,
    put_number,
    put_uvarint,
)
from engine.native.kernel import inner, kernel

NO_ROOM = -1
STORAGE_POLICY_SINCE, BLOCK_TYPE_SINCE = -60, -64  # layout versions; lower is later

# Cursors into the sparse tables.
ACL, XATTR, QUOTA, TYPE_QUOTA, LINK, CLIENT = range(6)

# The most bytes that an inode takes beside what is counted: lengths, tags and varints of every field.
_FIXED, _BLOCK, _XATTR, _TYPE_QUOTA = 192, 36, 18, 16

_FILE, _DIRECTORY = 1, 2
_OPEN, _STRIPED, _FLAG_TYPE_QUOTA = 4, 8, 128
_UNSET = np.int64(-1)


def sparse_arrays(sparse: Sparse) -> SparseArrays:
    """Return the sparse tables as the one tuple that kernels take."""
    s = sparse
    return SparseArrays(
        *s.acls,
        *s.xattrs,
        *s.quotas,
        *s.type_quotas,
        *s.symlink_targets,
        *s.client_names,
        s.client_machines.start,
        s.client_machines.heap,
    )


class InodeWriter(NamedTuple):
    """What writing a namespace's inodes needs; pieces of rows are independent of each other."""

    namespace: Namespace
    sparse: SparseArrays
    layout_version: int

    def ends(self, row: int) -> I64Array:
        """Return how far each sparse table belongs to rows before `row`."""
        s = self.sparse
        tables = (s.acl_row, s.xattr_row, s.quota_row, s.type_quota_row, s.link_row, s.client_row)
        return np.array([np.searchsorted(table, row) for table in tables], np.int64)

    def room(self, start: int, end: int) -> int:
        """Return a size in which rows [start, end) fit whatever they hold."""
        inodes, s = self.namespace.inodes, self.sparse
        a, b = self.ends(start), self.ends(end)
        total = _FIXED * (end - start)
        total += int(inodes.name_start[end] - inodes.name_start[start])
        total += _BLOCK * (int(inodes.block_start[end]) - int(inodes.block_start[start]))
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


@kernel(I64(INODE_COLUMNS, BLOCK_COLUMNS, HEAP, SPARSE_ARRAYS, I64S, I64, I64, I64, HEAP))
def put_inodes(inodes, blocks, names, sparse, cursors, start, end, layout, out):  # type: ignore[no-untyped-def]
    """Put delimited INode messages of rows [start, end) at the end of `out`; return where they begin, or NO_ROOM.

    cursors: int64[6], how far each sparse table belongs to rows before `end`; walked down to `start`.
    """
    at = np.int64(out.size)
    for row in range(end - 1, start - 1, -1):
        flags = np.int64(inodes.flags[row])
        kind = flags & 3
        name, name_end = inodes.name_start[row], inodes.name_start[row + 1]
        first, last = np.int64(inodes.block_start[row]), np.int64(inodes.block_start[row + 1])
        room = _FIXED + (name_end - name) + _BLOCK * (last - first) + _sparse_room(sparse, cursors, row)
        if room > at:
            return np.int64(NO_ROOM)
        message_end = at
        if kind == _FILE:
            if flags & _STRIPED:
                at = put_number(out, at, 0x60, inodes.ec_policy[row])
            if layout <= BLOCK_TYPE_SINCE:
                at = put_byte(out, put_byte(out, at, (flags & _STRIPED) // _STRIPED), 0x58)
            if layout <= STORAGE_POLICY_SINCE:
                at = put_number(out, at, 0x50, inodes.storage_policy[row])
            at = _put_xattrs(out, at, sparse, cursors, row, 0x4A)
            at = _put_acl(out, at, sparse, cursors, row, 0x42)
            at = _put_client(out, at, sparse, cursors, row, flags)
            for block in range(last - 1, first - 1, -1):
                block_end = at
                at = put_number(out, at, 0x18, blocks.length[block])
                at = put_number(out, at, 0x10, blocks.generation[block])
                at = put_number(out, at, 0x08, blocks.block_id[block])
                at = put_head(out, at, block_end, 0x32)
            at = put_byte(out, put_fixed64(out, at, inodes.permission[row]), 0x29)
            at = put_number(out, at, 0x20, inodes.preferred_block_size[row])
            at = put_number(out, at, 0x18, inodes.atime[row])
            at = put_number(out, at, 0x10, inodes.mtime[row])
            if not flags & _STRIPED:
                at = put_number(out, at, 0x08, inodes.replication[row])
        elif kind == _DIRECTORY:
            at = _put_type_quotas(out, at, sparse, cursors, row, flags)
            at = _put_xattrs(out, at, sparse, cursors, row, 0x32)
            at = _put_acl(out, at, sparse, cursors, row, 0x2A)
            at = put_byte(out, put_fixed64(out, at, inodes.permission[row]), 0x21)
            quota = cursors[QUOTA] - 1
            namespace_quota, space_quota = _UNSET, _UNSET
            if quota >= 0 and sparse.quota_row[quota] == row:
                namespace_quota, space_quota = sparse.quota_namespace[quota], sparse.quota_space[quota]
                cursors[QUOTA] = quota
            at = put_number(out, at, 0x18, space_quota)
            at = put_number(out, at, 0x10, namespace_quota)
            at = put_number(out, at, 0x08, inodes.mtime[row])
        else:
            at = put_number(out, at, 0x20, inodes.atime[row])
            at = put_number(out, at, 0x18, inodes.mtime[row])
            link = cursors[LINK] - 1
            if link >= 0 and sparse.link_row[link] == row:
                target_end = at
                at = put_bytes(out, at, sparse.link_heap, sparse.link_start[link], sparse.link_start[link + 1])
                at = put_head(out, at, target_end, 0x12)
                cursors[LINK] = link
            at = put_byte(out, put_fixed64(out, at, inodes.permission[row]), 0x09)
        at = put_head(out, at, message_end, ((kind + 3) << 3) | 2)
        name_stop = at
        at = put_head(out, put_bytes(out, at, names, name, name_end), name_stop, 0x1A)
        at = put_number(out, at, 0x10, inodes.inode_id[row])
        at = put_byte(out, put_byte(out, at, kind), 0x08)
        at = put_uvarint(out, at, np.uint64(message_end - at))
    return at


@inner
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


@inner
def _put_acl(out, at, sparse, cursors, row, tag):  # type: ignore[no-untyped-def]
    k = cursors[ACL] - 1
    if k < 0 or sparse.acl_row[k] != row:
        return at
    end = at
    while k >= 0 and sparse.acl_row[k] == row:
        for entry in range(sparse.acl_start[k + 1] - 1, sparse.acl_start[k] - 1, -1):
            at = put_fixed32(out, at, sparse.acl_entry[entry])
        k -= 1
    cursors[ACL] = k + 1
    if at < end:
        at = put_head(out, at, end, 0x12)
    return put_head(out, at, end, tag)


@inner
def _put_xattrs(out, at, sparse, cursors, row, tag):  # type: ignore[no-untyped-def]
    k = cursors[XATTR] - 1
    if k < 0 or sparse.xattr_row[k] != row:
        return at
    end = at
    while k >= 0 and sparse.xattr_row[k] == row:
        entry_end = at
        at = put_bytes(out, at, sparse.xattr_values, sparse.xattr_start[k], sparse.xattr_start[k + 1])
        if at < entry_end:
            at = put_head(out, at, entry_end, 0x12)
        at = put_byte(out, put_fixed32(out, at, sparse.xattr_name[k]), 0x0D)
        at = put_head(out, at, entry_end, 0x0A)
        k -= 1
    cursors[XATTR] = k + 1
    return put_head(out, at, end, tag)


@inner
def _put_client(out, at, sparse, cursors, row, flags):  # type: ignore[no-untyped-def]
    """FileUnderConstructionFeature, of every open file, and of it alone."""
    k = cursors[CLIENT] - 1
    found = k >= 0 and sparse.client_row[k] == row
    if found:
        cursors[CLIENT] = k
    if not flags & _OPEN:
        return at
    end = at
    if found:
        at = put_bytes(out, at, sparse.machine_heap, sparse.machine_start[k], sparse.machine_start[k + 1])
    at = put_head(out, at, end, 0x12)
    name_end = at
    if found:
        at = put_bytes(out, at, sparse.client_heap, sparse.client_start[k], sparse.client_start[k + 1])
    at = put_head(out, at, name_end, 0x0A)
    return put_head(out, at, end, 0x3A)


@inner
def _put_type_quotas(out, at, sparse, cursors, row, flags):  # type: ignore[no-untyped-def]
    k, end = cursors[TYPE_QUOTA] - 1, at
    while k >= 0 and sparse.type_quota_row[k] == row:
        entry_end = at
        at = put_number(out, at, 0x10, sparse.type_quota[k])
        at = put_number(out, at, 0x08, sparse.type_quota_type[k])
        at = put_head(out, at, entry_end, 0x0A)
        k -= 1
    cursors[TYPE_QUOTA] = k + 1
    return put_head(out, at, end, 0x3A) if at < end or flags & _FLAG_TYPE_QUOTA else at
