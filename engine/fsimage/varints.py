"""Protobuf's varints, tags and skipping, for kernels. Every read is bounded; a code comes back, nothing raises."""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from engine.native.crc32c import load_u64
from engine.native.kernel import bare, inlined

TRUNCATED = -1  # a value reaches past the end of its message
OVERLONG = -2  # a varint over 64 bits
BAD_TAG = -3  # field number 0, or a wire type that is none of 0, 1, 2, 5

_LOW, _HIGH = np.uint64(0x7F), np.uint64(0x8080808080808080)


@inlined
def read_uvarint(data, at, end):  # type: ignore[no-untyped-def]
    """Decode the varint that starts at data[at] and ends before data[end].

    data: uint8[n]; 0 <= at <= end <= n, which the caller has checked. Returns (value, next offset) or (0, code).
    Source: Protocol Buffers encoding, base-128 varints; 10 bytes at most.
    """
    if at < end and data[at] < 0x80:  # most are one byte
        return np.uint64(data[at]), at + 1
    if at + 8 <= data.size:  # eight bytes at once: the first without its high bit ends the varint
        word = load_u64(data, at)
        ends = ~word & _HIGH
        if ends != 0:
            length = np.int64(trailing_zeros(ends) >> np.uint64(3)) + 1
            if length > end - at:
                return np.uint64(0), np.int64(TRUNCATED)
            return _squeeze(word & (ends ^ (ends - np.uint64(1)))), at + length
    return _read_slowly(data, at, end)


@inlined
def _squeeze(word):  # type: ignore[no-untyped-def]
    """Take the high bits out of eight groups of eight, by doubling: 7-bit groups to 14, 28 and 56 bits."""
    word &= np.uint64(0x7F7F7F7F7F7F7F7F)
    word = (word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1) | word & np.uint64(0x007F007F007F007F)
    word = (word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2) | word & np.uint64(0x00003FFF00003FFF)
    return (word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4) | word & np.uint64(0x000000000FFFFFFF)


@bare
def _read_slowly(data, at, end):  # type: ignore[no-untyped-def]
    """Decode byte by byte: near the end of the data, and what is longer than eight bytes."""
    value = np.uint64(0)
    for i in range(10):  # bounded, whatever the file says
        if at + i >= end:
            return np.uint64(0), np.int64(TRUNCATED)
        byte = np.uint64(data[at + i])
        if i == 9 and byte > np.uint64(1):
            break
        value |= (byte & _LOW) << np.uint64(7 * i)
        if byte < np.uint64(0x80):
            return value, at + i + 1
    return np.uint64(0), np.int64(OVERLONG)


@inlined
def read_length(data, at, end):  # type: ignore[no-untyped-def]
    """Decode a length and check that so many bytes follow before `end`. Returns (start, stop) or (code, 0)."""
    value, start = read_uvarint(data, at, end)
    if start < 0:
        return start, np.int64(0)
    if value > np.uint64(end - start):
        return np.int64(TRUNCATED), np.int64(0)
    return start, start + np.int64(value)


@inlined
def skip_value(data, at, end, wire):  # type: ignore[no-untyped-def]
    """Return the offset behind a value of that wire type, or a code."""
    if wire == 0:
        return read_uvarint(data, at, end)[1]
    if wire == 2:
        start, stop = read_length(data, at, end)
        return start if start < 0 else stop
    size = 8 if wire == 1 else 4 if wire == 5 else 0
    if size == 0:
        return np.int64(BAD_TAG)
    return at + size if end - at >= size else np.int64(TRUNCATED)


@inlined
def read_fixed64(data, at):  # type: ignore[no-untyped-def]
    """Return the little-endian uint64 at data[at:at + 8], which the caller has checked to be there."""
    return load_u64(data, at)


@inlined
def read_fixed32(data, at):  # type: ignore[no-untyped-def]
    """Return the little-endian uint32 at data[at:at + 4], which the caller has checked to be there."""
    value = np.uint32(0)
    for i in range(4):
        value |= np.uint32(data[at + i]) << np.uint32(8 * i)
    return value
