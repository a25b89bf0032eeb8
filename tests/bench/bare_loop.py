"""The least that a durable record costs: a loop of pwrite and fdatasync on one file, as a kernel and in plain Python.

No checksum, no number, no lock, no meter: it is what a log of one handler is measured against. Same bytes at the same
offsets as the log's records, in a file that was zeroed in the same way.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import perf_counter

import numpy as np
from numba import types

from engine.native.atomics import load_cell, store_cell
from engine.native.files import fdatasync, pwrite
from engine.native.kernel import i64_array, kernel, u8_array
from engine.storage.folders import create_zeroed
from engine.units import MIB
from engine.wal.record import record_size
from engine.wal.segment import HEADER_BLOCK
from tests.bench.contenders import WARM_UP_SECONDS
from tests.bench.rounds import VALUE_BYTES, Plan

FILE_BYTES = 64 * MIB
RECORD_BYTES = record_size(VALUE_BYTES)
_STOP, _DONE, _ERROR = range(3)


@kernel(types.void(types.int64, u8_array, types.int64, types.int64, i64_array))
def write_and_sync(descriptor, record, first, end, cells):  # type: ignore[no-untyped-def]
    """Write `record` durably at `first`, behind that, and so on until cells[_STOP]; from `end` on again at `first`."""
    offset, done = first, 0
    while load_cell(cells, _STOP) == 0:
        if offset + record.size > end:
            offset = first
        count = pwrite(descriptor, record.ctypes.data, np.uint64(record.size), offset)
        if count != record.size:
            store_cell(cells, _ERROR, min(count, -1))
            return
        code = fdatasync(descriptor)
        if code != 0:
            store_cell(cells, _ERROR, code)
            return
        offset += record.size
        done += 1
        store_cell(cells, _DONE, done)


def kernel_loop(plan: Plan) -> float:
    """Return the durable writes per second of the loop as machine code."""
    cells = np.zeros(3, np.int64)
    with plan.place("bare") as path:
        descriptor = _zeroed_file(path)
        try:
            arguments = (descriptor, np.frombuffer(_record(), np.uint8).copy(), HEADER_BLOCK, FILE_BYTES, cells)
            thread = threading.Thread(target=write_and_sync, args=arguments, name="bare-loop")
            thread.start()
            thread.join(WARM_UP_SECONDS)
            before, began = int(cells[_DONE]), perf_counter()
            thread.join(plan.seconds)
            done, elapsed = int(cells[_DONE]) - before, perf_counter() - began
            cells[_STOP] = 1
            thread.join()
        finally:
            os.close(descriptor)
    if cells[_ERROR]:
        raise RuntimeError(f"the bare loop stopped: {os.strerror(-int(cells[_ERROR]))}")
    return done / elapsed


def python_loop(plan: Plan) -> float:
    """Return the durable writes per second of the loop as anyone would write it in Python."""
    record = _record()
    with plan.place("python") as path:
        descriptor = _zeroed_file(path)
        try:
            offset, done = HEADER_BLOCK, 0
            began = perf_counter() + WARM_UP_SECONDS
            while (now := perf_counter()) < began + plan.seconds:
                if offset + RECORD_BYTES > FILE_BYTES:
                    offset = HEADER_BLOCK
                os.pwrite(descriptor, record, offset)
                os.fdatasync(descriptor)
                offset += RECORD_BYTES
                done += now >= began
            return done / (perf_counter() - began)
        finally:
            os.close(descriptor)


def _zeroed_file(path: Path) -> int:
    path.mkdir()
    create_zeroed(path / "file", FILE_BYTES)
    return os.open(path / "file", os.O_WRONLY | os.O_CLOEXEC)


def _record() -> bytes:
    return os.urandom(RECORD_BYTES)
