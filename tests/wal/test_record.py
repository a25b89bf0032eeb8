"""Records: the kernels against the plain-Python encoder, and what decoding makes of bytes that are not a record."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.units import Txid
from engine.wal import record
from engine.wal.errors import RecordTooLarge
from engine.wal.record import RecordKind, encode_record, log_seed, record_size
from tests.wal import record_kernels as kernels
from tests.wal.build_log import LOG_ID, chain_step

SEED = log_seed(LOG_ID)
payloads = st.binary(max_size=200) | st.integers(0, 5000).map(lambda size: bytes(k % 251 for k in range(size)))
txids = st.integers(1, 2**63 - 1)


def encoded(txid: int, payload: bytes, *, undurable: int = 1, log_id: bytes = LOG_ID) -> bytes:
    return encode_record(RecordKind.DATA, Txid(txid), payload, undurable=undurable, log_id=log_id)


def as_view(raw: bytes) -> np.ndarray:
    return np.frombuffer(bytearray(raw), np.uint8)


def code_at(raw: bytes, at: int = 0, end: int | None = None, seed: int = SEED) -> int:
    return kernels.read(as_view(raw), at, len(raw) if end is None else end, seed)[0]


@given(payload=payloads, txid=txids, undurable=st.integers(0, 2**40), at=st.integers(0, 64))
def test_the_kernel_writes_what_the_encoder_writes_and_nothing_beside_it(payload, txid, undurable, at):
    buffer = np.full(at + record_size(len(payload)) + 16, 0xEE, np.uint8)

    size, crc = kernels.put(buffer, at, RecordKind.DATA, txid, undurable, np.frombuffer(payload, np.uint8), SEED)

    expected = encoded(txid, payload, undurable=undurable)
    assert bytes(buffer) == b"\xee" * at + expected + b"\xee" * 16
    assert (size, crc) == (len(expected), int.from_bytes(expected[:4], "little"))


@given(payload=payloads, txid=txids, undurable=st.integers(0, 2**32 - 1))
def test_a_record_reads_back_as_it_was_written(payload, txid, undurable):
    raw = encoded(txid, payload, undurable=undurable)

    code, length, read_txid, kind, read_undurable, crc = kernels.read(as_view(raw), 0, len(raw), SEED)

    assert (code, length, read_txid, kind, read_undurable) == (record.VALID, len(payload), txid, 1, undurable)
    assert crc == int.from_bytes(raw[:4], "little")


def test_payloads_may_be_read_only_writable_or_a_row_of_a_matrix():
    matrix = np.arange(64, dtype=np.uint8).reshape(4, 16)
    results = []
    for put in (
        lambda buffer: kernels.put(buffer, 0, 1, 9, 1, np.frombuffer(matrix[2].tobytes(), np.uint8), SEED),
        lambda buffer: kernels.put(buffer, 0, 1, 9, 1, matrix[2].copy(), SEED),
        lambda buffer: kernels.put_row(buffer, 0, 1, 9, 1, matrix, 2, SEED),
    ):
        buffer = np.zeros(64, np.uint8)
        put(buffer)
        results.append(bytes(buffer))

    assert results == [encoded(9, matrix[2].tobytes()).ljust(64, b"\0")] * 3


def test_undurable_keeps_to_its_four_bytes():
    assert encoded(2**40, b"", undurable=2**40)[20:24] == b"\xff" * 4


@given(payload=st.binary(max_size=20), bit=st.integers(min_value=0))
def test_no_flipped_bit_passes(payload, bit):
    raw = bytearray(encoded(77, payload))
    bit %= 8 * (record.HEADER_SIZE + len(payload))  # behind it is padding, which no checksum covers

    raw[bit // 8] ^= 1 << bit % 8

    assert code_at(bytes(raw)) in (record.BAD_CRC, record.BAD_LENGTH)


@pytest.mark.parametrize("size", range(record.HEADER_SIZE + 1))
def test_a_record_cut_off_does_not_decode(size):
    raw = encoded(77, b"x")[:size]

    assert code_at(raw) == (record.NO_ROOM if size < record.HEADER_SIZE else record.BAD_LENGTH)


def test_zeros_are_no_record():
    assert code_at(bytes(64)) == record.ZERO


def test_a_length_over_the_limit_is_refused_before_anything_is_read():
    raw = struct.pack("<IIQII", 1, record.MAX_PAYLOAD + 1, 1, 1, 1) + bytes(64)

    assert code_at(raw) == record.BAD_LENGTH


@pytest.mark.parametrize(
    ("offset", "value"), [(16, 0), (16, 3), (17, 1), (19, 1)], ids=["kind-0", "kind-3", "byte-17", "byte-19"]
)
def test_a_record_of_a_later_format_is_told_from_torn_bytes(offset, value):
    import google_crc32c

    raw = bytearray(encoded(5, b"payload!"))
    raw[offset] = value
    raw[:4] = struct.pack("<I", google_crc32c.value(LOG_ID + bytes(raw[24:]) + bytes(raw[4:24])))

    assert code_at(bytes(raw)) == record.BAD_KIND


def test_a_record_of_another_log_does_not_decode():
    assert code_at(encoded(5, b"payload", log_id=b"another log's id")) == record.BAD_CRC


def test_a_record_behind_the_end_does_not_decode():
    raw = encoded(5, b"payload")

    assert code_at(raw + bytes(64), end=30) == record.BAD_LENGTH
    assert code_at(bytes(40) + raw, at=40) == record.VALID


def test_the_seed_in_kernels_is_the_seed_in_python():
    assert kernels.seed_from(as_view(LOG_ID)) == SEED


@given(before=st.integers(0, 2**32 - 1), crc=st.integers(0, 2**32 - 1))
def test_the_chain_in_kernels_is_the_chain_of_the_specification(before, crc):
    assert kernels.chain(before, crc) == chain_step(before, crc)


def test_a_payload_over_the_limit_says_both_sizes():
    with pytest.raises(
        RecordTooLarge, match=r"a record of 16,777,217 bytes does not fit; allowed are 16,777,216 bytes"
    ):
        encoded(1, bytes(record.MAX_PAYLOAD + 1))
