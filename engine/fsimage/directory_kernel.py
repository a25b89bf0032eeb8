"""DirEntry messages to parents and children.

    DirEntry{1 parent:id  2 children*:id, packed  3 refChildren*:index into INODE_REFERENCE, packed}

Pass 1 (`attach`) gives each listed inode its parent's row; pass 2 (`place`) puts rows into the children index in the
order of the file, which is name order. Between them children are counted. Pieces run on all threads: in a whole image
no inode is listed twice, so no two write one cell; where that does not hold the counts disagree, and the caller starts
over on one thread, where every contradiction is met in order and noted.
"""

from __future__ import annotations

import numpy as np
from numba import types

from engine.fsimage.column_types import BYTES, I32S, I64, I64S
from engine.fsimage.id_map import row_of
from engine.fsimage.varints import BAD_TAG, read_length, read_uvarint, skip_value
from engine.native.kernel import bare, kernel

STEP_ENTRIES = 4096

# What pass 1 notes, as [problem, offset of the entry, parent id, child id or index].
MISSING_PARENT, PARENT_IS_NO_DIRECTORY, MISSING_CHILD, LISTED_TWICE, BAD_REFERENCE, ROOT_LISTED = range(1, 7)
PROBLEM_FIELDS = 4

# totals of pass 1
ENTRIES, ATTACHED, BY_REFERENCE, PROBLEMS = range(4)
TOTALS = 12  # the problem numbered p is counted at PROBLEMS + p, too

_DIRECTORY, _KIND = 2, 3
_DETACHED = np.int32(-2)
_ROOT = np.int32(-1)
_BY_REFERENCE = np.uint16(1024)
_MAX_I64 = np.uint64((1 << 63) - 1)


@bare
def _parent_id(data, at, stop):  # type: ignore[no-untyped-def]
    """Return (parent id, 0), or (offset, code); checks the framing of every field on the way."""
    parent = np.int64(-1)
    while at < stop:
        tag_at = at
        tag, at = read_uvarint(data, at, stop)
        if at < 0:
            return tag_at, at
        if tag == np.uint64(0x08):
            value, at = read_uvarint(data, at, stop)
            parent = np.int64(value) if value <= _MAX_I64 else np.int64(-1)
        elif tag < np.uint64(8):
            at = np.int64(BAD_TAG)
        else:
            at = skip_value(data, at, stop, tag & np.uint64(7))
        if at < 0:
            return tag_at, at
    return parent, np.int64(0)


@bare
def _note(problems, totals, problem, offset, parent, child):  # type: ignore[no-untyped-def]
    at = totals[PROBLEMS]
    if at < problems.shape[0]:
        problems[at, 0], problems[at, 1], problems[at, 2], problems[at, 3] = problem, offset, parent, child
    totals[PROBLEMS] += 1
    totals[PROBLEMS + problem] += 1


@kernel(
    I64(
        BYTES, I64, I64, I64, I32S, I64, types.boolean, I64S, I64S, I32S,
        types.Array(types.uint16, 1, "C"), types.Array(types.int64, 2, "C"), I64S, I64S,
    ), bare=True
)  # fmt: skip
def attach(data, start, end, most, slots, base, is_direct, inode_id, referred, parent, flags, problems, totals, report):  # type: ignore[no-untyped-def]
    """Take at most `most` entries of data[start:end]; return the offset behind them, or -1 with `report` filled.

    parent: int32[rows], DETACHED before. problems: int64[p, 4]; the first p are noted, all are counted in totals.
    """
    at = start
    for _ in range(most):
        if at >= end:
            break
        entry = at
        at, stop = read_length(data, entry, end)
        if at < 0:
            report[0], report[1] = at, entry
            return np.int64(-1)
        parent_id, code = _parent_id(data, at, stop)
        if code < 0:
            report[0], report[1] = code, parent_id
            return np.int64(-1)
        totals[ENTRIES] += 1
        row = row_of(slots, base, is_direct, inode_id, parent_id)
        if row < 0 or np.int64(flags[row]) & _KIND != _DIRECTORY:
            _note(problems, totals, MISSING_PARENT if row < 0 else PARENT_IS_NO_DIRECTORY, entry, parent_id, 0)
            at = stop
            continue
        while at < stop:
            tag_at = at
            tag, at = read_uvarint(data, at, stop)
            if at < 0:
                report[0], report[1] = at, tag_at
                return np.int64(-1)
            field, wire = tag >> np.uint64(3), tag & np.uint64(7)
            if (field != np.uint64(2) and field != np.uint64(3)) or (wire != np.uint64(2) and wire != np.uint64(0)):
                at = skip_value(data, at, stop, wire)
                continue
            finish = stop
            if wire == np.uint64(2):
                at, finish = read_length(data, at, stop)
            many = wire == np.uint64(2)
            while at < finish:
                value, at = read_uvarint(data, at, finish)
                if at < 0:
                    report[0], report[1] = at, tag_at
                    return np.int64(-1)
                if field == np.uint64(3):
                    if value >= np.uint64(referred.size):
                        _note(problems, totals, BAD_REFERENCE, entry, parent_id, np.int64(min(value, _MAX_I64)))
                        if not many:
                            break
                        continue
                    child_id = referred[np.int64(value)]
                else:
                    child_id = np.int64(value) if value <= _MAX_I64 else np.int64(-1)
                child = row_of(slots, base, is_direct, inode_id, child_id)
                if child < 0:
                    _note(problems, totals, MISSING_CHILD, entry, parent_id, child_id)
                elif parent[child] == _ROOT:
                    _note(problems, totals, ROOT_LISTED, entry, parent_id, child_id)
                elif parent[child] != _DETACHED:
                    _note(problems, totals, LISTED_TWICE, entry, parent_id, child_id)
                else:
                    parent[child] = np.int32(row)
                    totals[ATTACHED] += 1
                    if field == np.uint64(3):
                        flags[child] |= _BY_REFERENCE
                        totals[BY_REFERENCE] += 1
                if not many:
                    break
        at = stop
    return at


@kernel(I64(BYTES, I64, I64, I64, I32S, I64, types.boolean, I64S, I64S, I32S, I32S, I32S, I64S), bare=True)
def place(data, start, end, most, slots, base, is_direct, inode_id, referred, parent, child_start, children, totals):  # type: ignore[no-untyped-def]
    """Walk as `attach` did, which has checked every byte; return the offset behind, or -1 where counts disagree.

    An entry must fill its directory's part of `children` exactly: then every cell is written once, by one thread.
    totals[ATTACHED] counts the rows placed.
    """
    at = start
    for _ in range(most):
        if at >= end:
            break
        at, stop = read_length(data, at, end)
        if at < 0:
            return np.int64(-1)
        parent_id, code = _parent_id(data, at, stop)
        if code < 0:
            return np.int64(-1)
        row = row_of(slots, base, is_direct, inode_id, parent_id)
        if row < 0:
            at = stop
            continue
        cursor, limit = np.int64(child_start[row]), np.int64(child_start[row + 1])
        while at < stop:
            tag, at = read_uvarint(data, at, stop)
            if at < 0:
                return np.int64(-1)
            field, wire = tag >> np.uint64(3), tag & np.uint64(7)
            if (field != np.uint64(2) and field != np.uint64(3)) or (wire != np.uint64(2) and wire != np.uint64(0)):
                at = skip_value(data, at, stop, wire)
                if at < 0:
                    return np.int64(-1)
                continue
            finish = stop
            if wire == np.uint64(2):
                at, finish = read_length(data, at, stop)
                if at < 0:
                    return np.int64(-1)
            while at < finish:
                value, at = read_uvarint(data, at, finish)
                if at < 0:
                    return np.int64(-1)
                if field == np.uint64(2):
                    child_id = np.int64(value) if value <= _MAX_I64 else np.int64(-1)
                else:
                    child_id = referred[np.int64(value)] if value < np.uint64(referred.size) else np.int64(-1)
                child = row_of(slots, base, is_direct, inode_id, child_id)
                if child >= 0 and parent[child] == row:
                    if cursor >= limit:
                        return np.int64(-1)
                    children[cursor] = np.int32(child)
                    cursor += 1
                    totals[ATTACHED] += 1
                if wire == np.uint64(0):
                    break
        if cursor != limit:
            return np.int64(-1)
        at = stop
    return at
