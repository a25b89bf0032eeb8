"""Columns to the records of layouts -16 and -18: full paths, big-endian, one directory's children after another.

    u16 length, path  i16 replication  i64 mtime  [i64 atime: -17 and on]  i64 preferred block size
    i32 blocks, -1 for a directory     blocks: i64 id, i64 bytes, i64 generation
    directory: i64 namespace quota  [i64 space quota: -18 and on]
    Text owner  Text group  i16 mode

The root comes first, its path empty. Then, since HADOOP-3364, all children of a directory and after that each of its
sub-directories the same way, so that neighbours share a parent. `list_directories` puts directories into that order
and measures what their children take; pieces of that list are then written independently, each to its exact size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import typeof

from engine.fsimage.column_types import BLOCK_COLUMNS, HEAP, I32S, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import I32, U8
from engine.fsimage.columns import I64 as I64Array
from engine.native.kernel import bare, kernel
from engine.native.words import load_word, store_word

MAX_PATH = 0xFFFF
PATH_TOO_LONG, NO_ROOM = -1, -2
SINCE_ATIME, SINCE_SPACE_QUOTA = -17, -18
SLACK = 8  # bytes behind a record that its last store may touch

_DIRECTORY, _SYMLINK, _KIND, _STRIPED = 2, 3, 3, 8
_ID_MASK = 0xFFFFFF
_LOW, _MIDDLE = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


@bare
def put_i64(base, at, value):  # type: ignore[no-untyped-def]
    """Put eight bytes, big-endian, at offset `at` of address `base`; return the offset behind them."""
    word = np.uint64(value)
    word = (word >> np.uint64(8)) & _LOW | (word & _LOW) << np.uint64(8)
    word = (word >> np.uint64(16)) & _MIDDLE | (word & _MIDDLE) << np.uint64(16)
    store_word(base + np.uint64(at), word >> np.uint64(32) | word << np.uint64(32))
    return at + 8


@bare
def put_i32(base, at, value):  # type: ignore[no-untyped-def]
    """Put four bytes, big-endian; up to four more behind them are touched."""
    put_i64(base, at, np.int64(value) << np.int64(32))
    return at + 4


@bare
def put_i16(base, at, value):  # type: ignore[no-untyped-def]
    """Put two bytes, big-endian; up to six more behind them are touched."""
    put_i64(base, at, np.int64(value) << np.int64(48))
    return at + 2


@bare
def put_span(base, at, data, start, end):  # type: ignore[no-untyped-def]
    """Put data[start:end], by words where the array reaches as far; up to seven bytes behind them are touched."""
    source, size = np.uint64(data.ctypes.data), end - start
    done = np.int64(0)
    while done < size and start + done + 8 <= data.size:
        store_word(base + np.uint64(at + done), load_word(source + np.uint64(start + done)))
        done += 8
    while done < size:
        put_i64(base, at + done, np.int64(data[start + done]) << np.int64(56))
        done += 1
    return at + size


class Texts(NamedTuple):
    """Owner and group names by id as Hadoop's Texts (a vint length, then UTF-8); id 0 is what an unknown id gets."""

    owners: U8
    owner_start: I64Array  # [ids + 1]
    groups: U8
    group_start: I64Array


TEXTS = typeof(Texts(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64)))


class Quotas(NamedTuple):
    """Quotas of the directories that have one, by ascending row."""

    row: I32
    namespace: I64Array
    space: I64Array


QUOTAS = typeof(Quotas(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)))


@bare
def text_span(start, key):  # type: ignore[no-untyped-def]
    """Return where the Text of a string id stands in its heap."""
    known = key if key < start.size - 1 else np.int64(0)
    return start[known], start[known + 1]


@bare
def _owner(permission):  # type: ignore[no-untyped-def]
    return np.int64(permission >> np.uint64(40))


@bare
def _group(permission):  # type: ignore[no-untyped-def]
    return np.int64(permission >> np.uint64(16)) & _ID_MASK


@bare
def is_left_out(flags):  # type: ignore[no-untyped-def]
    """Whether these layouts have no record for such an inode: a symbolic link, or a striped file."""
    return flags & _KIND == _SYMLINK or flags & _STRIPED != 0


@bare
def record_size(path_bytes, inodes, row, layout, texts):  # type: ignore[no-untyped-def]
    """Return the bytes of a row's record."""
    permission = inodes.permission[row]
    start, end = text_span(texts.owner_start, _owner(permission))
    size = 2 + path_bytes + 2 + 8 + 8 + 4 + 2 + (end - start)
    start, end = text_span(texts.group_start, _group(permission))
    size += end - start
    if layout <= SINCE_ATIME:
        size += 8
    if np.int64(inodes.flags[row]) & _KIND == _DIRECTORY:
        return size + (16 if layout <= SINCE_SPACE_QUOTA else 8)
    return size + 24 * (np.int64(inodes.block_start[row + 1]) - np.int64(inodes.block_start[row]))


@bare
def put_record(base, at, inodes, blocks, row, quotas, layout, texts):  # type: ignore[no-untyped-def]
    """Put what stands behind the path of a row's record; return the offset behind it."""
    permission = inodes.permission[row]
    at = put_i16(base, at, np.int64(inodes.replication[row]))
    at = put_i64(base, at, inodes.mtime[row])
    if layout <= SINCE_ATIME:
        at = put_i64(base, at, inodes.atime[row])
    at = put_i64(base, at, inodes.preferred_block_size[row])
    if np.int64(inodes.flags[row]) & _KIND == _DIRECTORY:
        at = put_i32(base, at, np.int64(-1))
        namespace, space = _quotas_of(quotas, row)
        at = put_i64(base, at, namespace)
        if layout <= SINCE_SPACE_QUOTA:
            at = put_i64(base, at, space)
    else:
        first, last = np.int64(inodes.block_start[row]), np.int64(inodes.block_start[row + 1])
        at = put_i32(base, at, last - first)
        for block in range(first, last):
            at = put_i64(base, at, blocks.block_id[block])
            at = put_i64(base, at, blocks.length[block])
            at = put_i64(base, at, blocks.generation[block])
    start, end = text_span(texts.owner_start, _owner(permission))
    at = put_span(base, at, texts.owners, start, end)
    start, end = text_span(texts.group_start, _group(permission))
    at = put_span(base, at, texts.groups, start, end)
    return put_i16(base, at, np.int64(permission & np.uint64(0xFFFF)))


@bare
def _quotas_of(quotas, row):  # type: ignore[no-untyped-def]
    low, high = np.int64(0), np.int64(quotas.row.size)
    while low < high:
        middle = (low + high) // 2
        if quotas.row[middle] < row:
            low = middle + 1
        else:
            high = middle
    if low < quotas.row.size and quotas.row[low] == row:
        return quotas.namespace[low], quotas.space[low]
    return np.int64(-1), np.int64(-1)


@kernel(I64(INODE_COLUMNS, I32S, I32S, I64, I64, TEXTS, I32S, I32S, I64S, I32S, I32S, I64S), bare=True)
def list_directories(inodes, child_start, children, root, layout, texts, order, prefix, sizes, stack, lengths, totals):  # type: ignore[no-untyped-def]
    """List the directories that have children in the order in which those are written; return how many there are.

    order, prefix, sizes: [directories with children]: row, bytes of its path, bytes of its children's records.
    stack, lengths: int32[the same + 1], for the walk. totals: int64[2]: records below the root, inodes left out.
    Returns PATH_TOO_LONG where a path passes MAX_PATH, with the row in totals[0], NO_ROOM where rows have two parents.
    """
    count, depth = np.int64(0), np.int64(0)
    if child_start[root + 1] > child_start[root]:
        stack[0], lengths[0] = np.int32(root), np.int32(0)
        depth = np.int64(1)
    while depth > 0:
        depth -= 1
        row, path_bytes = np.int64(stack[depth]), np.int64(lengths[depth])
        if count == order.size:
            return np.int64(NO_ROOM)
        size = np.int64(0)
        for at in range(np.int64(child_start[row + 1]) - 1, np.int64(child_start[row]) - 1, -1):
            child = np.int64(children[at])
            flags = np.int64(inodes.flags[child])
            if is_left_out(flags):
                totals[1] += 1
                continue
            below = path_bytes + 1 + inodes.name_start[child + 1] - inodes.name_start[child]
            if below > MAX_PATH:
                totals[0] = child
                return np.int64(PATH_TOO_LONG)
            size += record_size(below, inodes, child, layout, texts)
            totals[0] += 1
            if flags & _KIND == _DIRECTORY and child_start[child + 1] > child_start[child]:
                if depth == stack.size:
                    return np.int64(NO_ROOM)
                stack[depth], lengths[depth] = np.int32(child), np.int32(below)
                depth += 1
        order[count], prefix[count], sizes[count] = np.int32(row), np.int32(path_bytes), size
        count += 1
    return count


@bare
def _put_path(path, names, inodes, row, size):  # type: ignore[no-untyped-def]
    """Put the path of a directory into path[:size], from its last name to its first."""
    at = size
    while at > 0:
        start, end = inodes.name_start[row], inodes.name_start[row + 1]
        at -= end - start + 1
        if at < 0 or inodes.parent[row] < 0:
            return
        path[at] = np.uint8(0x2F)
        for i in range(end - start):
            path[at + 1 + i] = names[start + i]
        row = np.int64(inodes.parent[row])


@kernel(
    I64(INODE_COLUMNS, BLOCK_COLUMNS, HEAP, I32S, I32S, QUOTAS, TEXTS, I64, I32S, I32S, I64, I64, HEAP, HEAP), bare=True
)
def put_children(  # type: ignore[no-untyped-def]
    inodes, blocks, names, child_start, children, quotas, texts, layout, order, prefix, first, last, path, out
):
    """Put the records of the children of order[first:last] to the start of `out`; return the offset behind them.

    path: uint8[MAX_PATH], for the directory's path. out: as many bytes as `list_directories` measured, and SLACK.
    """
    base, at = np.uint64(out.ctypes.data), np.int64(0)
    for k in range(first, last):
        row, path_bytes = np.int64(order[k]), np.int64(prefix[k])
        _put_path(path, names, inodes, row, path_bytes)
        for c in range(np.int64(child_start[row]), np.int64(child_start[row + 1])):
            child = np.int64(children[c])
            if is_left_out(np.int64(inodes.flags[child])):
                continue
            name, name_end = inodes.name_start[child], inodes.name_start[child + 1]
            below = path_bytes + 1 + name_end - name
            if at + record_size(below, inodes, child, layout, texts) + SLACK > out.size:
                return np.int64(NO_ROOM)
            at = put_i16(base, at, below)
            at = put_span(base, at, path, np.int64(0), path_bytes)
            at = put_i64(base, at, np.int64(0x2F) << np.int64(56)) - 7
            at = put_span(base, at, names, name, name_end)
            at = put_record(base, at, inodes, blocks, child, quotas, layout, texts)
    return at
