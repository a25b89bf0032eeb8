"""Histograms of durations inside kernels: which bucket of engine.measure.buckets a value falls into.

Meters count in these buckets; reading counts (quantiles, the ladder) needs no kernel and stands in
engine.measure.buckets, whose names are here too.
"""

from __future__ import annotations

import numpy as np

from engine.measure.buckets import (
    BUCKETS,
    DECADE_BUCKETS,
    DECADES,
    FIRST_DECADE_NS,
    LADDER_BUCKETS,
    LADDER_NS,
    UPPER_BOUNDS_NS,
    dense,
    ladder_counts,
    quantile_ns,
)
from engine.native.kernel import inner

__all__ = [
    "BUCKETS",
    "DECADES",
    "DECADE_BUCKETS",
    "FIRST_DECADE_NS",
    "LADDER_BUCKETS",
    "LADDER_NS",
    "UPPER_BOUNDS_NS",
    "dense",
    "fine_bucket",
    "ladder_bucket",
    "ladder_counts",
    "quantile_ns",
]

_LADDER = np.array(LADDER_NS, np.int64)


@inner
def fine_bucket(value):  # type: ignore[no-untyped-def]
    """Return the fine bucket of a duration in ns; 0 for 100 ns or less, the last above 100 s."""
    decade, unit = 0, FIRST_DECADE_NS
    if value <= unit:
        return 0
    while decade < DECADES and value > unit * 10:
        unit *= 10
        decade += 1
    if decade == DECADES:
        return BUCKETS - 1
    first = 1 + decade * DECADE_BUCKETS
    excess = (value - 1) * 100  # upper bounds are inclusive: 200 belongs to the part that ends there
    if value <= 2 * unit:
        return first + (excess - 100 * unit) // (2 * unit)
    if value <= 5 * unit:
        return first + 50 + (excess - 200 * unit) // (4 * unit)
    return first + 125 + (excess - 500 * unit) // (10 * unit)


@inner
def ladder_bucket(value):  # type: ignore[no-untyped-def]
    """Return the ladder bucket of a duration in ns: the first bound >= value, or one past the last."""
    for k in range(_LADDER.size):
        if value <= _LADDER[k]:
            return k
    return _LADDER.size
