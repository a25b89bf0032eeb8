"""Scanning in plain Python, with struct and google-crc32c: what the kernels are compared with."""

from __future__ import annotations

import struct

import google_crc32c

from engine.wal.record import BAD_CRC, BAD_KIND, BAD_LENGTH, MAX_PAYLOAD, NO_ROOM, ZERO
from engine.wal.scan import AT_END, OUT_OF_ORDER, STALE
from tests.wal.build_log import chain_step

HEADER = struct.Struct("<IIQB3sI")


def decode(view: bytes, at: int, end: int, log_id: bytes) -> tuple[int, int, int, int, bytes] | int:
    """Return (txid, kind, undurable, crc, payload), or the code that says why not."""
    if end - at < 24:
        return NO_ROOM
    crc, length, txid, kind, zeros, undurable = HEADER.unpack_from(view, at)
    if not any(view[at : at + 24]):
        return ZERO
    if length > MAX_PAYLOAD or at + 24 + length > end:
        return BAD_LENGTH
    payload = view[at + 24 : at + 24 + length]
    if google_crc32c.value(log_id + payload + view[at + 4 : at + 24]) != crc:
        return BAD_CRC
    if kind not in (1, 2) or any(zeros) or (kind == 2 and payload):
        return BAD_KIND
    return txid, kind, undurable, crc, payload


def scan(view: bytes, start: int, end: int, expected: int, chain: int, log_id: bytes):
    """Return (rows of offset, txid, length, undurable, crc, kind; why; position; expected; chain)."""
    rows, at = [], start
    while at < end:
        found = decode(view, at, end, log_id)
        if isinstance(found, int):
            return rows, found, at, expected, chain
        txid, kind, undurable, crc, payload = found
        wanted = expected if kind == 1 else expected - 1
        if txid != wanted:
            return rows, STALE if txid < wanted else OUT_OF_ORDER, at, expected, chain
        rows.append((at, txid, len(payload), undurable, crc, kind))
        at += 24 + len(payload) + -len(payload) % 8
        if kind == 1:
            expected, chain = expected + 1, chain_step(chain, crc)
    return rows, AT_END, at, expected, chain


def proof(view: bytes, start: int, end: int, expected: int, log_id: bytes) -> int | None:
    """Return where a record says that `expected` was durable, or None."""
    for at in range(start, end - 23, 8):
        found = decode(view, at, end, log_id)
        if not isinstance(found, int):
            txid, _, undurable, _, _ = found
            if txid - undurable >= expected and txid - expected <= (at - start) // 24:
                return at
    return None
