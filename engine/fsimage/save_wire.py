"""Writing protobuf in kernels, from the back to the front.

A message's length stands before the message, so whoever writes forwards must know it beforehand and measures every
field twice. Written backwards, from the end of a buffer, a message is there before its length is: one pass. Each
function puts something so that it ends at out[at], and returns where it begins.

    ... <- length <- tag <- name <- length <- tag <- part        and so on, last field first

Room is the caller's to check, once a message: nothing here looks at bounds.
"""

from __future__ import annotations

import numpy as np

from engine.native.kernel import inner

MAX_VARINT = 10


@inner
def put_uvarint(out, at, value):  # type: ignore[no-untyped-def]
    """Put a varint that ends at out[at]; value: uint64. Returns where it begins, at most MAX_VARINT before."""
    if value < np.uint64(0x80):
        out[at - 1] = np.uint8(value)
        return at - 1
    size, rest = 2, value >> np.uint64(14)
    while rest != np.uint64(0):
        rest >>= np.uint64(7)
        size += 1
    at -= size
    for i in range(size - 1):
        out[at + i] = np.uint8(value & np.uint64(0x7F) | np.uint64(0x80))
        value >>= np.uint64(7)
    out[at + size - 1] = np.uint8(value)
    return at


@inner
def put_byte(out, at, value):  # type: ignore[no-untyped-def]
    """Put one byte: a tag of a field below 16, or a small number."""
    out[at - 1] = np.uint8(value)
    return at - 1


@inner
def put_number(out, at, tag, value):  # type: ignore[no-untyped-def]
    """Put a varint field; tag: its one byte."""
    return put_byte(out, put_uvarint(out, at, np.uint64(value)), tag)


@inner
def put_fixed64(out, at, value):  # type: ignore[no-untyped-def]
    """Put eight bytes, little-endian."""
    at -= 8
    for i in range(8):
        out[at + i] = np.uint8((value >> np.uint64(8 * i)) & np.uint64(0xFF))
    return at


@inner
def put_fixed32(out, at, value):  # type: ignore[no-untyped-def]
    """Put four bytes, little-endian."""
    at -= 4
    for i in range(4):
        out[at + i] = np.uint8((value >> np.uint32(8 * i)) & np.uint32(0xFF))
    return at


@inner
def put_bytes(out, at, data, start, end):  # type: ignore[no-untyped-def]
    """Put data[start:end]."""
    at -= end - start
    for i in range(end - start):
        out[at + i] = data[start + i]
    return at


@inner
def put_head(out, at, end, tag):  # type: ignore[no-untyped-def]
    """Put tag and length before the bytes out[at:end] that stand there."""
    return put_byte(out, put_uvarint(out, at, np.uint64(end - at)), tag)
