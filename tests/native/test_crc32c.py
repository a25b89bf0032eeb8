"""CRC32C in kernels, by instruction and by table, against google-crc32c and RFC 3720's examples."""

from __future__ import annotations

from collections.abc import Callable

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.native.crc32c import (
    HAS_INSTRUCTION,
    crc_finish,
    crc_start,
    crc_update,
    crc_update_u64,
    load_u64,
    table_update_u8,
    table_update_u64,
)
from engine.native.kernel import inner


@inner
def checksum(data):
    return crc_finish(crc_update(crc_start(), data, 0, data.size))


@inner
def checksum_by_table(data):
    state = crc_start()
    at = 0
    while at + 8 <= data.size:
        state = table_update_u64(state, load_u64(data, at))
        at += 8
    while at < data.size:
        state = table_update_u8(state, data[at])
        at += 1
    return crc_finish(state)


@inner
def checksum_in_two_steps(data, start, cut, end):
    return crc_finish(crc_update(crc_update(crc_start(), data, start, cut), data, cut, end))


@inner
def checksum_of_word(state, word):
    return crc_update_u64(state, word)


PATHS = [
    pytest.param(checksum, id="instruction" if HAS_INSTRUCTION else "fallback"),
    pytest.param(checksum_by_table, id="table"),
]
Checksum = Callable[..., int]


def oracle(data: bytes) -> int:
    return google_crc32c.value(data)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(bytes(32), 0x8A9136AA, id="zeros"),
        pytest.param(b"\xff" * 32, 0x62A8AB43, id="ones"),
        pytest.param(bytes(range(32)), 0x46DD794E, id="ascending"),
        pytest.param(bytes(range(31, -1, -1)), 0x113FDB5C, id="descending"),
        pytest.param(b"", 0, id="nothing"),
        pytest.param(b"123456789", 0xE3069283, id="check-value"),
    ],
)
def test_the_published_examples_hold(path: Checksum, data: bytes, expected: int) -> None:
    assert path(np.frombuffer(data, np.uint8)) == expected


@pytest.mark.parametrize("path", PATHS)
@given(data=st.binary(max_size=300))
def test_both_paths_agree_with_google_crc32c(path: Checksum, data: bytes) -> None:
    assert path(np.frombuffer(data, np.uint8)) == oracle(data)


@given(data=st.binary(max_size=100), cuts=st.tuples(*[st.integers(0, 100)] * 3))
def test_a_checksum_in_steps_of_a_slice_equals_the_whole(data: bytes, cuts: tuple[int, int, int]) -> None:
    start, cut, end = sorted(min(cut, len(data)) for cut in cuts)

    assert checksum_in_two_steps(np.frombuffer(data, np.uint8), start, cut, end) == oracle(data[start:end])


@given(word=st.integers(0, 2**64 - 1), state=st.integers(0, 2**32 - 1))
def test_a_word_counts_as_its_eight_little_endian_bytes(word: int, state: int) -> None:
    extended = google_crc32c.extend(state ^ 0xFFFFFFFF, word.to_bytes(8, "little"))

    assert checksum_of_word(np.uint32(state), np.uint64(word)) == extended ^ 0xFFFFFFFF
