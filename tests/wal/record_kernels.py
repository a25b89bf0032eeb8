"""Entry kernels for tests: the functions that kernels call, callable from Python with every payload type there is."""

from __future__ import annotations

import numpy as np
from numba import types

from engine.native.kernel import kernel, u8_array, u8_matrix, u8_readonly
from engine.wal.record import payload_crc, put_record, read_record, seed_of
from engine.wal.segment import chain_after, put_segment_header

_I = types.int64
_PAIR = types.UniTuple(types.int64, 2)


@kernel(
    _PAIR(u8_array, _I, _I, _I, _I, u8_array, _I),
    _PAIR(u8_array, _I, _I, _I, _I, u8_readonly, _I),
)
def put(buffer, at, kind, txid, undurable, payload, seed):
    size, crc = put_record(buffer, at, kind, txid, undurable, payload, payload_crc(payload, seed))
    return np.int64(size), np.int64(crc)


@kernel(_PAIR(u8_array, _I, _I, _I, _I, u8_matrix, _I, _I))
def put_row(buffer, at, kind, txid, undurable, payloads, row, seed):
    size, crc = put_record(buffer, at, kind, txid, undurable, payloads[row], payload_crc(payloads[row], seed))
    return np.int64(size), np.int64(crc)


@kernel(types.UniTuple(types.int64, 6)(u8_array, _I, _I, _I))
def read(view, at, end, seed):
    return read_record(view, at, end, seed)


@kernel(_I(u8_array))
def seed_from(log_id):
    return np.int64(seed_of(log_id))


@kernel(_I(_I, _I))
def chain(before, crc):
    return chain_after(before, crc)


@kernel(types.void(u8_array, u8_array, _I, _I, _I, _I, _I, _I))
def put_header(block, log_id, number, size, first_txid, used, before, created):
    put_segment_header(block, log_id, number, size, first_txid, used, before, created)
