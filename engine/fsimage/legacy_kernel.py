"""Legacy records to columns: a scan that finds where records begin, then a fill on all threads.

Record boundaries are only found by reading, so the scan is one thread's: it checks every length, counts what columns
need, notes directories by the hash of their path, and cuts pieces. With full paths a parent is resolved while filling:
records of one directory stand together (HADOOP-3364), so nearly always the parent's path is the one before, and else
the table of directories has it. With local names a directory's path stands once before its children; the scan looks
it up there.

A full path is looked up by FNV-1a over its bytes; with local names the hash of a directory goes on from its parent's,
so both find "/a/b" by the same number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numba.cpython.unsafe.numbers import leading_zeros

from engine.fsimage.column_types import BLOCK_COLUMNS, BYTES, HEAP, I32S, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import I32, U64
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.inode_kernel import (
    BLOCKS,
    CHANGED,
    CODE,
    DIRECTORIES,
    FILES,
    LINK_BYTES,
    LINKS,
    NAME_BYTES,
    OFFSET,
    QUOTAS,
    ROWS,
    SPARSE_ARRAYS,
    VALUE,
)
from engine.fsimage.legacy_layout import Feature
from engine.native.crc32c import load_u64
from engine.native.kernel import bare, inlined, kernel

# Codes of a failed scan or fill; what they mean is in `describe`.
CUT, BAD_BLOCKS, BAD_TEXT, NO_PARENT_PATH, NO_ROOT, BAD_CHILDREN, TOO_LARGE, BAD_LINK = (
    -31,
    -32,
    -33,
    -34,
    -35,
    -36,
    -37,
    -38,
)
MAX_PROBES = 4096  # a table is at most half full: only names made to collide need more
FULL = -2  # a table has no room: grow it and call again

# State of a scan.
AT, LEFT_IN_DIRECTORY, PARENT, ENTRIES = range(4)
STATE = 4

_MTIME, _ATIME, _BLOCK_SIZE, _GENERATION = (
    int(Feature.MTIME),
    int(Feature.ATIME),
    int(Feature.BLOCK_SIZE),
    int(Feature.GENERATION),
)
_NS_QUOTA, _DS_QUOTA, _PERMISSION = int(Feature.NAMESPACE_QUOTA), int(Feature.SPACE_QUOTA), int(Feature.PERMISSION)
_EMPTY_IS_DIRECTORY, _SYMLINKS, _ID = int(Feature.EMPTY_IS_DIRECTORY), int(Feature.SYMLINKS), int(Feature.INODE_ID)
_LOCAL = int(Feature.LOCAL_NAMES)
_FILE, _DIRECTORY, _SYMLINK, _QUOTA = 1, 2, 3, 64
_SLASH = 47
_ROOT_ID = 16385
_MAX_I64 = (1 << 63) - 1
_SLASHES, _LOW_BITS = np.uint64(0x2F2F2F2F2F2F2F2F), np.uint64(0x7F7F7F7F7F7F7F7F)
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class Directories(NamedTuple):
    """Directories by the hash of their path, open addressing; the d-th met is entry d."""

    slots: I32  # [power of two, twice the entries] entry + 1
    hashes: U64  # [entries]
    name_at: I64Array  # [entries] where its path (full) or name (local) stands in the data
    name_length: I32
    row: I32
    parent: I32  # [entries] entry of its parent, with local names; else 0


def make_directories(entries: int) -> Directories:
    """Return an empty table with room for `entries` directories, a power of two."""
    return Directories(
        np.zeros(2 * entries, np.int32),
        np.zeros(entries, np.uint64),
        np.zeros(entries, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
    )


DIRECTORIES_TABLE = typeof(make_directories(1))


class Owners(NamedTuple):
    """Owners or groups met in a piece: where each stands in the data. Ids are local to the piece, from 1."""

    slots: I32  # [power of two, twice the room] id, by the hash of the name
    at: I64Array
    length: I32


def make_owners(room: int) -> Owners:
    """Return an empty table with room for `room` names, a power of two."""
    return Owners(np.zeros(2 * room, np.int32), np.zeros(room, np.int64), np.zeros(room, np.int32))


OWNERS = typeof(make_owners(1))


@inlined
def be16(data, at):  # type: ignore[no-untyped-def]
    """Return the big-endian uint16 at data[at:at + 2], which the caller has checked to be there."""
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@inlined
def be32(data, at):  # type: ignore[no-untyped-def]
    """Return the big-endian int32 there, signed."""
    return np.int64(np.int32(be16(data, at) << 16 | be16(data, at + 2)))


@inlined
def be64(data, at):  # type: ignore[no-untyped-def]
    """Return the big-endian int64 there."""
    return be32(data, at) << 32 | (be32(data, at + 4) & 0xFFFFFFFF)


@inlined
def read_text(data, at, end):  # type: ignore[no-untyped-def]
    """Return (start, stop) of the Text at `at`, or (-1, -1): a Hadoop vint length, then bytes."""
    if at >= end:
        return np.int64(-1), np.int64(-1)
    first = np.int64(np.int8(data[at]))
    at += 1
    if first >= -112:
        length = first
    else:
        size = -112 - first if first >= -120 else np.int64(9)  # below -120 the number would be negative
        if size > 5 or end - at < size:
            return np.int64(-1), np.int64(-1)
        length = np.int64(0)
        for i in range(size):
            length = length << 8 | np.int64(data[at + i])
        at += size
    if length < 0 or length > end - at:
        return np.int64(-1), np.int64(-1)
    return at, at + length


@inlined
def read_record(data, at, end, features):  # type: ignore[no-untyped-def]
    """Decode an inode record from behind its name.

    Returns (next offset or code, kind, id, replication, mtime, atime, block size, blocks at, blocks, namespace quota,
    space quota, owner at, owner end, group at, group end, mode, target at, target end).
    """
    zero = np.int64(0)
    inode_id, mtime, atime, block_size, blocks, mode = zero, zero, zero, zero, zero, zero
    namespace_quota, space_quota = np.int64(-1), np.int64(-1)
    owner, owner_end, group, group_end, target, target_end = zero, zero, zero, zero, zero, zero
    kind, blocks_at, replication = np.int64(_FILE), zero, zero
    need = 6 + (8 if features & _ID else 0) + (8 if features & _MTIME else 0)
    need += (8 if features & _ATIME else 0) + (8 if features & _BLOCK_SIZE else 0)
    code = zero
    if end - at < need:
        code = np.int64(CUT)
    else:
        if features & _ID:
            inode_id = be64(data, at)
            at += 8
        replication = be16(data, at)
        at += 2
        if features & _MTIME:
            mtime = be64(data, at)
            at += 8
        if features & _ATIME:
            atime = be64(data, at)
            at += 8
        if features & _BLOCK_SIZE:
            block_size = be64(data, at)
            at += 8
        blocks = be32(data, at)
        at += 4
        if blocks == -1 or (blocks <= 0 and features & _EMPTY_IS_DIRECTORY):
            kind, blocks = np.int64(_DIRECTORY), zero
            if end - at < 16:
                code = (
                    np.int64(CUT)
                    if end - at < (8 if features & _NS_QUOTA else 0) + (8 if features & _DS_QUOTA else 0)
                    else code
                )
            if code == 0 and features & _NS_QUOTA:
                namespace_quota = be64(data, at)
                at += 8
            if code == 0 and features & _DS_QUOTA:
                space_quota = be64(data, at)
                at += 8
        elif blocks == -2 and features & _SYMLINKS:
            kind, blocks = np.int64(_SYMLINK), zero
            target, target_end = read_text(data, at, end)
            if target < 0:
                code = np.int64(BAD_LINK)
            at = target_end
        else:
            size = 24 if features & _GENERATION else 16
            if blocks < 0 or blocks > (end - at) // size:
                code = np.int64(BAD_BLOCKS)
            else:
                blocks_at = at
                at += size * blocks
        if code == 0 and features & _PERMISSION:
            owner, owner_end = read_text(data, at, end)
            if owner < 0:
                code = np.int64(BAD_TEXT)
            else:
                group, group_end = read_text(data, owner_end, end)
                if group < 0 or end - group_end < 2:
                    code = np.int64(BAD_TEXT)
                else:
                    mode = be16(data, group_end)
                    at = group_end + 2
    after = at if code == 0 else code
    return (
        after, kind, inode_id, replication, mtime, atime, block_size, blocks_at, blocks, namespace_quota, space_quota,
        owner, owner_end, group, group_end, mode, target, target_end,
    )  # fmt: skip


@inlined
def _hash_on(state, data, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        state = (state ^ np.uint64(data[i])) * _FNV_PRIME
    return state


@inlined
def _same(data, a, b, length):  # type: ignore[no-untyped-def]
    """Return whether data[a:a + length] equals data[b:b + length]; eight bytes at a time."""
    i = np.int64(0)
    while i + 8 <= length:
        if load_u64(data, a + i) != load_u64(data, b + i):
            return False
        i += 8
    while i < length:
        if data[a + i] != data[b + i]:
            return False
        i += 1
    return True


@inlined
def _last_slash(data, start, stop):  # type: ignore[no-untyped-def]
    """Return the offset of the last "/" in data[start:stop], or start - 1: eight bytes at a time from the end."""
    at = stop
    while at - 8 >= start:
        # The high bit of each byte that is "/": exact, where the shorter trick errs above a hit.
        other = load_u64(data, at - 8) ^ _SLASHES
        hits = ~(((other & _LOW_BITS) + _LOW_BITS) | other | _LOW_BITS)
        if hits != 0:
            return at - 1 - np.int64(leading_zeros(hits) >> np.uint64(3))
        at -= 8
    at -= 1
    while at >= start and data[at] != _SLASH:
        at -= 1
    return at


@inlined
def _slot(state, table):  # type: ignore[no-untyped-def]
    return np.int64((state ^ (state >> np.uint64(29))) & np.uint64(table.slots.size - 1))


@bare
def _find_full(data, table, start, stop, state):  # type: ignore[no-untyped-def]
    """Return the entry of the directory whose full path is data[start:stop], or -1."""
    at = _slot(state, table)
    for _ in range(min(MAX_PROBES, table.slots.size)):
        entry = np.int64(table.slots[at]) - 1
        if entry < 0:
            return np.int64(-1)
        is_likely = table.hashes[entry] == state and table.name_length[entry] == stop - start
        if is_likely and _same(data, table.name_at[entry], start, stop - start):
            return entry
        at = (at + 1) & (table.slots.size - 1)
    return np.int64(-1)


@bare
def _find_local(data, table, start, stop, state):  # type: ignore[no-untyped-def]
    """The same with local names: compare components from the last one up."""
    at = _slot(state, table)
    for _ in range(min(MAX_PROBES, table.slots.size)):
        entry = np.int64(table.slots[at]) - 1
        if entry < 0:
            return np.int64(-1)
        if table.hashes[entry] == state:
            up, end, is_same = entry, stop, True
            while is_same and end > start:
                length = np.int64(table.name_length[up])
                begin = end - length
                is_same = up != 0 and begin - 1 >= start and data[begin - 1] == _SLASH
                is_same = is_same and _same(data, table.name_at[up], begin, length)
                end, up = begin - 1, np.int64(table.parent[up])
            if is_same and up == 0:
                return entry
        at = (at + 1) & (table.slots.size - 1)
    return np.int64(-1)


@bare
def _insert(table, entry, state, name_at, length, row, parent):  # type: ignore[no-untyped-def]
    table.hashes[entry] = state
    table.name_at[entry], table.name_length[entry] = name_at, np.int32(length)
    table.row[entry], table.parent[entry] = np.int32(row), np.int32(parent)
    at = _slot(state, table)
    for _ in range(min(MAX_PROBES, table.slots.size)):
        if table.slots[at] == 0:
            table.slots[at] = np.int32(entry + 1)  # last, so that a reader beside us meets whole entries
            return
        at = (at + 1) & (table.slots.size - 1)


@kernel(types.void(DIRECTORIES_TABLE, I64), bare=True)
def rebuild(table, entries):  # type: ignore[no-untyped-def]
    """Put the first `entries` entries into empty slots."""
    for entry in range(entries):
        at = _slot(table.hashes[entry], table)
        for _ in range(min(MAX_PROBES, table.slots.size)):
            if table.slots[at] == 0:
                table.slots[at] = np.int32(entry + 1)
                break
            at = (at + 1) & (table.slots.size - 1)


@kernel(I64(BYTES, I64, I64, I64, I64S, I64S, DIRECTORIES_TABLE, I32S, I64S), bare=True)
def scan(data, end, rows, features, state, cursors, table, parents, report):  # type: ignore[no-untyped-def]
    """Scan records until row `rows`; return rows scanned so far, FULL, or -1 with `report` filled.

    state: int64[STATE], cursors: int64[CURSORS], both carried over calls. table: directories met so far. parents:
    int32[rows in all], filled with local names alone.
    """
    at, row = state[AT], cursors[ROWS]
    left, parent, entries = state[LEFT_IN_DIRECTORY], state[PARENT], state[ENTRIES]
    is_local = features & _LOCAL != 0
    result = np.int64(0)
    while row < rows:
        if entries == table.hashes.size:
            result = np.int64(FULL)
            break
        begin = at
        # 1. With local names, the directory whose children come next.
        if is_local and row > 0:
            for _ in range(rows):  # directories without children may be listed
                if left > 0:
                    break
                begin = at
                length = be16(data, at) if end - at >= 2 else np.int64(-1)
                if length < 0 or end - at < 2 + length + 4:
                    result = np.int64(CUT)
                    break
                start, stop = at + 2, at + 2 + length
                if length == 1 and data[start] == _SLASH:  # the root's path is "/" to some writers, "" to others
                    stop = start
                parent = _find_local(data, table, start, stop, _hash_on(_FNV_BASIS, data, start, stop))
                left = be32(data, at + 2 + length)
                if parent < 0:
                    result = np.int64(NO_PARENT_PATH)
                elif left < 0 or left > rows - row:
                    result, report[VALUE] = np.int64(BAD_CHILDREN), left
                if result < 0:
                    break
                at += 2 + length + 4
            if result < 0:
                break
            if left <= 0:
                result = np.int64(CUT)
                break
            begin = at
        # 2. The name and the record.
        if end - at < 2 or end - at - 2 < be16(data, at):
            result = np.int64(CUT)
            break
        length = be16(data, at)
        name = at + 2
        record = read_record(data, name + length, end, features)
        if record[0] < 0:
            result = record[0]
            break
        if row == 0 and (length > 1 or record[1] != _DIRECTORY):
            result = np.int64(NO_ROOT)
            break
        # 3. What columns will need.
        at = record[0]
        component = length
        if is_local:
            parents[row] = table.row[parent] if row > 0 else np.int32(-1)
            left -= 1
        elif row > 0:
            component = name + length - 1 - _last_slash(data, name, name + length)
        if row == 0:
            component = np.int64(0)
        cursors[NAME_BYTES] += component
        cursors[BLOCKS] += record[8]
        if record[1] == _DIRECTORY:
            cursors[DIRECTORIES] += 1
            cursors[QUOTAS] += record[9] != -1 or record[10] != -1
            if row == 0:
                _insert(table, np.int64(0), _FNV_BASIS, name, 0, 0, 0)
            elif is_local:
                hashed = _hash_on((table.hashes[parent] ^ np.uint64(_SLASH)) * _FNV_PRIME, data, name, name + length)
                _insert(table, entries, hashed, name, length, row, parent)
            else:
                _insert(table, entries, _hash_on(_FNV_BASIS, data, name, name + length), name, length, row, 0)
            entries += 1
        elif record[1] == _SYMLINK:
            cursors[LINKS] += 1
            cursors[LINK_BYTES] += record[17] - record[16]
        else:
            cursors[FILES] += 1
        row += 1
    cursors[ROWS] = row
    state[AT], state[LEFT_IN_DIRECTORY], state[PARENT], state[ENTRIES] = at, left, parent, entries
    if result == FULL:
        return result
    if result < 0:
        report[CODE], report[OFFSET] = result, begin
        return np.int64(-1)
    return row


@bare
def _owner(data, start, stop, owners, count):  # type: ignore[no-untyped-def]
    """Return the id of an owner's name, added if it is new; -1 where there is no room.

    Names made to collide get a second id; the pieces are merged by name, so that costs room alone.
    """
    mask = owners.slots.size - 1
    at = np.int64(_hash_on(_FNV_BASIS, data, start, stop) & np.uint64(mask))
    for _ in range(MAX_PROBES):
        known = np.int64(owners.slots[at])
        if known == 0:
            break
        if owners.length[known - 1] == stop - start and _same(data, owners.at[known - 1], start, stop - start):
            return known
        at = (at + 1) & mask
    if count == owners.at.size:
        return np.int64(-1)
    owners.at[count], owners.length[count] = start, np.int32(stop - start)
    if owners.slots[at] == 0:
        owners.slots[at] = np.int32(count + 1)
    return np.int64(count + 1)


@kernel(types.void(BYTES, OWNERS, I64), bare=True)
def index_owners(data, owners, count):  # type: ignore[no-untyped-def]
    """Put the first `count` names into empty slots."""
    mask = owners.slots.size - 1
    for known in range(count):
        start = owners.at[known]
        at = np.int64(_hash_on(_FNV_BASIS, data, start, start + owners.length[known]) & np.uint64(mask))
        for _ in range(min(MAX_PROBES, owners.slots.size)):
            if owners.slots[at] == 0:
                owners.slots[at] = np.int32(known + 1)
                break
            at = (at + 1) & mask


@kernel(
    I64(
        BYTES, I64, I64, I64, I64, INODE_COLUMNS, BLOCK_COLUMNS, HEAP, SPARSE_ARRAYS, DIRECTORIES_TABLE, OWNERS, OWNERS,
        I64S, I64S, I64S, I64S,
    ),
    bare=True,
)  # fmt: skip
def fill(  # type: ignore[no-untyped-def]
    data, at, end, left_in_directory, features, inodes, blocks, names, sparse, table, users, groups, counts, cursors,
    limits, report,
):  # fmt: skip
    """Fill the columns of one piece, which `scan` has checked; return the offset behind it, FULL, or -1.

    counts: int64[6]; users and groups so far, the offset and the children left to go on from after FULL, then how many
    parents were looked up and how many were found where the last one was.
    """
    is_local = features & _LOCAL != 0
    last_at, last_length, last_row = np.int64(0), np.int64(-1), np.int64(0)
    last_user, last_user_id, last_group, last_group_id = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    last_user_length, last_group_length = np.int64(-1), np.int64(-1)
    left = left_in_directory
    while cursors[ROWS] < limits[ROWS]:
        begin = at
        row = cursors[ROWS]
        if is_local and row > 0:
            for _ in range(limits[ROWS]):
                if left > 0 or end - at < 2 or end - at < 2 + be16(data, at) + 4:
                    break
                at += 2 + be16(data, at)
                left = be32(data, at)
                at += 4
        if end - at < 2 or end - at - 2 < be16(data, at):
            return _changed(report, begin)
        length = be16(data, at)
        name = at + 2
        (
            after, kind, inode_id, replication, mtime, atime, block_size, blocks_at, count, namespace_quota,
            space_quota, owner, owner_end, group, group_end, mode, target, target_end,
        ) = read_record(data, name + length, end, features)  # fmt: skip
        if after < 0:
            return _changed(report, begin)

        # 1. Owner and group: nearly always those of the record before.
        if owner_end - owner != last_user_length or not _same(data, last_user, owner, last_user_length):
            found = _owner(data, owner, owner_end, users, counts[0])
            if found < 0:
                counts[2], counts[3] = begin, left
                return np.int64(FULL)
            counts[0] = max(counts[0], found)
            last_user, last_user_length, last_user_id = owner, owner_end - owner, found
        if group_end - group != last_group_length or not _same(data, last_group, group, last_group_length):
            found = _owner(data, group, group_end, groups, counts[1])
            if found < 0:
                counts[2], counts[3] = begin, left
                return np.int64(FULL)
            counts[1] = max(counts[1], found)
            last_group, last_group_length, last_group_id = group, group_end - group, found

        # 2. The parent, and the name below it.
        first = name
        if row == 0:
            inodes.parent[row] = np.int32(-1)
            first = name + length
        elif is_local:
            left -= 1
        else:
            cut = _last_slash(data, name, name + length) - name
            first = name + cut + 1
            above = max(cut, 0)
            if above != last_length or not _same(data, last_at, name, above):
                counts[4] += 1
                entry = _find_full(data, table, name, name + above, _hash_on(_FNV_BASIS, data, name, name + above))
                if entry < 0 or table.row[entry] >= row:
                    report[CODE], report[OFFSET] = NO_PARENT_PATH, begin
                    return np.int64(-1)
                last_row = np.int64(table.row[entry])
            else:
                counts[5] += 1
            last_at, last_length = name, above
            inodes.parent[row] = np.int32(last_row)
        to = cursors[NAME_BYTES]
        size = name + length - first
        if to + size > limits[NAME_BYTES] or cursors[BLOCKS] + count > limits[BLOCKS]:
            return _changed(report, begin)
        inodes.name_start[row] = to
        for i in range(size):
            names[to + i] = data[first + i]
        cursors[NAME_BYTES] += size

        # 3. Blocks.
        block = cursors[BLOCKS]
        inodes.block_start[row] = np.uint32(block)
        step = 24 if features & _GENERATION else 16
        total = np.int64(0)
        for k in range(count):
            from_ = blocks_at + step * k
            bytes_ = be64(data, from_ + 8)
            if bytes_ < 0 or bytes_ > _MAX_I64 - total:
                report[CODE], report[OFFSET], report[VALUE] = TOO_LARGE, begin, bytes_
                return np.int64(-1)
            total += bytes_
            blocks.block_id[block + k] = be64(data, from_)
            blocks.length[block + k] = bytes_
            blocks.generation[block + k] = be64(data, from_ + 16) if features & _GENERATION else 0
        cursors[BLOCKS] += count

        # 4. The rest.
        flags = kind
        if namespace_quota != -1 or space_quota != -1:
            quota = cursors[QUOTAS]
            if quota >= limits[QUOTAS]:
                return _changed(report, begin)
            sparse.quota_row[quota] = np.int32(row)
            sparse.quota_namespace[quota], sparse.quota_space[quota] = namespace_quota, space_quota
            cursors[QUOTAS] += 1
            flags |= _QUOTA
        if kind == _SYMLINK:
            link = cursors[LINKS]
            if link >= limits[LINKS] or cursors[LINK_BYTES] + target_end - target > limits[LINK_BYTES]:
                return _changed(report, begin)
            sparse.link_row[link] = np.int32(row)
            sparse.link_start[link] = cursors[LINK_BYTES]
            for i in range(target_end - target):
                sparse.link_heap[cursors[LINK_BYTES] + i] = data[target + i]
            cursors[LINKS] += 1
            cursors[LINK_BYTES] += target_end - target
        inodes.inode_id[row] = inode_id if features & _ID else _ROOT_ID + row
        inodes.mtime[row] = mtime
        inodes.atime[row] = atime if kind != _DIRECTORY else 0
        if kind == _FILE:
            inodes.preferred_block_size[row] = block_size
            inodes.replication[row] = np.uint16(replication)
        owners = np.uint64(last_user_id) << np.uint64(40) | np.uint64(last_group_id) << np.uint64(16)
        inodes.permission[row] = owners | np.uint64(mode)
        inodes.flags[row] = np.uint16(flags)
        cursors[ROWS] += 1
        at = after
    return at


@bare
def _changed(report, offset):  # type: ignore[no-untyped-def]
    report[CODE], report[OFFSET] = CHANGED, offset
    return np.int64(-1)


@kernel(types.void(types.Array(types.uint64, 1, "C"), I64, I64, I64S, I64S), bare=True)
def renumber(permission, start, end, users, groups):  # type: ignore[no-untyped-def]
    """Replace owner and group ids of rows [start, end) by users[id] and groups[id]."""
    for row in range(start, end):
        packed = permission[row]
        user = np.int64(packed >> np.uint64(40))
        group = np.int64((packed >> np.uint64(16)) & np.uint64(0xFFFFFF))
        mapped = np.uint64(users[user]) << np.uint64(40) | np.uint64(groups[group]) << np.uint64(16)
        permission[row] = mapped | (packed & np.uint64(0xFFFF))


def describe(code: int, value: int) -> tuple[str, str]:
    """Return what a code found, and what is allowed, in words."""
    return {
        CUT: ("a record that reaches past the end", "a whole one; the file may have been cut"),
        BAD_BLOCKS: (
            "a number of blocks that the file cannot hold",
            "-1 (directory), -2 (symlink), or blocks that follow",
        ),
        BAD_TEXT: ("an owner or group that reaches past the end", "text within the file"),
        BAD_LINK: ("a symlink's target that reaches past the end", "text within the file"),
        NO_PARENT_PATH: ("a path whose parent has not been met", "parents before children"),
        NO_ROOT: ("a first record that is not the root directory", "the root"),
        BAD_CHILDREN: (f"a directory of {value:,} children", "as many as inodes are left"),
        TOO_LARGE: (f"a block of {value & 0xFFFFFFFFFFFFFFFF:,} bytes", "a file of less than 2^63 bytes"),
        CHANGED: ("other bytes than a moment ago: the file is being written to", "a file at rest"),
    }.get(code, (f"code {code}", "no code"))
