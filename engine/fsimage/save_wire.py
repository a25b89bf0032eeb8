"""Writing protobuf in kernels, from the back to the front.

A message's length stands before the message, so whoever writes forwards must know it beforehand and measures every
field twice. Written backwards, from the end of a buffer, a message is there before its length is: one pass. Each
function puts something that ends at offset `at` of a buffer at address `base`, and returns where it begins.

    ... <- length <- tag <- name <- length <- tag <- part        and so on, last field first

Backwards also means that what lies below `at` is still free, so everything is stored as whole words whose low bytes
the next store covers. That takes SLACK bytes of room below the last one. Room is the caller's to check, once a
message: nothing here looks at bounds.
"""

from __future__ import annotations

import numpy as np

from engine.native.kernel import inlined
from engine.native.words import bit_width, load_word, store_word

SLACK = 16
_GROUPS = (0x7F, 0x3F80, 0x1FC000, 0xFE00000, 0x7F0000000, 0x3F800000000, 0x1FC0000000000, 0xFE000000000000)
_G0, _G1, _G2, _G3, _G4, _G5, _G6, _G7 = (np.uint64(group) for group in _GROUPS)  # seven bits each
_MORE = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)


@inlined
def _spread(value, size):  # type: ignore[no-untyped-def]
    """Return the varint of a value of at most 56 bits as a word; size: its bytes."""
    word = value & _G0
    if size > 1:
        word |= (value & _G1) << np.uint64(1) | (value & _G2) << np.uint64(2) | (value & _G3) << np.uint64(3)
        if size > 4:
            word |= (value & _G4) << np.uint64(4) | (value & _G5) << np.uint64(5)
            word |= (value & _G6) << np.uint64(6) | (value & _G7) << np.uint64(7)
        word |= _MORE & ((_ONE << np.uint64(8 * size - 8)) - _ONE)
    return word


@inlined
def put_uvarint(base, at, value):  # type: ignore[no-untyped-def]
    """Put a varint; value: uint64."""
    size = (bit_width(value | _ONE) * 9 + 64) >> 6
    if size <= 8:
        store_word(base + np.uint64(at - 8), _spread(value, size) << np.uint64(64 - 8 * size))
        return at - size
    # 9 or 10 bytes: seven groups, all with more to come, and what is left of the value above them
    high = value >> np.uint64(49)
    at = put_uvarint_small(base, at, high)
    low = value & np.uint64((1 << 49) - 1)
    store_word(base + np.uint64(at - 8), (_spread(low, np.int64(7)) | _MORE >> np.uint64(8)) << np.uint64(8))
    return at - 7


@inlined
def put_uvarint_small(base, at, value):  # type: ignore[no-untyped-def]
    """Put a varint of a value below 2^56."""
    size = (bit_width(value | _ONE) * 9 + 64) >> 6
    store_word(base + np.uint64(at - 8), _spread(value, size) << np.uint64(64 - 8 * size))
    return at - size


@inlined
def put_number(base, at, tag, value):  # type: ignore[no-untyped-def]
    """Put a varint field; tag: its one byte; value: uint64."""
    size = (bit_width(value | _ONE) * 9 + 64) >> 6
    if size <= 7:
        word = _spread(value, size) << np.uint64(8) | np.uint64(tag)
        store_word(base + np.uint64(at - 8), word << np.uint64(56 - 8 * size))
        return at - size - 1
    return put_byte(base, put_uvarint(base, at, value), tag)


@inlined
def put_byte(base, at, value):  # type: ignore[no-untyped-def]
    """Put one byte: a tag of a field below 16, or a small number."""
    store_word(base + np.uint64(at - 8), np.uint64(value) << np.uint64(56))
    return at - 1


@inlined
def put_fixed64(base, at, tag, value):  # type: ignore[no-untyped-def]
    """Put a tag and eight bytes, little-endian; value: uint64."""
    store_word(base + np.uint64(at - 8), value)
    return put_byte(base, at - 8, tag)


@inlined
def put_fixed32(base, at, value):  # type: ignore[no-untyped-def]
    """Put four bytes, little-endian; value: uint32."""
    store_word(base + np.uint64(at - 8), np.uint64(value) << np.uint64(32))
    return at - 4


@inlined
def put_bytes(base, at, data, start, end):  # type: ignore[no-untyped-def]
    """Put data[start:end], of an array of bytes, a word at a time; never reads outside the array."""
    source = np.uint64(data.ctypes.data)
    while end - start >= 8 or (end > start and end >= 8):
        store_word(base + np.uint64(at - 8), load_word(source + np.uint64(end - 8)))
        size = min(end - start, 8)
        at -= size
        end -= size
    while end > start:  # near the start of the array a word would reach before it
        end -= 1
        at = put_byte(base, at, data[end])
    return at


@inlined
def put_head(base, at, end, tag):  # type: ignore[no-untyped-def]
    """Put tag and length before the bytes [at, end) that stand there."""
    return put_number(base, at, tag, np.uint64(end - at))
