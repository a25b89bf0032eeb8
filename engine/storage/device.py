"""Devices: how a log's writes and syncs reach the disk, with simulated latency and planned faults.

    real      the file system as it is
    serial    every sync also takes a fixed latency, one sync at a time: a single disk queue
    parallel  every sync also takes a fixed latency, and syncs overlap: a replicated or network store

All three write and sync real files; the latency of the last two is slept by the absolute clock on top of it and
is called simulated wherever it is shown. The kind is an integer in the kernel, so what is measured is the same
machine code. Faults come from a table that each call consults (see faults.py).
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

import numpy as np
from numba import types

from engine.errors import BadValue, UnknownChoice
from engine.native import files
from engine.native.atomics import add, add_cell, load, store, swap
from engine.native.clock import monotonic_ns, sleep_until
from engine.native.kernel import inner, type_of_record
from engine.native.locks import MUTEX, lock, make_condition, make_mutex, unlock
from engine.native.memory import make_records, record_type, store_at
from engine.native.turns import TURN_SLOTS, TURNS, pass_turn, take_turn
from engine.units import Nanoseconds, format_duration, parse_duration

REAL, SERIAL, PARALLEL = 0, 1, 2
FDATASYNC, FSYNC, DSYNC, NO_SYNC = 0, 1, 2, 3
SYNC_MODES = {"fdatasync": FDATASYNC, "fsync": FSYNC, "dsync": DSYNC, "none": NO_SYNC}
KINDS = {"real": REAL, "serial": SERIAL, "parallel": PARALLEL}

# One row of the fault table: it strikes when the calls that are left come to none, once or on every call from there.
SITE_NONE, SITE_WRITE, SITE_SYNC = 0, 1, 2
FAULT_ROWS, FAULT_COLUMNS = 16, 6
F_SITE, F_LEFT, F_EVERY, F_ERRNO, F_STALL, F_SHORT = range(FAULT_COLUMNS)

# One row of the journal: what reached the operating system, in order, so that a crash can be played back.
J_FILE, J_OFFSET, J_LENGTH, J_DATA, J_COVERS = range(5)  # a sync has length 0 and the number of rows it covers
JOURNAL_COLUMNS = 5

DEVICE_DTYPE = record_type(
    [
        ("queue", MUTEX),
        ("queue_turns", TURNS),  # a serial device serves one sync at a time, in order
        ("queue_next", "i8"),
        ("queue_served", "i8"),
        ("journal_mutex", MUTEX),
        ("kind", "i8"),
        ("sync_mode", "i8"),
        ("latency_ns", "i8"),
        ("stall_ns", "i8"),  # one-shot: the next sync takes this much longer
        ("armed", "i8"),  # rows of the fault table in use; 0 skips it
        ("write_calls", "i8"),
        ("sync_calls", "i8"),
        ("faults", "i8", (FAULT_ROWS, FAULT_COLUMNS)),
        ("journal_rows", "i8"),  # address of int64[journal_limit, JOURNAL_COLUMNS], or 0
        ("journal_limit", "i8"),
        ("journal_count", "i8"),
        ("journal_bytes", "i8"),  # address of the bytes written
        ("journal_size", "i8"),
        ("journal_used", "i8"),
        ("journal_overflow", "i8"),
    ]
)
DEVICE = type_of_record(DEVICE_DTYPE)

_memcpy = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
_EINTR, _EIO = errno.EINTR, errno.EIO


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device as asked for: `real`, `serial:5ms`, `parallel:1ms`."""

    kind: str
    latency_ns: Nanoseconds = Nanoseconds(0)

    @property
    def label(self) -> str:
        """Return the name to show: it says `simulated` where it is."""
        return "real" if self.kind == "real" else f"{self.kind} {format_duration(self.latency_ns)} (simulated)"

    @property
    def is_simulated(self) -> bool:
        """Return whether latency is added."""
        return self.kind != "real"


def parse_device(text: str) -> DeviceSpec:
    """Read `real`, `serial:LATENCY` or `parallel:LATENCY`. Raises UnknownChoice or BadValue."""
    kind, colon, latency = text.partition(":")
    if kind not in KINDS:
        raise UnknownChoice(what="device", given=text, choices=("real", "serial:5ms", "parallel:1ms"))
    if (kind == "real") == bool(colon):
        allowed = "real without a latency" if kind == "real" else f"{kind}:LATENCY"
        raise BadValue(what="device", given=text, allowed=allowed, example="serial:5ms")
    latency_ns = parse_duration(latency) if colon else Nanoseconds(0)
    if colon and not re.search(r"[a-zA-Z]", latency):
        raise BadValue(what="device", given=text, allowed=f"{kind}:LATENCY with a unit", example=f"{kind}:5ms")
    if latency_ns > 10_000_000_000:
        raise BadValue(what="device", given=text, allowed="a latency of at most 10 s", example=f"{kind}:5ms")
    return DeviceSpec(kind, latency_ns)


def parse_sync(text: str) -> str:
    """Check the name of a sync mode. Raises UnknownChoice."""
    if text not in SYNC_MODES:
        raise UnknownChoice(what="sync mode", given=text, choices=SYNC_MODES)
    return text


def sync_label(mode: str) -> str:
    """Return a sync mode as it is shown."""
    return "none (not durable)" if mode == "none" else mode


def make_device(spec: DeviceSpec, sync: str) -> np.ndarray:
    """Return a device record (an array of one) ready for kernels."""
    device = make_records(1, DEVICE_DTYPE)
    make_mutex(device["queue"][0])
    make_mutex(device["journal_mutex"][0])
    for slot in range(TURN_SLOTS):
        make_condition(device["queue_turns"][0][slot])
    configure(device, spec, sync)
    return device


def configure(device: np.ndarray, spec: DeviceSpec, sync: str) -> None:
    """Make a device another one; no kernel may be using it."""
    device["kind"], device["latency_ns"], device["sync_mode"] = KINDS[spec.kind], spec.latency_ns, SYNC_MODES[sync]


@inner
def write_bytes(device, file, descriptor, address, length, offset):  # type: ignore[no-untyped-def]
    """Write `length` bytes from `address` at `offset`, whole; return 0 or -errno.

    file: the number the journal knows the file by. Short writes and EINTR go on where they stopped; in sync mode
    dsync the bytes are durable on return. No lock of the log is held.
    """
    durable_write = device.sync_mode == DSYNC
    in_turn = durable_write and device.kind == SERIAL  # looked at once: a turn that was taken is passed on
    if in_turn:
        take_turn(device, "queue", "queue_turns", "queue_next", "queue_served")
    result = _write_all(device, file, descriptor, address, length, offset, durable_write)
    if durable_write:
        _add_latency(device)
    if in_turn:
        pass_turn(device, "queue", "queue_turns", "queue_served")
    return result


@inner
def sync_file(device, file, descriptor):  # type: ignore[no-untyped-def]
    """Make what was written durable, by the device's sync mode; return 0 or -errno. Never retried.

    In modes dsync (the write did it) and none (nobody does) nothing is called.
    """
    return np.int64(0) if device.sync_mode >= DSYNC else sync_in_any_mode(device, file, descriptor)


@inner
def sync_in_any_mode(device, file, descriptor):  # type: ignore[no-untyped-def]
    """Make what was written durable, also where the sync mode calls for nothing; return 0 or -errno. Never retried."""
    in_turn = device.kind == SERIAL
    if in_turn:
        take_turn(device, "queue", "queue_turns", "queue_next", "queue_served")
    covers = load(device, "journal_count")
    add(device, "sync_calls", 1)
    code, _ = _planned(device, SITE_SYNC)
    result = np.int64(-code)
    if code == 0:
        result = files.fsync(descriptor) if device.sync_mode == FSYNC else files.fdatasync(descriptor)
    if result == 0 and device.journal_rows != 0:
        _journal(device, file, 0, 0, 0, covers)
    _add_latency(device)
    if in_turn:
        pass_turn(device, "queue", "queue_turns", "queue_served")
    return result


@inner
def _add_latency(device):  # type: ignore[no-untyped-def]
    """Sleep the simulated latency, and a stall that was asked for, on top of what the call took."""
    extra = device.latency_ns if device.kind != REAL else 0
    if load(device, "stall_ns") != 0:
        extra += swap(device, "stall_ns", 0)  # of syncs that overlap one takes it
    if extra > 0:
        _sleep(extra)


@inner
def _sleep(duration):  # type: ignore[no-untyped-def]
    deadline = monotonic_ns() + duration
    while sleep_until(deadline) == _EINTR:
        pass


@inner
def _write_all(device, file, descriptor, address, length, offset, durable_write):  # type: ignore[no-untyped-def]
    done = np.int64(0)
    while done < length:
        want = length - done
        add(device, "write_calls", 1)
        code, short = _planned(device, SITE_WRITE)
        if code == _EINTR:
            continue
        if code != 0:
            return np.int64(-code)
        if short > 0:
            want = min(want, short)
        at = address + np.uint64(done)
        if durable_write:
            count = files.pwrite_dsync(descriptor, at, np.uint64(want), offset + done)
        else:
            count = files.pwrite(descriptor, at, np.uint64(want), offset + done)
        if count == -_EINTR:
            continue
        if count < 0:
            return count
        if count == 0:
            return np.int64(-_EIO)  # no progress and no reason: looping would never end
        if device.journal_rows != 0:
            _journal(device, file, offset + done, count, at, 0)
            if durable_write:
                _journal(device, file, 0, 0, 0, load(device, "journal_count"))
        done += count
    return np.int64(0)


@inner
def _planned(device, site):  # type: ignore[no-untyped-def]
    """Return (errno, most bytes to write) planned for this call, 0 for what is not; sleeps a planned stall.

    Each row counts the calls of its site down: a fault armed on a device at work strikes the nth call from then.
    """
    code, short, stall = np.int64(0), np.int64(0), np.int64(0)
    if load(device, "armed") == 0:
        return code, short
    for k in range(FAULT_ROWS):
        row = device.faults[k]
        if row[F_SITE] != site:
            continue
        left = add_cell(row, F_LEFT, -1)
        if left == 1 or (left < 1 and row[F_EVERY] != 0):
            stall += row[F_STALL]
            if code == 0:
                code = row[F_ERRNO]
            if short == 0:
                short = row[F_SHORT]
    if stall > 0:  # once this call is counted by every row: others pass it meanwhile
        _sleep(stall)
    return code, short


@inner
def _journal(device, file, offset, length, address, covers):  # type: ignore[no-untyped-def]
    """Note one write with its bytes, or (length 0) one sync that covers the rows before `covers`."""
    lock(device, "journal_mutex")
    row, used = device.journal_count, device.journal_used
    if row < device.journal_limit and used + length <= device.journal_size:
        cells = np.uint64(device.journal_rows + row * (8 * JOURNAL_COLUMNS))
        store_at(cells, file)
        store_at(cells + np.uint64(8), offset)
        store_at(cells + np.uint64(16), length)
        store_at(cells + np.uint64(24), used)
        store_at(cells + np.uint64(32), covers)
        if length > 0:
            _memcpy(np.uint64(device.journal_bytes + used), np.uint64(address), np.uint64(length))
        device.journal_used = used + length
        store(device, "journal_count", row + 1)
    else:
        store(device, "journal_overflow", 1)
    unlock(device, "journal_mutex")
