"""Memory that threads share: record types with atomic-ready fields, arrays of them, and stores by address.

A record fills whole cache lines, so that two threads that each write their own row never share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

CACHE_LINE = 64


def record_type(fields: Sequence[tuple[Any, ...]]) -> np.dtype[np.void]:
    """Return the dtype of a record: fields aligned for atomics, padded to whole cache lines."""
    plain = np.dtype(list(fields), align=True)
    missing = -plain.itemsize % CACHE_LINE
    if not missing:
        return plain
    return np.dtype([*fields, ("cache_line_padding", "u1", (missing,))], align=True)


def make_records(count: int, dtype: np.dtype[np.void]) -> np.ndarray[Any, np.dtype[np.void]]:
    """Return `count` zeroed records that start on a cache line; the array keeps their memory alive."""
    return make_bytes(count * dtype.itemsize).view(dtype)


def make_bytes(count: int, alignment: int = CACHE_LINE) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return `count` zeroed bytes that begin at a multiple of `alignment` (4096 suits direct I/O)."""
    raw = np.zeros(count + alignment, np.uint8)
    skip = -raw.ctypes.data % alignment
    return raw[skip : skip + count]


@intrinsic
def store_at(typing_context, address, value):  # type: ignore[no-untyped-def]
    """Put an int64 at an address, a uint64 that the caller has checked."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64), build


@intrinsic
def bytes_at(typing_context, address):  # type: ignore[no-untyped-def]
    """Return an address as a pointer to uint8, for numba.carray."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.CPointer(types.uint8)(types.uint64), build


def record_at(record_type: Any) -> Any:
    """Return an intrinsic that takes an address for a record of that numba type.

    A record argument costs a Python caller microseconds; an address in an int64 array costs nothing.
    """

    @intrinsic
    def at(typing_context, address):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.inttoptr(arguments[0], context.get_value_type(record_type))

        return record_type(types.uint64), build

    return at
