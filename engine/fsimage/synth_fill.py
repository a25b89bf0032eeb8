"""Directories of a plan to rows: the same columns that a loaded image has, for a range of directories at a time.

Rows are counted from the first of the range (the root belongs to the first range). What each child is, see synth_plan.
"""

from __future__ import annotations

import numpy as np
from numba import types

from engine.fsimage.column_types import BLOCK_COLUMNS, HEAP, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import ROOT_ID
from engine.fsimage.synth_plan import HOME, PARTITION, PLAN, ROOT, TABLE, USER, draw, mix
from engine.native.kernel import bare, inlined, kernel

BLOCK_SIZE = 128 << 20
MOST_BLOCKS = 128  # of a file: block ids are row * MOST_BLOCKS + place, so that no range needs to know another's
MOST_NAME = 40  # bytes of a name
FIRST_BLOCK_ID, FIRST_GENERATION = 1 << 30, 1001
OWNERS_BEFORE = 2  # string ids: 1 is the superuser, users follow
GROUPS = 24
NOW = 1767225600000  # 2026-01-01, ms
LEGACY_ROOT_QUOTA, ROOT_QUOTA = (1 << 31) - 1, (1 << 63) - 1

_DAY = 86_400_000
_LAST_DAY = NOW // _DAY - 1
_FILE, _DIRECTORY = 1, 2
_WORDS = np.frombuffer(b"clicks  orders  sessionsevents  logs    users   metrics payments", np.uint8).copy()
_WORD = 8
_WORD_BYTES = np.array([6, 6, 8, 6, 4, 5, 7, 8], np.int64)
_MEDIAN, _MEAN_OF_SUM = 22 << 16 | 1 << 15, 2 * 65535  # 2^22.5 bytes; four uniform 16-bit numbers
_SPREAD, _SPREAD_OVER = 3746, 655  # their deviation, 37,837, to 3.3 doublings in 1/65536


@inlined
def _size(bits):  # type: ignore[no-untyped-def]
    """Return the bytes of a file: log-normal, with straight lines between powers of two; whole numbers alone."""
    if bits % np.uint64(10) == np.uint64(0):
        return np.int64(0)
    z = mix(bits)
    total = np.int64(0)
    for i in range(4):
        total += np.int64((z >> np.uint64(16 * i)) & np.uint64(0xFFFF))
    x = _MEDIAN + (total - _MEAN_OF_SUM) * _SPREAD // _SPREAD_OVER
    power, rest = x >> 16, x & 0xFFFF
    return (np.int64(1) << power) + (((np.int64(1) << power) * rest) >> 16)


@inlined
def _blocks(size):  # type: ignore[no-untyped-def]
    return min((size + BLOCK_SIZE - 1) // BLOCK_SIZE, np.int64(MOST_BLOCKS))


@inlined
def has_files(plan, k):  # type: ignore[no-untyped-def]
    """Whether the children of directory k are files: those of a partition, and of a flat table."""
    kind = plan.kind[k]
    if kind == PARTITION:
        return True
    return kind == TABLE and (k + 1 == plan.kind.size or plan.parent[k + 1] != k)


@inlined
def _digits(heap, at, number, width):  # type: ignore[no-untyped-def]
    for i in range(width - 1, -1, -1):
        heap[at + i] = np.uint8(48 + number % 10)
        number //= 10
    return at + width


@inlined
def _letters(heap, at, a, b):  # type: ignore[no-untyped-def]
    """Put the low bytes of a, until one is 0, then those of b."""
    for word in (a, b):
        rest = word
        while rest != np.uint64(0):
            heap[at] = np.uint8(rest & np.uint64(0xFF))
            rest >>= np.uint64(8)
            at += 1
    return at


def _packed(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_USER_WORD, _PART, _SUFFIX_1, _SUFFIX_2 = _packed(b"user"), _packed(b"part-"), _packed(b".snappy."), _packed(b"parquet")
_DT, _NONE = _packed(b"dt="), np.uint64(0)


@bare
def put_name(plan, seed, k, index, heap, at):  # type: ignore[no-untyped-def]
    """Put the name of child `index` of directory k at heap[at], at most MOST_NAME bytes; return the offset behind it.

    Names ascend with the index, byte by byte.
    """
    kind = plan.kind[k]
    if kind == ROOT:
        return _letters(heap, at, _USER_WORD, _NONE)
    if kind == HOME:
        heap[at] = np.uint8(0x75)
        return _digits(heap, at + 1, index, 6)
    if kind == USER:
        heap[at] = np.uint8(0x74)
        at = _digits(heap, at + 1, index, 4)
        heap[at] = np.uint8(0x5F)
        word = np.int64(draw(seed, k, index) & np.uint64(7))
        for i in range(_WORD_BYTES[word]):
            heap[at + 1 + i] = _WORDS[_WORD * word + i]
        return at + 1 + _WORD_BYTES[word]
    if not has_files(plan, k):
        return _put_date(heap, _letters(heap, at, _DT, _NONE), _LAST_DAY - (plan.children[k] - 1 - index))
    style = draw(seed, k, -2) & np.uint64(7)
    if style < np.uint64(4):
        return _digits(heap, _letters(heap, at, _PART, _NONE), index, 5)
    if style < np.uint64(6):
        at = _digits(heap, _letters(heap, at, _PART, _NONE), index, 5)
        heap[at] = np.uint8(0x2D)
        bits = draw(seed, k, index)
        for i in range(8):
            nibble = np.int64((bits >> np.uint64(4 * i)) & np.uint64(15))
            heap[at + 1 + i] = np.uint8(nibble + (48 if nibble < 10 else 87))
        return _letters(heap, at + 9, _SUFFIX_1, _SUFFIX_2)
    at = _digits(heap, at, index, 6)
    heap[at], heap[at + 1] = np.uint8(0x5F), np.uint8(0x30)
    return at + 2


@bare
def _put_date(heap, at, day):  # type: ignore[no-untyped-def]
    """Put a day, counted from 1970, as 2025-11-02. Source: Hinnant, chrono-Compatible Low-Level Date Algorithms."""
    z = np.int64(day) + 719_468
    era = z // 146_097
    of_era = z - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    at = _digits(heap, at, year_of_era + era * 400 + (1 if month <= 2 else 0), 4)
    heap[at] = np.uint8(0x2D)
    at = _digits(heap, at + 1, month, 2)
    heap[at] = np.uint8(0x2D)
    return _digits(heap, at + 1, of_year - (153 * shifted + 2) // 5 + 1, 2)


@inlined
def _permission(user, mode):  # type: ignore[no-untyped-def]
    """Return a packed permission; user: number, or -1 for the superuser."""
    if user < 0:
        return np.uint64((1 << 40) | (1 << 16) | mode)
    return np.uint64((np.int64(user) + OWNERS_BEFORE) << 40 | (np.int64(user) % GROUPS + 2) << 16 | mode)


@inlined
def _day_of(plan, k, index):  # type: ignore[no-untyped-def]
    """Return the day to which child `index` of directory k belongs: its own, or that of the partition it is in."""
    if plan.kind[k] == PARTITION:
        return _LAST_DAY - (plan.children[plan.parent[k]] - 1 - plan.place[k])
    if plan.kind[k] == TABLE and not has_files(plan, k):
        return _LAST_DAY - (plan.children[k] - 1 - index)
    return np.int64(_LAST_DAY - 365)


@kernel(types.void(PLAN, I64, I64, I64, I64S), bare=True)
def count_range(plan, seed, first, last, totals):  # type: ignore[no-untyped-def]
    """Add up what the children of directories [first, last) have. totals: int64[3], files, blocks, bytes."""
    for k in range(first, last):
        if has_files(plan, k):
            for index in range(plan.children[k]):
                size = _size(draw(seed, k, index))
                totals[0] += 1
                totals[1] += _blocks(size)
                totals[2] += size


@kernel(types.void(PLAN, I64, I64, I64, types.boolean, INODE_COLUMNS, BLOCK_COLUMNS, HEAP), bare=True)
def fill_range(plan, seed, first, last, is_legacy, inodes, blocks, names):  # type: ignore[no-untyped-def]
    """Fill columns with the children of directories [first, last), after the root where first is 0.

    The columns have that many rows, `blocks` what count_range says, `names` MOST_NAME bytes a row.
    is_legacy: block ids are 64 random bits, as they were before block ids were counted.
    """
    row, name, block = np.int64(0), np.int64(0), np.int64(0)
    if first == 0:
        inodes.inode_id[0] = ROOT_ID
        inodes.parent[0] = np.int32(-1)
        inodes.mtime[0] = NOW
        inodes.permission[0] = _permission(np.int64(-1), np.int64(0o755))
        inodes.flags[0] = np.uint16(_DIRECTORY)
        row = np.int64(1)
    for k in range(first, last):
        are_files = has_files(plan, k)
        for index in range(plan.children[k]):
            number = np.int64(plan.first_child[k]) + index
            bits = draw(seed, k, index)
            inodes.inode_id[row] = ROOT_ID + number
            inodes.name_start[row] = name
            inodes.block_start[row] = np.uint32(block)
            name = put_name(plan, seed, k, index, names, name)
            user = np.int64(index) if plan.kind[k] == HOME else np.int64(plan.user[k])
            mtime = np.int64(_day_of(plan, k, index)) * _DAY + np.int64(mix(bits) % np.uint64(_DAY))
            inodes.mtime[row] = mtime
            if are_files:
                young = np.int64(bits >> np.uint64(48))
                inodes.atime[row] = mtime + (((NOW - mtime) >> 16) * ((young * young) >> 16))
                inodes.preferred_block_size[row] = BLOCK_SIZE
                inodes.permission[row] = _permission(user, np.int64(0o644))
                inodes.replication[row] = np.uint16(3)
                inodes.flags[row] = np.uint16(_FILE)
                left = _size(bits)
                for place in range(_blocks(left)):
                    block_id = np.int64(FIRST_BLOCK_ID) + number * MOST_BLOCKS + place
                    blocks.block_id[block] = np.int64(mix(np.uint64(block_id) ^ bits)) if is_legacy else block_id
                    blocks.generation[block] = FIRST_GENERATION + number
                    blocks.length[block] = min(left, np.int64(BLOCK_SIZE))
                    left -= BLOCK_SIZE
                    block += 1
            else:
                inodes.permission[row] = _permission(user, np.int64(0o755))
                inodes.flags[row] = np.uint16(_DIRECTORY)
            row += 1
    inodes.name_start[row] = name
    inodes.block_start[row] = np.uint32(block)
