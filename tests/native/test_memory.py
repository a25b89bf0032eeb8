"""Records that threads share start on cache lines and never share one."""

from __future__ import annotations

import numpy as np
import pytest

from engine.native.memory import CACHE_LINE, make_records, record_type


@pytest.mark.parametrize("fields", [1, 7, 8, 9], ids=["one", "just-below-a-line", "a-line", "just-above-a-line"])
def test_a_record_fills_whole_cache_lines(fields: int) -> None:
    dtype = record_type([(f"field{index}", "i8") for index in range(fields)])

    assert dtype.itemsize % CACHE_LINE == 0
    assert dtype.itemsize - fields * 8 < CACHE_LINE


def test_int64_fields_are_aligned_for_atomics_whatever_stands_before_them() -> None:
    dtype = record_type([("kind", "u1"), ("mutex", "u1", (43,)), ("durable", "i8")])

    assert dtype.fields is not None
    assert dtype.fields["durable"][1] % 8 == 0


@pytest.mark.parametrize("count", [1, 3, 200])
def test_records_start_on_a_cache_line_zeroed_and_apart(count: int) -> None:
    rows = make_records(count, record_type([("total", "i8")]))

    assert rows.ctypes.data % CACHE_LINE == 0
    assert rows["total"].tolist() == [0] * count

    rows["total"] = np.arange(count)
    assert rows["total"].tolist() == list(range(count))
