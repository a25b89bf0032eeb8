"""INode messages to columns: one walk for both passes.

Pass 1 counts (rows, bytes of names, blocks, ...) with `fill` off, so that columns can be allocated exactly and each
piece knows where its part begins; pass 2 runs the same code with `fill` on. Cursors say how far a piece is; limits say
where the next piece's part begins, and nothing is written at or past a limit: a file that changes between the passes
is an error, not a wild write.

    INode{1 type 2 id 3 name 4 file 5 directory 6 symlink}
    INodeFile{1 replication 2 mtime 3 atime 4 preferredBlockSize 5 permission:fixed64 6 blocks* 7 fileUC 8 acl 9 xAttrs
              10 storagePolicyID 11 blockType 12 erasureCodingPolicyID}
    INodeDirectory{1 mtime 2 nsQuota 3 dsQuota 4 permission:fixed64 5 acl 6 xAttrs 7 typeQuotas}
    INodeSymlink{1 permission:fixed64 2 target 3 mtime 4 atime}
    BlockProto{1 blockId 2 genStamp 3 numBytes}

Source: fsimage.proto of Apache Hadoop (field numbers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import typeof, types

from engine.fsimage.column_types import BLOCK_COLUMNS, BYTES, HEAP, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import I32, U8, U32
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.varints import (
    BAD_TAG,
    OVERLONG,
    TRUNCATED,
    read_fixed32,
    read_fixed64,
    read_length,
    read_uvarint,
    skip_value,
)
from engine.native.kernel import bare, kernel

MAX_NAME_BYTES = 65_535
STEP_MESSAGES = 16_384  # inodes a call may take: some milliseconds, after which Python counts and looks for a cancel

# Cursors of a walk, and what pass 1 counts.
ROWS, NAME_BYTES, BLOCKS, ACL_ROWS, ACL_ENTRIES, XATTRS, XATTR_BYTES, QUOTAS, TYPE_QUOTAS = range(9)
LINKS, LINK_BYTES, CLIENTS, CLIENT_BYTES, MACHINE_BYTES, FILES, DIRECTORIES = range(9, 16)
CURSORS = 16
COLUMN_BYTES = np.array([70, 1, 24, 8, 4, 16, 1, 20, 13, 12, 1, 20, 1, 1, 0, 0])  # that each of these takes in memory

# Codes beyond those of varints.
BAD_KIND, NO_ID, LONG_NAME, BAD_REPLICATION, BAD_POLICY, BAD_LENGTH, CHANGED, BAD_ID = (
    -10,
    -11,
    -12,
    -13,
    -14,
    -15,
    -16,
    -17,
)

# What a failed walk reports.
CODE, OFFSET, VALUE = range(3)

_FILE, _DIRECTORY, _SYMLINK = 1, 2, 3
_OPEN, _STRIPED, _ACL, _XATTRS, _QUOTA, _TYPE_QUOTA = 4, 8, 16, 32, 64, 128
_MAX_I64 = np.uint64((1 << 63) - 1)
_UNSET = np.int64(-1)


class SparseArrays(NamedTuple):
    """What few inodes have, as a walk fills it; `columns.Sparse` is made of these."""

    acl_row: I32
    acl_start: I32  # [rows + 1]
    acl_entry: U32
    xattr_row: I32
    xattr_name: U32
    xattr_start: I64Array  # [xattrs + 1]
    xattr_values: U8
    quota_row: I32
    quota_namespace: I64Array
    quota_space: I64Array
    type_quota_row: I32
    type_quota_type: U8
    type_quota: I64Array
    link_row: I32
    link_start: I64Array
    link_heap: U8
    client_row: I32
    client_start: I64Array
    client_heap: U8
    machine_start: I64Array
    machine_heap: U8


def make_sparse_arrays(counts: I64Array) -> SparseArrays:
    """Return zeroed arrays for what pass 1 counted."""
    c = [int(count) for count in counts]
    return SparseArrays(
        np.zeros(c[ACL_ROWS], np.int32),
        np.zeros(c[ACL_ROWS] + 1, np.int32),
        np.zeros(c[ACL_ENTRIES], np.uint32),
        np.zeros(c[XATTRS], np.int32),
        np.zeros(c[XATTRS], np.uint32),
        np.zeros(c[XATTRS] + 1, np.int64),
        np.zeros(c[XATTR_BYTES], np.uint8),
        np.zeros(c[QUOTAS], np.int32),
        np.zeros(c[QUOTAS], np.int64),
        np.zeros(c[QUOTAS], np.int64),
        np.zeros(c[TYPE_QUOTAS], np.int32),
        np.zeros(c[TYPE_QUOTAS], np.uint8),
        np.zeros(c[TYPE_QUOTAS], np.int64),
        np.zeros(c[LINKS], np.int32),
        np.zeros(c[LINKS] + 1, np.int64),
        np.zeros(c[LINK_BYTES], np.uint8),
        np.zeros(c[CLIENTS], np.int32),
        np.zeros(c[CLIENTS] + 1, np.int64),
        np.zeros(c[CLIENT_BYTES], np.uint8),
        np.zeros(c[CLIENTS] + 1, np.int64),
        np.zeros(c[MACHINE_BYTES], np.uint8),
    )


SPARSE_ARRAYS = typeof(make_sparse_arrays(np.zeros(CURSORS, np.int64)))


@bare
def fail(report, code, offset, value):  # type: ignore[no-untyped-def]
    """Note what is wrong and where; return -1, which every walk hands up."""
    report[CODE], report[OFFSET], report[VALUE] = code, offset, value
    return np.int64(-1)


@kernel(
    I64(BYTES, I64, I64, I64, types.boolean, INODE_COLUMNS, BLOCK_COLUMNS, HEAP, SPARSE_ARRAYS, I64S, I64S, I64S),
    bare=True,
)
def walk_inodes(data, start, end, most, fill, inodes, blocks, names, sparse, cursors, limits, report):  # type: ignore[no-untyped-def]
    """Walk at most `most` delimited INode messages of data[start:end]; return the offset behind them, or -1.

    cursors, limits: int64[CURSORS]; see above. With `fill` off nothing but cursors is written, and limits and columns
    are not looked at. report: int64[3], filled where -1 comes back.
    """
    at = start
    for _ in range(most):
        if at >= end:
            break
        # 1. The message: its fields in any order, the last of each counts.
        message = at
        at, stop = read_length(data, message, end)
        if at < 0:
            return fail(report, at, message, 0)
        kind, inode_id, has_id = np.uint64(0), np.uint64(0), False
        name, name_end = at, at
        part, part_end, part_kind = at, at, np.int64(0)
        while at < stop:
            tag_at = at
            tag, at = read_uvarint(data, at, stop)
            if at < 0:
                return fail(report, at, tag_at, 0)
            if tag == np.uint64(0x08):
                kind, at = read_uvarint(data, at, stop)
            elif tag == np.uint64(0x10):
                inode_id, at = read_uvarint(data, at, stop)
                has_id = True
            elif tag == np.uint64(0x1A):
                name, name_end = read_length(data, at, stop)
                at = name if name < 0 else name_end
            elif tag == np.uint64(0x22) or tag == np.uint64(0x2A) or tag == np.uint64(0x32):
                begin, finish = read_length(data, at, stop)
                at = begin
                if begin >= 0:
                    at, found = finish, np.int64(tag >> np.uint64(3)) - 3
                    if part_kind == 0 or np.uint64(found) == kind:
                        part, part_end, part_kind = begin, finish, found
            elif tag < np.uint64(8):
                at = np.int64(BAD_TAG)
            else:
                at = skip_value(data, at, stop, tag & np.uint64(7))
            if at < 0:
                return fail(report, at, tag_at, 0)
        if kind < np.uint64(_FILE) or kind > np.uint64(_SYMLINK):
            return fail(report, BAD_KIND, message, np.int64(kind))
        if not has_id:
            return fail(report, NO_ID, message, 0)
        if inode_id > _MAX_I64:
            return fail(report, BAD_ID, message, np.int64(inode_id))
        if name_end - name > MAX_NAME_BYTES:
            return fail(report, LONG_NAME, name, name_end - name)
        if np.uint64(part_kind) != kind:
            part, part_end = at, at  # no part of its kind: all defaults

        # 2. Identity and name.
        row = cursors[ROWS]
        if fill:
            if row >= limits[ROWS] or cursors[NAME_BYTES] + name_end - name > limits[NAME_BYTES]:
                return fail(report, CHANGED, message, 0)
            inodes.inode_id[row] = np.int64(inode_id)
            inodes.name_start[row] = cursors[NAME_BYTES]
            inodes.block_start[row] = cursors[BLOCKS]
            base = cursors[NAME_BYTES] - name
            for i in range(name, name_end):
                names[base + i] = data[i]
        cursors[NAME_BYTES] += name_end - name

        # 3. The part of its kind.
        mtime, atime, block_size, permission = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        replication, policy, ec_policy = np.uint64(0), np.uint64(0), np.uint64(0)
        flags = np.int64(kind)
        namespace_quota, space_quota = _UNSET, _UNSET
        at = part
        if kind == np.uint64(_FILE):
            cursors[FILES] += 1
            size = np.uint64(0)
            while at < part_end:
                tag_at = at
                tag, at = read_uvarint(data, at, part_end)
                if at < 0:
                    return fail(report, at, tag_at, 0)
                if tag == np.uint64(0x32):  # a block
                    begin, finish = read_length(data, at, part_end)
                    if begin < 0:
                        return fail(report, begin, tag_at, 0)
                    block = cursors[BLOCKS]
                    cursors[BLOCKS] += 1
                    at = finish
                    if not fill:
                        continue
                    if block >= limits[BLOCKS]:
                        return fail(report, CHANGED, tag_at, 0)
                    block_id, generation, length = np.uint64(0), np.uint64(0), np.uint64(0)
                    at = begin
                    while at < finish:
                        tag, at = read_uvarint(data, at, finish)
                        if at < 0:
                            return fail(report, at, tag_at, 0)
                        if tag == np.uint64(0x08):
                            block_id, at = read_uvarint(data, at, finish)
                        elif tag == np.uint64(0x10):
                            generation, at = read_uvarint(data, at, finish)
                        elif tag == np.uint64(0x18):
                            length, at = read_uvarint(data, at, finish)
                        elif tag < np.uint64(8):
                            at = np.int64(BAD_TAG)
                        else:
                            at = skip_value(data, at, finish, tag & np.uint64(7))
                        if at < 0:
                            return fail(report, at, tag_at, 0)
                    if length > _MAX_I64 - size:  # one length, or the file's sum, passes 2^63
                        return fail(report, BAD_LENGTH, tag_at, np.int64(length))
                    size += length
                    blocks.block_id[block] = np.int64(block_id)
                    blocks.generation[block] = np.int64(generation)
                    blocks.length[block] = np.int64(length)
                elif tag == np.uint64(0x29):
                    if part_end - at < 8:
                        return fail(report, TRUNCATED, tag_at, 0)
                    permission = read_fixed64(data, at)
                    at += 8
                elif tag == np.uint64(0x10):
                    mtime, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x18):
                    atime, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x20):
                    block_size, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x08):
                    replication, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x50):
                    policy, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x60):
                    ec_policy, at = read_uvarint(data, at, part_end)
                    flags |= _STRIPED
                elif tag == np.uint64(0x3A):
                    at = _client(data, at, part_end, row, fill, sparse, cursors, limits, report)
                    flags |= _OPEN
                elif tag == np.uint64(0x42):
                    at = _acl(data, at, part_end, row, fill, sparse, cursors, limits, report)
                    flags |= _ACL
                elif tag == np.uint64(0x4A):
                    at = _xattrs(data, at, part_end, row, fill, sparse, cursors, limits, report)
                    flags |= _XATTRS
                elif tag < np.uint64(8):
                    at = np.int64(BAD_TAG)
                else:
                    at = skip_value(data, at, part_end, tag & np.uint64(7))
                if at < 0:
                    return _outer(report, at, tag_at)
        elif kind == np.uint64(_DIRECTORY):
            cursors[DIRECTORIES] += 1
            while at < part_end:
                tag_at = at
                tag, at = read_uvarint(data, at, part_end)
                if at < 0:
                    return fail(report, at, tag_at, 0)
                if tag == np.uint64(0x08):
                    mtime, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x10):
                    value, at = read_uvarint(data, at, part_end)
                    namespace_quota = np.int64(value)
                elif tag == np.uint64(0x18):
                    value, at = read_uvarint(data, at, part_end)
                    space_quota = np.int64(value)
                elif tag == np.uint64(0x21):
                    if part_end - at < 8:
                        return fail(report, TRUNCATED, tag_at, 0)
                    permission = read_fixed64(data, at)
                    at += 8
                elif tag == np.uint64(0x2A):
                    at = _acl(data, at, part_end, row, fill, sparse, cursors, limits, report)
                    flags |= _ACL
                elif tag == np.uint64(0x32):
                    at = _xattrs(data, at, part_end, row, fill, sparse, cursors, limits, report)
                    flags |= _XATTRS
                elif tag == np.uint64(0x3A):
                    at = _type_quotas(data, at, part_end, row, fill, sparse, cursors, limits, report)
                    flags |= _TYPE_QUOTA
                elif tag < np.uint64(8):
                    at = np.int64(BAD_TAG)
                else:
                    at = skip_value(data, at, part_end, tag & np.uint64(7))
                if at < 0:
                    return _outer(report, at, tag_at)
        else:
            target, target_end = part, part
            while at < part_end:
                tag_at = at
                tag, at = read_uvarint(data, at, part_end)
                if at < 0:
                    return fail(report, at, tag_at, 0)
                if tag == np.uint64(0x09):
                    if part_end - at < 8:
                        return fail(report, TRUNCATED, tag_at, 0)
                    permission = read_fixed64(data, at)
                    at += 8
                elif tag == np.uint64(0x12):
                    target, target_end = read_length(data, at, part_end)
                    at = target if target < 0 else target_end
                elif tag == np.uint64(0x18):
                    mtime, at = read_uvarint(data, at, part_end)
                elif tag == np.uint64(0x20):
                    atime, at = read_uvarint(data, at, part_end)
                elif tag < np.uint64(8):
                    at = np.int64(BAD_TAG)
                else:
                    at = skip_value(data, at, part_end, tag & np.uint64(7))
                if at < 0:
                    return fail(report, at, tag_at, 0)
            if fill:
                link = cursors[LINKS]
                if link >= limits[LINKS] or cursors[LINK_BYTES] + target_end - target > limits[LINK_BYTES]:
                    return fail(report, CHANGED, message, 0)
                sparse.link_row[link] = row
                sparse.link_start[link] = cursors[LINK_BYTES]
                for i in range(target_end - target):
                    sparse.link_heap[cursors[LINK_BYTES] + i] = data[target + i]
            cursors[LINKS] += 1
            cursors[LINK_BYTES] += target_end - target

        # 4. Quotas, and the columns.
        if replication > np.uint64(0xFFFF):
            return fail(report, BAD_REPLICATION, message, np.int64(min(replication, _MAX_I64)))
        if policy > np.uint64(0xFF) or ec_policy > np.uint64(0xFF):
            return fail(report, BAD_POLICY, message, np.int64(min(max(policy, ec_policy), _MAX_I64)))
        if namespace_quota != _UNSET or space_quota != _UNSET:
            if fill:
                quota = cursors[QUOTAS]
                if quota >= limits[QUOTAS]:
                    return fail(report, CHANGED, message, 0)
                sparse.quota_row[quota] = row
                sparse.quota_namespace[quota] = namespace_quota
                sparse.quota_space[quota] = space_quota
            cursors[QUOTAS] += 1
            flags |= _QUOTA
        if fill:
            inodes.parent[row] = np.int32(-2)
            inodes.mtime[row] = np.int64(mtime)
            inodes.atime[row] = np.int64(atime)
            inodes.preferred_block_size[row] = np.int64(block_size)
            inodes.permission[row] = permission
            inodes.replication[row] = np.uint16(0) if flags & _STRIPED else np.uint16(replication)
            inodes.flags[row] = np.uint16(flags)
            inodes.storage_policy[row] = np.uint8(policy)
            inodes.ec_policy[row] = np.uint8(ec_policy)
        cursors[ROWS] += 1
        at = stop
    return at


@bare
def _outer(report, code, offset):  # type: ignore[no-untyped-def]
    """Hand up a failure: a helper's, which it has noted itself (CODE is set), or a code of varints."""
    if report[CODE] == 0:
        report[CODE], report[OFFSET] = code, offset
    return np.int64(-1)


@bare
def _client(data, at, end, row, fill, sparse, cursors, limits, report):  # type: ignore[no-untyped-def]
    """FileUnderConstructionFeature{1 clientName 2 clientMachine}; return the offset behind it."""
    at, stop = read_length(data, at, end)
    if at < 0:
        return at
    name, name_end, machine, machine_end = at, at, at, at
    while at < stop:
        tag, at = read_uvarint(data, at, stop)
        if at < 0:
            return at
        if tag == np.uint64(0x0A):
            name, name_end = read_length(data, at, stop)
            at = name if name < 0 else name_end
        elif tag == np.uint64(0x12):
            machine, machine_end = read_length(data, at, stop)
            at = machine if machine < 0 else machine_end
        elif tag < np.uint64(8):
            return np.int64(BAD_TAG)
        else:
            at = skip_value(data, at, stop, tag & np.uint64(7))
        if at < 0:
            return at
    if fill:
        client = cursors[CLIENTS]
        first, second = cursors[CLIENT_BYTES], cursors[MACHINE_BYTES]
        is_full = client >= limits[CLIENTS] or first + name_end - name > limits[CLIENT_BYTES]
        if is_full or second + machine_end - machine > limits[MACHINE_BYTES]:
            return fail(report, CHANGED, at, 0)
        sparse.client_row[client] = row
        sparse.client_start[client] = first
        sparse.machine_start[client] = second
        for i in range(name_end - name):
            sparse.client_heap[first + i] = data[name + i]
        for i in range(machine_end - machine):
            sparse.machine_heap[second + i] = data[machine + i]
    cursors[CLIENTS] += 1
    cursors[CLIENT_BYTES] += name_end - name
    cursors[MACHINE_BYTES] += machine_end - machine
    return stop


@bare
def _acl(data, at, end, row, fill, sparse, cursors, limits, report):  # type: ignore[no-untyped-def]
    """AclFeatureProto{2 entries: fixed32, packed or not}; return the offset behind it."""
    at, stop = read_length(data, at, end)
    if at < 0:
        return at
    if fill:
        if cursors[ACL_ROWS] >= limits[ACL_ROWS]:
            return fail(report, CHANGED, at, 0)
        sparse.acl_row[cursors[ACL_ROWS]] = row
        sparse.acl_start[cursors[ACL_ROWS]] = cursors[ACL_ENTRIES]
    cursors[ACL_ROWS] += 1
    while at < stop:
        tag, at = read_uvarint(data, at, stop)
        if at < 0:
            return at
        begin, finish = at, at
        if tag == np.uint64(0x12):
            begin, finish = read_length(data, at, stop)
            at = begin if begin < 0 else finish
        elif tag == np.uint64(0x15):
            at = skip_value(data, at, stop, np.uint64(5))
            finish = at
        elif tag < np.uint64(8):
            return np.int64(BAD_TAG)
        else:
            at = skip_value(data, at, stop, tag & np.uint64(7))
        if at < 0:
            return at
        if (finish - begin) % 4 != 0:
            return np.int64(TRUNCATED)
        for entry in range(begin, finish, 4):
            if fill:
                if cursors[ACL_ENTRIES] >= limits[ACL_ENTRIES]:
                    return fail(report, CHANGED, at, 0)
                sparse.acl_entry[cursors[ACL_ENTRIES]] = read_fixed32(data, entry)
            cursors[ACL_ENTRIES] += 1
    return stop


@bare
def _xattrs(data, at, end, row, fill, sparse, cursors, limits, report):  # type: ignore[no-untyped-def]
    """XAttrFeatureProto{1 xAttrs*: {1 name:fixed32 2 value}}; return the offset behind it."""
    at, stop = read_length(data, at, end)
    while 0 <= at < stop:
        tag, at = read_uvarint(data, at, stop)
        if at < 0:
            return at
        if tag != np.uint64(0x0A):
            if tag < np.uint64(8):
                return np.int64(BAD_TAG)
            at = skip_value(data, at, stop, tag & np.uint64(7))
            continue
        at, finish = read_length(data, at, stop)
        if at < 0:
            return at
        name, value, value_end = np.uint32(0), at, at
        while at < finish:
            tag, at = read_uvarint(data, at, finish)
            if at < 0:
                return at
            if tag == np.uint64(0x0D) and finish - at >= 4:
                name = read_fixed32(data, at)
                at += 4
            elif tag == np.uint64(0x12):
                value, value_end = read_length(data, at, finish)
                at = value if value < 0 else value_end
            elif tag < np.uint64(8):
                return np.int64(BAD_TAG)
            else:
                at = skip_value(data, at, finish, tag & np.uint64(7))
            if at < 0:
                return at
        if fill:
            xattr, first = cursors[XATTRS], cursors[XATTR_BYTES]
            if xattr >= limits[XATTRS] or first + value_end - value > limits[XATTR_BYTES]:
                return fail(report, CHANGED, at, 0)
            sparse.xattr_row[xattr] = row
            sparse.xattr_name[xattr] = name
            sparse.xattr_start[xattr] = first
            for i in range(value_end - value):
                sparse.xattr_values[first + i] = data[value + i]
        cursors[XATTRS] += 1
        cursors[XATTR_BYTES] += value_end - value
    return at


@bare
def _type_quotas(data, at, end, row, fill, sparse, cursors, limits, report):  # type: ignore[no-untyped-def]
    """QuotaByStorageTypeFeatureProto{1 quotas*: {1 storageType 2 quota}}; return the offset behind it."""
    at, stop = read_length(data, at, end)
    while 0 <= at < stop:
        tag, at = read_uvarint(data, at, stop)
        if at < 0:
            return at
        if tag != np.uint64(0x0A):
            if tag < np.uint64(8):
                return np.int64(BAD_TAG)
            at = skip_value(data, at, stop, tag & np.uint64(7))
            continue
        at, finish = read_length(data, at, stop)
        if at < 0:
            return at
        storage, quota = np.uint64(0), np.uint64(0)
        while at < finish:
            tag, at = read_uvarint(data, at, finish)
            if at < 0:
                return at
            if tag == np.uint64(0x08):
                storage, at = read_uvarint(data, at, finish)
            elif tag == np.uint64(0x10):
                quota, at = read_uvarint(data, at, finish)
            elif tag < np.uint64(8):
                return np.int64(BAD_TAG)
            else:
                at = skip_value(data, at, finish, tag & np.uint64(7))
            if at < 0:
                return at
        if fill:
            if cursors[TYPE_QUOTAS] >= limits[TYPE_QUOTAS]:
                return fail(report, CHANGED, at, 0)
            sparse.type_quota_row[cursors[TYPE_QUOTAS]] = row
            sparse.type_quota_type[cursors[TYPE_QUOTAS]] = np.uint8(min(storage, np.uint64(255)))
            sparse.type_quota[cursors[TYPE_QUOTAS]] = np.int64(quota)
        cursors[TYPE_QUOTAS] += 1
    return at


def describe(code: int, value: int) -> tuple[str, str]:
    """Return what a walk's code found, and what is allowed, in words."""
    return {
        TRUNCATED: ("a field that reaches past the end of its message", "fields within it"),
        OVERLONG: ("a number over 64 bits", "64 bits"),
        BAD_TAG: ("a field that is no field (number 0, or a wire type of 3, 4, 6 or 7)", "wire types 0, 1, 2 and 5"),
        BAD_KIND: (f"inode type {value}", "1, 2 or 3"),
        NO_ID: ("an inode without an id", "an id"),
        BAD_ID: (f"inode id {value & 0xFFFFFFFFFFFFFFFF:,}", "less than 2^63"),
        LONG_NAME: (f"a name of {value:,} bytes", f"{MAX_NAME_BYTES:,}"),
        BAD_REPLICATION: (f"replication {value:,}", "65,535"),
        BAD_POLICY: (f"policy id {value:,}", "255"),
        BAD_LENGTH: (f"a block of {value & 0xFFFFFFFFFFFFFFFF:,} bytes", "a file of less than 2^63 bytes"),
        CHANGED: ("other bytes than a moment ago: the file is being written to", "a file at rest"),
    }.get(code, (f"code {code}", "no code"))
