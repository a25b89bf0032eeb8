"""Buckets of durations: their bounds, and what is read from counts of them. Plain numpy: the screen imports it.

The ladder is 1-2-5 from 10 us to 10 s, and one more bucket above; it is the classic ladder that Prometheus gets.
Fine buckets cut each step of 1-2-5 into equal parts, at most 2 % of the value wide, so that the middle of a bucket
is within 1 % of all it holds and every bound of the ladder is also a bound of fine buckets: a ladder derived from
fine counts is exact.

    decade of 10^k ns    1.00 ... 2.00     2.00 ... 5.00     5.00 ... 10.0
    parts                50 of 0.02        75 of 0.04        50 of 0.10
    bucket of a value v: the one whose upper bound is the first >= v (upper bounds inclusive, as Prometheus's le)

Nine decades from 100 ns to 100 s: 1575 buckets, one below (to 100 ns inclusive) and one above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LADDER_NS: tuple[int, ...] = (*(m * 10**k for k in range(4, 10) for m in (1, 2, 5)), 10**10)

FIRST_DECADE_NS = 100
DECADES = 9
DECADE_BUCKETS = 175
BUCKETS = DECADES * DECADE_BUCKETS + 2
LADDER_BUCKETS = len(LADDER_NS) + 1


def _make_bounds() -> npt.NDArray[np.float64]:
    bounds = [float(FIRST_DECADE_NS)]
    for decade in range(DECADES):
        unit = FIRST_DECADE_NS * 10.0**decade
        bounds += [unit * (1 + 0.02 * (i + 1)) for i in range(50)]
        bounds += [unit * (2 + 0.04 * (i + 1)) for i in range(75)]
        bounds += [unit * (5 + 0.10 * (i + 1)) for i in range(50)]
    return np.array([*(round(b, 3) for b in bounds), np.inf])


UPPER_BOUNDS_NS = _make_bounds()  # float64[BUCKETS], ns, inclusive; the last is inf
_LADDER_OF_FINE = np.searchsorted(np.array(LADDER_NS), UPPER_BOUNDS_NS, side="left")


def ladder_counts(indexes: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    """Return ladder counts of sparse fine counts; exact, since every ladder bound is a fine bound."""
    ladder = np.zeros(LADDER_BUCKETS, np.int64)
    np.add.at(ladder, _LADDER_OF_FINE[list(indexes)], list(counts))
    return tuple(ladder.tolist())


def quantile_ns(counts: npt.NDArray[Any], quantile: float, maximum: float = np.inf) -> float:
    """Return a quantile of fine counts, within 1 %; nan where nothing was counted.

    counts: int[BUCKETS]. quantile: 0 to 1. maximum: the largest value seen, if known, which caps the answer.
    """
    total = int(counts.sum())
    if total == 0:
        return float("nan")
    rank = min(max(int(np.ceil(quantile * total)), 1), total)
    bucket = int(np.searchsorted(np.cumsum(counts), rank))
    upper = UPPER_BOUNDS_NS[bucket]
    lower = UPPER_BOUNDS_NS[bucket - 1] if bucket else 0.0
    middle = lower if np.isinf(upper) else (lower + upper) / 2
    return float(min(middle, maximum))


def dense(indexes: Sequence[int], counts: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return sparse fine counts as int64[BUCKETS]."""
    row = np.zeros(BUCKETS, np.int64)
    row[list(indexes)] = list(counts)
    return row
