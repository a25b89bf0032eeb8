"""Segment headers: the kernel against the encoder, round trips, and blocks that are not a header."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadValue
from engine.units import Bytes, Nanoseconds, Offset, Txid
from engine.wal.segment import (
    HEADER_BLOCK,
    BadHeader,
    SegmentHeader,
    check_segment_size,
    decode_header,
    encode_header,
    payload_room,
    segment_name,
    segment_number,
    torn_header_fits,
)
from tests.wal import record_kernels as kernels

HEADER = SegmentHeader(
    log_id=bytes(range(100, 116)),
    number=7,
    segment_size=Bytes(65536),
    first_txid=Txid(1234),
    previous_used=Offset(60000),
    previous_chain=0xFEDCBA98,
    created_wall_ns=Nanoseconds(1_700_000_000_123_456_789),
)
headers = st.builds(
    SegmentHeader,
    log_id=st.binary(min_size=16, max_size=16),
    number=st.integers(1, 10**18 - 1),
    segment_size=st.integers(2, 2**18).map(lambda blocks: blocks * 4096),
    first_txid=st.integers(1, 2**63 - 1),
    previous_used=st.just(0) | st.integers(512, 2**27).map(lambda words: words * 8),
    previous_chain=st.integers(0, 2**32 - 1),
    created_wall_ns=st.integers(0, 2**63 - 1),
)


@given(header=headers)
def test_a_header_decodes_to_what_was_encoded(header):
    assert decode_header(encode_header(header)) == header


@given(header=headers)
def test_the_kernel_writes_what_the_encoder_writes(header):
    block = np.full(HEADER_BLOCK + 8, 0xEE, np.uint8)

    kernels.put_header(
        block,
        np.frombuffer(bytearray(header.log_id), np.uint8),
        header.number,
        header.segment_size,
        header.first_txid,
        header.previous_used,
        header.previous_chain,
        header.created_wall_ns,
    )

    assert bytes(block) == encode_header(header) + b"\xee" * 8


def test_no_flipped_bit_passes():
    whole = encode_header(HEADER)
    for bit in range(8 * HEADER_BLOCK):
        block = bytearray(whole)
        block[bit // 8] ^= 1 << bit % 8

        with pytest.raises(BadHeader):
            decode_header(bytes(block))


def test_a_block_of_zeros_is_a_prepared_segment():
    assert decode_header(bytes(HEADER_BLOCK)) is None


@pytest.mark.parametrize("size", [0, 1, 84, HEADER_BLOCK - 1])
def test_a_truncated_header_is_said_to_be_truncated(size):
    with pytest.raises(BadHeader, match=f"byte {size}: found the end of the file, allowed a header of 4096 bytes"):
        decode_header(encode_header(HEADER)[:size])


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"number": 0}, "segment number 0"),
        ({"segment_size": 4096}, "segment size 4096"),
        ({"segment_size": 2**62}, "segment size 4611686018427387904"),
        ({"segment_size": 8200}, "segment size 8200"),
        ({"first_txid": 0}, "first txid 0"),
        ({"first_txid": 2**63}, "first txid 9223372036854775808"),
        ({"previous_used": 100}, "100 bytes used before"),
        ({"previous_used": 4100}, "4100 bytes used before"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused_though_its_checksum_holds(changed, text):
    with pytest.raises(BadHeader, match=text):
        decode_header(encode_header(dataclasses.replace(HEADER, **changed)))


def test_a_later_version_decodes_so_that_it_can_be_named():
    header = decode_header(encode_header(dataclasses.replace(HEADER, version=2)))

    assert header is not None
    assert header.version == 2


def test_a_half_written_header_fits_and_a_flipped_one_does_not():
    whole = encode_header(HEADER)
    for size in range(85):
        assert torn_header_fits(whole[:size].ljust(HEADER_BLOCK, b"\0"), HEADER)
    for at in (0, 8, 16, 32, 48, 56, 64, 68, 84, 4000):
        flipped = bytearray(whole)
        flipped[at] ^= 0x80
        assert not torn_header_fits(bytes(flipped), HEADER)


@pytest.mark.parametrize(("number", "name"), [(1, "00000001.wal"), (10**8, "100000000.wal")])
def test_names_carry_numbers(number, name):
    assert segment_name(number) == name
    assert segment_number(name) == number


@pytest.mark.parametrize(
    "name",
    ["1.wal", "00000000.wal", "000000001.wal", "00000001.wal.tmp", "0000000a.wal", "00000001.WAL", "-0000001.wal"],
)
def test_other_names_are_no_segments(name):
    assert segment_number(name) is None


@pytest.mark.parametrize("size", [0, 4096, 1000, 8192 + 8, 2**30 + 4096])
def test_a_wrong_segment_size_says_what_is_allowed(size):
    with pytest.raises(BadValue, match=f"segment size '{size}': allowed is a multiple of 4096 bytes from 8192 to"):
        check_segment_size(size)


def test_room_for_a_payload_is_what_the_headers_leave():
    assert payload_room(check_segment_size(8192)) == 8192 - 4096 - 24
