"""Chunk checksums, against google-crc32c."""

from __future__ import annotations

import itertools

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.native import chunks


def oracle(data: bytes, chunk: int) -> list[int]:
    return [google_crc32c.value(data[at : at + chunk]) for at in range(0, len(data), chunk)]


@given(data=st.binary(max_size=3000), chunk=st.sampled_from([8, 64, 512]), cuts=st.lists(st.integers(0, 3000)))
def test_a_stream_cut_anywhere_has_the_checksums_of_its_chunks(data: bytes, chunk: int, cuts: list[int]) -> None:
    cells, stream = np.zeros(-(-len(data) // chunk), np.uint32), chunks.new_stream()

    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for begin, end in itertools.pairwise(edges):
        assert chunks.take_in(np.frombuffer(data[begin:end], np.uint8), chunk, stream, cells) >= 0

    assert chunks.finish(chunk, stream, cells) == len(cells)
    assert cells.tolist() == oracle(data, chunk)


def test_more_bytes_than_cells_are_refused_and_nothing_is_changed() -> None:
    cells, stream = np.zeros(2, np.uint32), chunks.new_stream()

    assert chunks.take_in(np.ones(3 * 64, np.uint8), 64, stream, cells) == -1

    assert cells.tolist() == [0, 0] and stream.tolist() == [0, 0, 0]
    assert chunks.take_in(np.ones(2 * 64 + 1, np.uint8), 64, stream, cells) == 2
    assert chunks.finish(64, stream, cells) == -1


@pytest.mark.parametrize("bad", [None, 0, 63, 64, 200, 255, 299], ids=str)
def test_the_first_bad_chunk_is_named(bad: int | None) -> None:
    data = np.frombuffer(np.random.default_rng(1).bytes(300), np.uint8).copy()
    cells = np.array([0, *oracle(data.tobytes(), 64)], np.uint32)
    if bad is not None:
        data[bad] ^= 1

    assert chunks.first_bad_chunk(data, 64, cells, 1) == (-1 if bad is None else bad // 64)


def test_a_chunk_without_a_cell_is_bad() -> None:
    data = np.zeros(128, np.uint8)
    cells = np.array(oracle(bytes(64), 64), np.uint32)

    assert chunks.first_bad_chunk(data, 64, cells, 0) == 1
    assert chunks.first_bad_chunk(data, 64, cells, -1) == 0
