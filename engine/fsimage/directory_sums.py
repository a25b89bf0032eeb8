"""What lies below each directory: files, directories and bytes, for a list of the largest and for going through a tree.

The tree is walked once, breadth first, so a directory stands behind its parent in the queue; what each holds itself is
counted on the way, and then added to the parents' from the end of the queue to its start. Both are kernels, called in
bounded pieces. Costs 36 bytes a directory, nothing an inode. Bytes stop at MOST: lengths in a file may say anything.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types

from engine.fsimage.column_types import BLOCK_COLUMNS, I32S, I64, I64S, INODE_COLUMNS
from engine.fsimage.columns import I32, Flag, InodeColumns, Kind, Namespace
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.errors import LoadCancelled
from engine.measure.phases import Phase
from engine.native.kernel import bare, kernel

MOST = 1 << 62  # bytes
_STEP = 1 << 20  # children walked in one call
_CHUNK = 1 << 22  # rows whose kinds are counted at once, to make no large copies
_KIND, _FILE, _DIRECTORY = 3, 1, 2
HEAD, TAIL, NEXT, OVERFLOW = range(4)  # of the walk's state


class Sums(NamedTuple):
    """Counts by place in the queue. A tuple of arrays, since kernels take it as one argument."""

    row: I32  # [d] directories in the order of the walk
    above: I32  # [d] place of the parent
    files: I64Array  # [d] files and symbolic links
    directories: I64Array  # [d]
    size: I64Array  # [d] bytes


SUMS = types.NamedTuple((I32S, I32S, I64S, I64S, I64S), Sums)


@bare
def _plus(total, more):  # type: ignore[no-untyped-def]
    """Return the sum of two sizes, MOST at most; what is negative counts as nothing."""
    if more <= 0:
        return total
    return total + more if more < MOST - total else np.int64(MOST)


@kernel(types.void(INODE_COLUMNS, BLOCK_COLUMNS, I32S, I32S, SUMS, I64S, I64), bare=True)
def walk_directories(inodes, blocks, child_start, children, sums, state, most):  # type: ignore[no-untyped-def]
    """Go on with the walk for at most `most` children; it has ended once state[HEAD] is state[TAIL].

    state: int64[4], HEAD 0 and TAIL 1 before, with the root in sums.row[0]. Each row has one parent, so none is met
    twice; OVERFLOW is set, and the walk ends, where there are more directories than `sums` has places for.
    """
    done = 0
    while state[HEAD] < state[TAIL] and done < most:
        head = state[HEAD]
        row = np.int64(sums.row[head])
        at, end = max(np.int64(child_start[row]), state[NEXT]), np.int64(child_start[row + 1])
        while at < end and done < most:
            child = np.int64(children[at])
            if inodes.flags[child] & _KIND == _DIRECTORY:
                tail = state[TAIL]
                if tail == sums.row.size:
                    state[OVERFLOW], state[HEAD] = 1, tail
                    return
                sums.row[tail], sums.above[tail] = np.int32(child), np.int32(head)
                sums.directories[head] += 1
                state[TAIL] = tail + 1
            else:
                sums.files[head] += 1
                size = sums.size[head]
                for block in range(np.int64(inodes.block_start[child]), np.int64(inodes.block_start[child + 1])):
                    size = _plus(size, blocks.length[block])
                sums.size[head] = size
            at += 1
            done += 1
        if at < end:
            state[NEXT] = at
        else:
            state[HEAD], state[NEXT] = head + 1, 0
            done += 1


@kernel(types.void(SUMS, I64), bare=True)
def add_up(sums, count):  # type: ignore[no-untyped-def]
    """Add what each of the first `count` directories holds to its parent's, children before parents."""
    for place in range(count - 1, 0, -1):
        above = np.int64(sums.above[place])
        sums.files[above] += sums.files[place]
        sums.directories[above] += sums.directories[place]
        sums.size[above] = _plus(sums.size[above], sums.size[place])


@dataclass(frozen=True, slots=True)
class Held:
    """What one directory holds."""

    row: int
    files: int
    directories: int
    size: int


@dataclass(frozen=True, slots=True)
class DirectorySums:
    """What lies below every directory that the root reaches, itself not counted."""

    _rows: I32  # ascending
    _order: I32  # its places in `_sums`
    _sums: Sums
    largest: tuple[Held, ...]  # by the bytes of the files directly inside, so that no byte counts twice

    def below(self, row: int) -> Held | None:
        """Return what lies below a directory, at any depth; None for what is none, or is not in the tree."""
        place = int(np.searchsorted(self._rows, row))
        if place == self._rows.size or self._rows[place] != row:
            return None
        at = int(self._order[place])
        return _held(self._sums, at)


def sum_directories(namespace: Namespace, *, largest: int, phase: Phase, cancel: threading.Event) -> DirectorySums:
    """Sum up every directory, and name the `largest` that hold most themselves. Raises LoadCancelled."""
    inodes, tree = namespace.inodes, namespace.tree
    room = count_kinds_in_chunks(inodes)[Kind.DIRECTORY]
    phase.expect(room)
    sums = Sums(np.zeros(room, np.int32), np.zeros(room, np.int32), *(np.zeros(room, np.int64) for _ in range(3)))
    state = np.zeros(4, np.int64)
    sums.row[0], state[TAIL] = namespace.root, 1
    while state[HEAD] < state[TAIL]:
        if cancel.is_set():
            raise LoadCancelled
        before = int(state[HEAD])
        walk_directories(inodes, namespace.blocks, tree.child_start, tree.children, sums, state, _STEP)
        phase.advance(int(state[HEAD]) - before)
    count = int(state[TAIL])
    sums = Sums._make(column[:count].copy() for column in sums) if count < room else sums
    top = np.argsort(sums.size, kind="stable")[::-1][:largest]
    found = tuple(_held(sums, int(place)) for place in top if sums.files[place])
    add_up(sums, count)
    order = np.argsort(sums.row, kind="stable").astype(np.int32)
    return DirectorySums(sums.row[order], order, sums, found)


def count_kinds_in_chunks(inodes: InodeColumns) -> dict[Kind, int]:
    """Return how many inodes of each kind there are, without a copy of the column."""
    counts = np.zeros(4, np.int64)
    for at in range(0, int(inodes.flags.size), _CHUNK):
        counts += np.bincount(inodes.flags[at : at + _CHUNK] & np.uint16(Flag.KIND), minlength=4)
    return {kind: int(counts[kind]) for kind in Kind}


def _held(sums: Sums, place: int) -> Held:
    return Held(int(sums.row[place]), int(sums.files[place]), int(sums.directories[place]), int(sums.size[place]))
