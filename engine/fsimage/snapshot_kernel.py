"""SNAPSHOT_DIFF: which inodes have diffs, and which inodes only a diff still holds.

    DiffEntry{1 type: FILEDIFF 1, DIRECTORYDIFF 2   2 inodeId   3 numOfDiff}, then numOfDiff of
        FileDiff{...}  or  DirectoryDiff{... 6 createdListSize 7 deletedINode*:id, packed 8 deletedINodeRef*:index},
        the latter followed by createdListSize of CreatedListEntry{1 name}

The walk checks the framing of every byte; it runs once to count and once to fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import types

from engine.fsimage.column_types import BYTES, I64, I64S
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.columns import U8
from engine.fsimage.varints import BAD_TAG, read_length, read_uvarint, skip_value
from engine.fsimage.wire import WireError
from engine.native.kernel import bare, kernel

DIRECTORY_ENTRIES, DIRECTORY_DIFFS, FILE_ENTRIES, FILE_DIFFS, HELD, BAD_REFERENCES = range(6)
_BAD_TYPE = -10
_MAX_I64 = np.uint64((1 << 63) - 1)


@bare
def _field(data, at, stop, wanted):  # type: ignore[no-untyped-def]
    """Return (last value of varint field `wanted`, 0), or (0, code); checks the framing of all fields."""
    found = np.uint64(0)
    while at < stop:
        tag, at = read_uvarint(data, at, stop)
        if at < 0:
            return found, at
        if tag == np.uint64(wanted << 3):
            found, at = read_uvarint(data, at, stop)
        elif tag < np.uint64(8):
            at = np.int64(BAD_TAG)
        else:
            at = skip_value(data, at, stop, tag & np.uint64(7))
        if at < 0:
            return found, at
    return found, np.int64(0)


@kernel(I64(BYTES, types.boolean, I64, I64S, I64S, I64S, I64S), bare=True)
def walk_diffs(data, fill, references, entry_ids, held_ids, totals, report):  # type: ignore[no-untyped-def]
    """Walk the whole section; return 0, or a code with its offset in report[0].

    totals: int64[6]. With `fill`: entry_ids[k] is the inode of the k-th entry, held_ids the deleted inodes of all
    directory diffs; both have the size that a walk without `fill` counted.
    """
    at, end, entries = np.int64(0), data.size, 0
    while at < end:
        message = at
        report[0] = message
        at, stop = read_length(data, message, end)
        if at < 0:
            return at
        kind, code = _field(data, at, stop, 1)
        if code < 0:
            return code
        inode_id = min(_field(data, at, stop, 2)[0], _MAX_I64)
        diffs = _field(data, at, stop, 3)[0]
        if kind != np.uint64(1) and kind != np.uint64(2):
            return np.int64(_BAD_TYPE)
        if fill and entries < entry_ids.size:
            entry_ids[entries] = np.int64(inode_id)
        entries += 1
        totals[DIRECTORY_ENTRIES if kind == np.uint64(2) else FILE_ENTRIES] += 1
        at = stop
        while diffs > np.uint64(0):  # each takes a byte at least, so the section's end bounds them
            diffs -= np.uint64(1)
            report[0] = at
            at, stop = read_length(data, at, end)
            if at < 0:
                return at
            if kind == np.uint64(1):
                code = _field(data, at, stop, 1)[1]
                if code < 0:
                    return code
                totals[FILE_DIFFS] += 1
                at = stop
                continue
            totals[DIRECTORY_DIFFS] += 1
            created, code = _field(data, at, stop, 6)
            if code < 0:
                return code
            while at < stop:
                tag, at = read_uvarint(data, at, stop)
                field, wire = tag >> np.uint64(3), tag & np.uint64(7)
                if (field != np.uint64(7) and field != np.uint64(8)) or (wire != np.uint64(2) and wire != np.uint64(0)):
                    at = skip_value(data, at, stop, wire)
                    continue
                finish = stop
                if wire == np.uint64(2):
                    at, finish = read_length(data, at, stop)
                while at < finish:
                    value, at = read_uvarint(data, at, finish)
                    if at < 0:
                        return at
                    if field == np.uint64(8):
                        totals[BAD_REFERENCES] += value >= np.uint64(references)
                    else:
                        if fill and totals[HELD] < held_ids.size:
                            held_ids[totals[HELD]] = np.int64(min(value, _MAX_I64))
                        totals[HELD] += 1
                    if wire == np.uint64(0):
                        break
            at = stop
            while created > np.uint64(0):
                created -= np.uint64(1)
                report[0] = at
                at, stop = read_length(data, at, end)
                if at < 0:
                    return at
                code = _field(data, at, stop, 1)[1]
                if code < 0:
                    return code
                at = stop
    return np.int64(0)


@dataclass(frozen=True, slots=True)
class Diffs:
    """What the diffs say about inodes."""

    directory_entries: int
    directory_diffs: int
    file_entries: int
    file_diffs: int
    bad_references: int
    entry_ids: I64Array
    held_ids: I64Array


def read_diffs(data: U8, references: int) -> Diffs:
    """Walk SNAPSHOT_DIFF. references: how many entries INODE_REFERENCE has. Raises WireError."""
    empty = np.zeros(0, np.int64)
    totals, report = np.zeros(6, np.int64), np.zeros(1, np.int64)
    code = int(walk_diffs(data, False, references, empty, empty, totals, report))
    if code < 0:
        found = "a snapshot diff of unknown type" if code == _BAD_TYPE else "a snapshot diff that does not decode"
        raise WireError(int(report[0]), found, "FILEDIFF or DIRECTORYDIFF, whole")
    entry_ids = np.zeros(int(totals[DIRECTORY_ENTRIES] + totals[FILE_ENTRIES]), np.int64)
    held_ids = np.zeros(int(totals[HELD]), np.int64)
    walk_diffs(data, True, references, entry_ids, held_ids, np.zeros(6, np.int64), report)
    d, dd, f, fd, _, bad = (int(total) for total in totals)
    return Diffs(d, dd, f, fd, bad, entry_ids, held_ids)
