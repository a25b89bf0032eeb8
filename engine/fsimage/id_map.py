"""From inode id to row, while a tree is built.

Ids are handed out upwards and never again, so those of an image span little more than their number: then a plain
array from id to row does. An image whose ids are spread further gets an open-addressing table. Both hold row + 1;
0 is empty. Neither is kept once the tree stands.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numba import types

from engine.fsimage.column_types import I32S, I64, I64S
from engine.fsimage.columns import I32
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.pieces import run_pieces
from engine.measure.phases import Phase
from engine.native.kernel import bare, kernel

DENSE = 3  # ids may span this many times their number, 12 bytes an inode, before a table is smaller
MAX_PROBES = 4096  # the table is at most half full: only ids made to collide need more
_PIECE_ROWS = 1 << 18
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Knuth's multiplicative hashing


@dataclass(frozen=True, slots=True)
class IdMap:
    """Row + 1 by id. Kernels take the fields one by one, and `inode_id` beside them."""

    slots: I32
    base: int  # the id of slots[0], where is_direct
    is_direct: bool

    def row(self, inode_id: I64Array, wanted: int) -> int:
        """Return the row of an id, or -1."""
        return int(find_row(self.slots, self.base, self.is_direct, inode_id, wanted))


class IdsCollide(Exception):
    """Ids that no NameNode hands out: chosen so that a table of them never ends. The caller names the image."""


@dataclass(frozen=True, slots=True)
class DuplicateId:
    """Two inodes with one id: the first row keeps it."""

    inode_id: int
    row: int  # the later one


@bare
def row_of(slots, base, is_direct, inode_id, wanted):  # type: ignore[no-untyped-def]
    """Return the row whose id is `wanted`, or -1."""
    if is_direct:
        at = wanted - base
        if at < 0 or at >= slots.size:
            return np.int64(-1)
        return np.int64(slots[at]) - 1
    mask = np.uint64(slots.size - 1)
    at = _home(wanted, mask)
    for _ in range(min(MAX_PROBES, slots.size)):
        row = np.int64(slots[np.int64(at)]) - 1
        if row < 0 or inode_id[row] == wanted:
            return row
        at = (at + np.uint64(1)) & mask
    return np.int64(-1)


@bare
def _home(wanted, mask):  # type: ignore[no-untyped-def]
    mixed = np.uint64(wanted) * _MIX
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@kernel(I64(I32S, I64, types.boolean, I64S, I64), bare=True)
def find_row(slots, base, is_direct, inode_id, wanted):  # type: ignore[no-untyped-def]
    """Return the row of an id, or -1."""
    return row_of(slots, base, is_direct, inode_id, wanted)


@kernel(types.void(I64S, I64, I64, I32S, I64), bare=True)
def _place(inode_id, start, end, slots, base):  # type: ignore[no-untyped-def]
    # Downwards, so that of two rows with one id the first keeps it.
    for row in range(end - 1, start - 1, -1):
        slots[inode_id[row] - base] = np.int32(row + 1)


@kernel(I64(I64S, I64, I64, I32S, I64), bare=True)
def _count_lost(inode_id, start, end, slots, base):  # type: ignore[no-untyped-def]
    lost = 0
    for row in range(start, end):
        lost += slots[inode_id[row] - base] != row + 1
    return np.int64(lost)


@kernel(I64(I64S, I32S), bare=True)
def _insert_all(inode_id, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(slots.size - 1)  # at most half full, so every probe ends
    lost = 0
    for row in range(inode_id.size):
        at = _home(inode_id[row], mask)
        is_new = True
        for _ in range(min(MAX_PROBES, slots.size)):
            other = np.int64(slots[np.int64(at)]) - 1
            if other < 0:
                slots[np.int64(at)] = np.int32(row + 1)
                is_new = False
                break
            if inode_id[other] == inode_id[row]:
                lost += 1
                is_new = False
                break
            at = (at + np.uint64(1)) & mask
        if is_new:
            return np.int64(-1)
    return np.int64(lost)


def make_id_map(
    inode_id: I64Array, *, threads: int, phase: Phase, cancel: threading.Event, most: int
) -> tuple[IdMap, int, list[DuplicateId]]:
    """Return the map, how many rows carry an id that an earlier row has, and the first `most` of them."""
    rows = int(inode_id.size)
    base = int(inode_id.min()) if rows else 0
    span = int(inode_id.max()) - base + 1 if rows else 0
    if span > DENSE * rows + 1024:
        table = IdMap(np.zeros(1 << max(2 * rows - 1, 1).bit_length(), np.int32), 0, is_direct=False)
        lost = int(_insert_all(inode_id, table.slots))
        if lost < 0:
            raise IdsCollide
    else:
        table = IdMap(np.zeros(span, np.int32), base, is_direct=True)
        pieces = -(-rows // _PIECE_ROWS)
        lost_by_piece = [0] * pieces

        def place(piece: int) -> None:
            _place(inode_id, piece * _PIECE_ROWS, min((piece + 1) * _PIECE_ROWS, rows), table.slots, base)

        def count(piece: int) -> None:
            end = min((piece + 1) * _PIECE_ROWS, rows)
            lost_by_piece[piece] = int(_count_lost(inode_id, piece * _PIECE_ROWS, end, table.slots, base))

        run_pieces(pieces, place, threads=threads, phase=phase, cancel=cancel)
        run_pieces(pieces, count, threads=threads, phase=phase, cancel=cancel)
        lost = sum(lost_by_piece)
        if lost:  # threads raced for a slot: decide in order
            _place(inode_id, 0, rows, table.slots, base)
    return table, lost, _duplicates(table, inode_id, most) if lost else []


def _duplicates(table: IdMap, inode_id: I64Array, most: int) -> list[DuplicateId]:
    order = np.argsort(inode_id, kind="stable")
    ids = inode_id[order]
    later = np.sort(order[1:][ids[1:] == ids[:-1]])
    return [DuplicateId(int(inode_id[row]), int(row)) for row in later[:most]]
