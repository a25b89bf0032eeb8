"""Bucket numbers from kernels against numpy's search in the bounds; quantiles against numpy's exact ones."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.measure.histogram import (
    BUCKETS,
    LADDER_NS,
    UPPER_BOUNDS_NS,
    dense,
    fine_bucket,
    ladder_bucket,
    ladder_counts,
    quantile_ns,
)
from engine.native.kernel import inner

# Bounds in whole nanoseconds: multiples of 2, 4 or 10 ns, so exact in float64 and in int64.
WHOLE_BOUNDS = np.round(UPPER_BOUNDS_NS[:-1]).astype(np.int64)
DURATIONS = st.one_of(
    st.integers(0, 200),
    st.sampled_from(WHOLE_BOUNDS.tolist()),
    st.builds(lambda exponent, part: int(10**exponent * part), st.integers(0, 12), st.floats(1, 10)),
)


@inner
def fine_buckets(values, buckets):
    for index in range(values.size):
        buckets[index] = fine_bucket(values[index])


@inner
def ladder_buckets(values, buckets):
    for index in range(values.size):
        buckets[index] = ladder_bucket(values[index])


def by_kernel(kernel, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    buckets = np.full(values.size, -1, np.int64)
    kernel(values, buckets)
    return buckets


def counted(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.bincount(by_kernel(fine_buckets, values), minlength=BUCKETS)


def test_the_bounds_rise_and_are_whole_nanoseconds() -> None:
    assert UPPER_BOUNDS_NS.size == BUCKETS
    assert (np.diff(UPPER_BOUNDS_NS) > 0).all()
    assert (UPPER_BOUNDS_NS[:-1] == WHOLE_BOUNDS).all()
    assert (UPPER_BOUNDS_NS[0], UPPER_BOUNDS_NS[-2], UPPER_BOUNDS_NS[-1]) == (100, 100e9, math.inf)


def test_no_bucket_is_wider_than_two_percent_of_what_it_holds() -> None:
    lower, upper = WHOLE_BOUNDS[:-1], WHOLE_BOUNDS[1:]

    assert ((upper - lower) <= 0.02 * lower + 1e-9).all()


@pytest.mark.parametrize("beside", [-1, 0, 1], ids=["just-below", "on-the-bound", "just-above"])
def test_every_edge_falls_into_the_bucket_whose_bound_is_the_first_not_below_it(beside: int) -> None:
    values = WHOLE_BOUNDS + beside

    expected = np.searchsorted(UPPER_BOUNDS_NS, values, side="left")

    assert np.array_equal(by_kernel(fine_buckets, values), expected)


@pytest.mark.parametrize("beside", [-1, 0, 1], ids=["just-below", "on-the-bound", "just-above"])
def test_every_edge_of_the_ladder_falls_into_its_bucket(beside: int) -> None:
    values = np.array(LADDER_NS, np.int64) + beside

    expected = np.searchsorted(np.array(LADDER_NS), values, side="left")

    assert np.array_equal(by_kernel(ladder_buckets, values), expected)


@given(values=st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
@example(values=[0, 1, 99, 100, 101, 2**62])
def test_any_duration_falls_into_its_bucket(values: list[int]) -> None:
    durations = np.array(values, np.int64)

    assert np.array_equal(by_kernel(fine_buckets, durations), np.searchsorted(WHOLE_BOUNDS, durations, side="left"))
    assert np.array_equal(by_kernel(ladder_buckets, durations), np.searchsorted(LADDER_NS, durations, side="left"))


@pytest.mark.parametrize("value", [-1, -(10**12)])
def test_a_negative_duration_stays_inside_the_row(value: int) -> None:
    values = np.array([value], np.int64)

    assert (by_kernel(fine_buckets, values)[0], by_kernel(ladder_buckets, values)[0]) == (0, 0)


@given(values=st.lists(DURATIONS, min_size=1, max_size=200))
def test_the_ladder_derived_from_fine_buckets_is_the_ladder_counted_directly(values: list[int]) -> None:
    durations = np.array(values, np.int64)
    fine = counted(durations)
    occupied = np.flatnonzero(fine).tolist()

    derived = ladder_counts(occupied, fine[occupied].tolist())

    direct = np.bincount(np.searchsorted(LADDER_NS, durations, side="left"), minlength=len(LADDER_NS) + 1)
    assert derived == tuple(direct.tolist())


@given(
    values=st.lists(st.floats(2, 11).map(lambda exponent: max(101, int(10**exponent))), min_size=1, max_size=300),
    quantile=st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0]),
)
def test_a_quantile_between_100_ns_and_100_s_is_within_one_percent_of_the_exact_one(
    values: list[int], quantile: float
) -> None:
    durations = np.array(values, np.int64)
    exact = float(np.quantile(durations, quantile, method="inverted_cdf"))

    assert quantile_ns(counted(durations), quantile) == pytest.approx(exact, rel=0.01)


def test_no_quantile_exceeds_the_largest_value_seen() -> None:
    counts = counted(np.array([1_000_001], np.int64))

    assert quantile_ns(counts, 1.0) > 1_000_001
    assert quantile_ns(counts, 1.0, maximum=1_000_001) == 1_000_001


def test_above_the_last_bound_a_quantile_is_that_bound() -> None:
    assert quantile_ns(counted(np.array([10**15], np.int64)), 0.5) == 100e9


def test_quantiles_of_nothing_are_not_a_number() -> None:
    assert math.isnan(quantile_ns(np.zeros(BUCKETS, np.int64), 0.5))


@given(counts=st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 2**40), max_size=20))
def test_sparse_counts_spread_out_and_keep_their_sum(counts: dict[int, int]) -> None:
    indexes = sorted(counts)

    row = dense(indexes, [counts[index] for index in indexes])

    assert {index: int(row[index]) for index in np.flatnonzero(row)} == counts
    assert sum(ladder_counts(indexes, [counts[index] for index in indexes])) == sum(counts.values())
