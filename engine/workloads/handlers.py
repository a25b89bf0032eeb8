"""Handlers: native threads that commit one record after another, closed loop or at a given rate.

A handler is a thread that runs one kernel with a stop cell of its own. It makes each payload outside the timed part:
a row of a pool of random bytes, stamped with handler and sequence so that a read-back can check count, order and
content. In an open loop the latency counts from the instant a record was meant to start, so a stall is charged to
every record it delays (no coordinated omission).

    payload   0  8  handler      (payloads shorter than 16 bytes hold the first bytes of this stamp)
              8  8  sequence, from 0
             16  n  row (handler + sequence) mod POOL_ROWS of the pool, from its byte 16 on
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from engine.native.atomics import load, store
from engine.native.clock import monotonic_ns, sleep_until
from engine.native.kernel import inner, kernel, type_of_record, u8_array, u8_matrix
from engine.native.memory import record_type
from engine.storage.device import DEVICE
from engine.wal.commit import commit, flush_all
from engine.wal.state import LOG, METERS, STAMP_COLUMNS

POOL_ROWS = 64
STAMP_BYTES = 16
_NAP_NS = 20_000_000  # how long a handler of an open loop sleeps before it looks at its stop cell

HANDLER_DTYPE = record_type(
    [
        ("stop", "i8"),
        ("number", "i8"),
        ("done", "i8"),  # records committed so far; the next one's sequence
        ("limit", "i8"),  # end after that many; 0: until stopped
        ("sync_every", "i8"),
        ("interval_ns", "i8"),  # 0: closed loop
        ("first_ns", "i8"),  # when record 0 of an open loop is meant to start
        ("result", "i8"),  # 0, or the code that ended it
        ("began_ns", "i8"),
        ("ended_ns", "i8"),
    ]
)
HANDLER = type_of_record(HANDLER_DTYPE)


def make_pool(value_size: int, seed: int) -> npt.NDArray[np.uint8]:
    """Return uint8[POOL_ROWS, value_size] of random bytes: what no compressing disk can make smaller."""
    return np.random.default_rng(seed).integers(0, 256, (POOL_ROWS, value_size), np.uint8)


def expected_payload(pool: npt.NDArray[np.uint8], handler: int, sequence: int) -> bytes:
    """Return the payload that handler `handler` commits as its record `sequence`."""
    body = bytearray(pool[(handler + sequence) % POOL_ROWS].tobytes())
    stamp = handler.to_bytes(8, "little") + sequence.to_bytes(8, "little")
    size = min(len(body), STAMP_BYTES)
    body[:size] = stamp[:size]
    return bytes(body)


@inner
def make_payload(payload, pool, number, sequence):  # type: ignore[no-untyped-def]
    """Fill payload: uint8[value_size] from pool: uint8[POOL_ROWS, value_size]."""
    payload[:] = pool[(number + sequence) % POOL_ROWS]
    for k in range(min(payload.size, STAMP_BYTES)):
        word = number if k < 8 else sequence
        payload[k] = np.uint8((word >> (8 * (k % 8))) & 0xFF)


@kernel(types.void(LOG, DEVICE, u8_matrix, METERS, types.int64, HANDLER, u8_matrix, u8_array))
def run_handler(log, device, buffers, meters, row, handler, pool, payload):  # type: ignore[no-untyped-def]
    """Commit records until stopped, at the limit, or refused. row: this thread's meter; payload: its scratch."""
    stamps = np.zeros(STAMP_COLUMNS, np.int64)
    meter = meters[row]
    sequence = handler.done
    handler.began_ns = monotonic_ns()
    while load(handler, "stop") == 0 and (handler.limit == 0 or sequence < handler.limit):
        make_payload(payload, pool, handler.number, sequence)
        began = monotonic_ns()
        if handler.interval_ns > 0:
            began = handler.first_ns + sequence * handler.interval_ns
            if not _sleep_unless_stopped(handler, began):
                break
        durable = np.int64(handler.sync_every <= 1 or (sequence + 1) % handler.sync_every == 0)
        code = commit(log, device, buffers, meter, stamps, payload, began, durable)
        if code < 0:
            handler.result = code
            break
        sequence += 1
        store(handler, "done", sequence)
    if handler.sync_every > 1 and handler.result == 0:
        handler.result = flush_all(log, device, buffers, meter)
    handler.ended_ns = monotonic_ns()


@inner
def _sleep_unless_stopped(handler, instant):  # type: ignore[no-untyped-def]
    """Sleep until `instant`; return whether the handler is still wanted then."""
    while load(handler, "stop") == 0:
        now = monotonic_ns()
        if now >= instant:
            return True
        sleep_until(min(instant, now + _NAP_NS))
    return False
