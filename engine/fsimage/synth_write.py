"""Kernels that write what only a plan knows: directory entries of consecutive ids, legacy records with paths."""

from __future__ import annotations

import numpy as np

from engine.fsimage.column_types import BLOCK_COLUMNS, HEAP, I64, INODE_COLUMNS
from engine.fsimage.columns import ROOT_ID
from engine.fsimage.save_legacy_kernel import (
    QUOTAS,
    SLACK,
    TEXTS,
    put_i16,
    put_i64,
    put_record,
    put_span,
    record_size,
)
from engine.fsimage.save_wire import SLACK as WIRE_SLACK
from engine.fsimage.save_wire import put_head, put_number, put_uvarint
from engine.fsimage.synth_fill import MOST_NAME, put_name
from engine.fsimage.synth_plan import PLAN
from engine.native.kernel import bare, kernel

NO_ROOM = -1
ENTRY_ROOM, CHILD_ROOM = 40 + WIRE_SLACK, 10
MOST_PATH = 8 * MOST_NAME  # a directory is at most four levels down


@kernel(I64(PLAN, I64, I64, HEAP), bare=True)
def put_plan_directories(plan, first, last, out):  # type: ignore[no-untyped-def]
    """Put the DirEntry messages of directories [first, last) at the end of `out`; return where they begin, or -1."""
    base, at = np.uint64(out.ctypes.data), np.int64(out.size)
    for k in range(last - 1, first - 1, -1):
        children = np.int64(plan.children[k])
        if children == 0:
            continue
        if ENTRY_ROOM + CHILD_ROOM * children > at:
            return np.int64(NO_ROOM)
        end, id_of_first = at, np.int64(ROOT_ID) + plan.first_child[k]
        for index in range(children - 1, -1, -1):
            at = put_uvarint(base, at, np.uint64(id_of_first + index))
        at = put_head(base, at, end, 0x12)
        row = np.int64(0)
        if k > 0:
            row = np.int64(plan.first_child[plan.parent[k]]) + plan.place[k]
        at = put_number(base, at, 0x08, np.uint64(ROOT_ID + row))
        at = put_uvarint(base, at, np.uint64(end - at))
    return at


@bare
def _put_path(plan, seed, k, path):  # type: ignore[no-untyped-def]
    """Put the path of directory k at the end of `path`, of MOST_PATH bytes; return where it begins."""
    at = np.int64(MOST_PATH)
    while k > 0:
        size = put_name(plan, seed, plan.parent[k], plan.place[k], path, np.int64(0))  # its length, and its bytes
        at -= size
        for i in range(size):
            path[at + i] = path[i]
        at -= 1
        path[at] = np.uint8(0x2F)
        k = np.int64(plan.parent[k])
    return at


@kernel(I64(PLAN, I64, I64, I64, INODE_COLUMNS, BLOCK_COLUMNS, HEAP, QUOTAS, TEXTS, I64, HEAP, HEAP), bare=True)
def put_plan_records(plan, seed, first, last, inodes, blocks, names, quotas, texts, layout, path, out):  # type: ignore[no-untyped-def]
    """Put the legacy records of the rows of [first, last), as fill_range filled them, at the start of `out`.

    path: uint8[MOST_PATH]. Returns the offset behind them, or NO_ROOM.
    """
    base, at = np.uint64(out.ctypes.data), np.int64(0)
    row = np.int64(1) if first == 0 else np.int64(0)
    for k in range(first, last):
        path_start = _put_path(plan, seed, np.int64(k), path)
        path_bytes = MOST_PATH - path_start
        for _ in range(plan.children[k]):
            name, name_end = inodes.name_start[row], inodes.name_start[row + 1]
            whole = path_bytes + 1 + name_end - name
            if at + record_size(whole, inodes, row, layout, texts) + SLACK > out.size:
                return np.int64(NO_ROOM)
            at = put_i16(base, at, whole)
            at = put_span(base, at, path, path_start, np.int64(MOST_PATH))
            at = put_i64(base, at, np.int64(0x2F) << np.int64(56)) - 7
            at = put_span(base, at, names, name, name_end)
            at = put_record(base, at, inodes, blocks, row, quotas, layout, texts)
            row += 1
    return at
