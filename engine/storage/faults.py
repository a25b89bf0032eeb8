"""Planned faults for the storage kernels, and the state a crash would leave.

A FaultTable is handed to whoever opens a log: its rows say which write or sync call fails, stalls or stops short,
and its journal keeps every write and sync in order. `after_crash` then builds what the disk may hold after the
power is cut: synced bytes are there, and each un-synced 512-byte sector was dropped, kept or torn.
"""

from __future__ import annotations

import errno
import os
import random
import weakref
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.storage import device as d
from engine.units import MIB, Bytes, Nanoseconds

SECTOR = 512
_JOURNAL_ROWS = 1 << 16
_ZEROED_IN_RECYCLED = 4096  # the header's block


class Site(IntEnum):
    """Where a fault strikes."""

    WRITE = d.SITE_WRITE
    SYNC = d.SITE_SYNC
    PREALLOCATE = 3  # a write of zeros while a segment is prepared; in Python, so the kernels' table skips it


@dataclass(frozen=True, slots=True)
class Fault:
    """One planned fault: on the nth call of `site` (from 1), or on that call and every later one."""

    site: Site
    nth: int
    code: int = 0  # errno to fail with; EINTR is what it is in real life: a write goes on, a sync fails
    every: bool = False
    stall_ns: Nanoseconds = Nanoseconds(0)
    short_bytes: Bytes = Bytes(0)  # the write call passes on at most this many bytes


class FaultTable:
    """The faults and the journal of one device. Attach it before kernels use the device."""

    def __init__(self, *faults: Fault, journal_bytes: int = 16 * MIB) -> None:
        if len(faults) > d.FAULT_ROWS:
            raise ValueError(f"{len(faults)} faults planned, the table has {d.FAULT_ROWS} rows")
        self.faults = faults
        self._rows = np.zeros((_JOURNAL_ROWS, d.JOURNAL_COLUMNS), np.int64)
        self._bytes = np.zeros(journal_bytes, np.uint8)
        self._device: npt.NDArray[np.void] | None = None
        self._preallocations = 0
        self._recycled: dict[int, int] = {}  # new number: the one whose file it was

    def attach(self, device: npt.NDArray[np.void]) -> None:
        """Make `device` follow this table and keep its journal here.

        The device holds addresses of this table's arrays, so they live as long as the device's array does.
        """
        weakref.finalize(device, _let_go, self._rows, self._bytes).atexit = False
        self._device = device
        device["journal_rows"], device["journal_limit"] = self._rows.ctypes.data, len(self._rows)
        device["journal_bytes"], device["journal_size"] = self._bytes.ctypes.data, self._bytes.size
        arm(device, self.faults)

    def preallocate_write(self, descriptor: int, content: bytes, offset: int) -> int:
        """Write as os.pwrite does, or fail as planned for Site.PREALLOCATE."""
        self._preallocations += 1
        for fault in self.faults:
            hit = fault.nth == self._preallocations or (fault.every and self._preallocations > fault.nth)
            if fault.site is Site.PREALLOCATE and hit:
                raise OSError(fault.code, os.strerror(fault.code))
        return os.pwrite(descriptor, content, offset)

    def note_recycled(self, old: int, new: int) -> None:
        """Remember that file `new` was `old`: what was not overwritten durably still holds the old bytes."""
        self._recycled[new] = old

    def after_crash(self, folder: Path, seed: int | None) -> None:
        """Rewrite the files below `folder` to what a crash now may leave of them; seed None: the least.

        Journal file numbers are segment numbers. The journal must hold every write since the files were zero; raises
        RuntimeError where it overflowed.
        """
        device = self._device
        if device is None or int(device["journal_overflow"][0]):
            raise RuntimeError("the journal is not attached, or overflowed: make journal_bytes larger")
        rows = self._rows[: int(device["journal_count"][0])]
        chance = random.Random(seed) if seed is not None else _Least()
        for number in sorted({int(row[d.J_FILE]) for row in rows}):
            path = folder / f"{number:08d}.wal"
            if path.exists():
                self._play_back(path, number, rows, chance)

    def _play_back(self, path: Path, number: int, rows: npt.NDArray[np.int64], chance: random.Random) -> None:
        content = np.frombuffer(bytearray(path.read_bytes()), np.uint8)
        before = self._before(number, content.size, rows)
        for row in rows:
            if row[d.J_FILE] == number:
                place = slice(row[d.J_OFFSET], row[d.J_OFFSET] + row[d.J_LENGTH])
                content[place] = before[place]
        firm = max((int(r[d.J_COVERS]) for r in rows if r[d.J_FILE] == number and r[d.J_LENGTH] == 0), default=0)
        for k, row in enumerate(rows):
            if row[d.J_FILE] != number or row[d.J_LENGTH] == 0:
                continue
            offset, length, data = (int(row[c]) for c in (d.J_OFFSET, d.J_LENGTH, d.J_DATA))
            new = self._bytes[data : data + length]
            if k < firm:
                content[offset : offset + length] = new
            else:
                _write_unsynced(content, offset, new, chance)
        path.write_bytes(content.tobytes())

    def _before(self, number: int, size: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return what file `number` held before its first write: zeros, or in a recycled file what it was before."""
        before = np.zeros(size, np.uint8)
        ancestry = [number]
        while ancestry[-1] in self._recycled:
            ancestry.append(self._recycled[ancestry[-1]])
        for ancestor in reversed(ancestry[1:]):  # each was synced whole before it was rolled away
            for row in rows:
                if row[d.J_FILE] == ancestor:
                    offset, length, data = (int(row[c]) for c in (d.J_OFFSET, d.J_LENGTH, d.J_DATA))
                    before[offset : offset + length] = self._bytes[data : data + length]
            before[:_ZEROED_IN_RECYCLED] = 0
        return before


class _Least(random.Random):
    """The chance of a crash that takes all it can."""

    def choice(self, seq):  # type: ignore[no-untyped-def]
        """Return the first: dropped."""
        return seq[0]


def arm(device: npt.NDArray[np.void], faults: tuple[Fault, ...]) -> None:
    """Set the fault table of a device, at work or not; `nth` counts from now."""
    device["armed"] = 0
    table = np.zeros((d.FAULT_ROWS, d.FAULT_COLUMNS), np.int64)
    for k, fault in enumerate(fault for fault in faults if fault.site is not Site.PREALLOCATE):
        table[k] = (fault.site, fault.nth, fault.every, fault.code, fault.stall_ns, fault.short_bytes)
    device["faults"][0] = table
    device["armed"] = len(faults)


def _let_go(*_: object) -> None:
    """Do nothing: until its device's array is gone, the finalizer that calls this keeps what it is given."""


def error_name(code: int) -> str:
    """Return `EIO` for 5, for messages."""
    return errno.errorcode.get(code, f"errno {code}")


def _write_unsynced(
    content: npt.NDArray[np.uint8], offset: int, new: npt.NDArray[np.uint8], chance: random.Random
) -> None:
    """Put each sector that `new` touches into `content` as a crash may: not at all, whole, or its first part."""
    at = offset
    end = offset + len(new)
    while at < end:
        stop = min(at + SECTOR - at % SECTOR, end)
        fate = chance.choice(("dropped", "kept", "torn"))
        upto = stop if fate == "kept" else at if fate == "dropped" else chance.randint(at, stop)
        content[at:upto] = new[at - offset : upto - offset]
        at = stop
