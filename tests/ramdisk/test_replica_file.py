"""The bytes of a replica: what is written is read back, and nothing else is taken for a replica."""

from __future__ import annotations

import struct

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ramdisk.replica_file import (
    FOOTER_SIZE,
    Footer,
    Kind,
    checksum_count,
    decode_footer,
    encode_tail,
    file_size,
)

STORE = bytes(range(16))


def footer(length: int, chunk: int, kind: Kind = Kind.CRC32C) -> Footer:
    return Footer(kind, STORE, 7, 3, length, 2, chunk, checksum_count(length, chunk), 0)


@given(length=st.integers(1, 50_000), chunk=st.sampled_from([0, 512, 4096]), kept=st.integers(0, 4095))
def test_data_and_tail_make_a_file_of_the_promised_size(length: int, chunk: int, kept: int) -> None:
    data = b"d" * length
    cells = np.arange(checksum_count(length, chunk), dtype=np.uint32)
    kept = min(kept, length)
    kind = Kind.CRC32C if chunk else Kind.NONE

    whole = data[: length - kept] + encode_tail(footer(length, chunk, kind), cells, data[length - kept :])

    assert len(whole) == file_size(length, chunk) and len(whole) % 4096 == 0
    assert whole[:length] == data
    assert whole[-(-length // 8) * 8 :][: 4 * len(cells)] == cells.astype("<u4").tobytes()
    found = decode_footer(whole[-FOOTER_SIZE:])
    assert isinstance(found, Footer)
    assert (found.length, found.count, found.kind, found.store_id) == (length, len(cells), kind, STORE)


def test_every_flipped_bit_of_a_footer_is_noticed() -> None:
    good = bytearray(encode_tail(footer(1000, 512), np.zeros(2, np.uint32))[-FOOTER_SIZE:])
    for bit in range(FOOTER_SIZE * 8):
        good[bit // 8] ^= 1 << bit % 8
        assert isinstance(decode_footer(bytes(good)), str), bit
        good[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [(8, 2, "version 2"), (12, 9, "2 checksums for 1,000"), (64, 5, "5 checksums for 1,000")],
    ids=["version", "kind", "count"],
)
def test_a_footer_with_a_good_checksum_and_bad_fields_is_refused(offset: int, value: int, words: str) -> None:
    data = bytearray(encode_tail(footer(1000, 512), np.zeros(2, np.uint32))[-FOOTER_SIZE:])
    struct.pack_into("<I", data, offset, value)
    struct.pack_into("<I", data, 124, google_crc32c.value(bytes(data[:124])))

    assert words in str(decode_footer(bytes(data)))


@given(st.binary(max_size=300))
def test_other_bytes_are_no_footer(data: bytes) -> None:
    assert isinstance(decode_footer(data), str)
