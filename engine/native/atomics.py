"""Atomic access to the int64 fields of shared records and to cells of int64 arrays.

A plain `while state.stop == 0` is hoisted out of the loop by LLVM and never ends, so flags, watermarks
and fault cells that another thread writes go through these. Fields are named by a literal:
`load(state, "durable")`. Loads acquire, stores release, adds and swaps do both.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I64 = ir.IntType(64)
_ALIGN = 8


def _field(builder: Any, record_type: Any, record: Any, name: str) -> Any:
    base = builder.bitcast(record, ir.IntType(8).as_pointer())
    at = builder.gep(base, [ir.Constant(_I64, record_type.offset(name))])
    return builder.bitcast(at, _I64.as_pointer())


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index])


@intrinsic(prefer_literal=True)
def load(typing_context, record, name):  # type: ignore[no-untyped-def]
    """Return record.name, read atomically."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_field(builder, record, arguments[0], name.literal_value), "acquire", _ALIGN)

    return types.int64(record, name), build


@intrinsic(prefer_literal=True)
def store(typing_context, record, name, value):  # type: ignore[no-untyped-def]
    """Set record.name to an int64, atomically."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = _field(builder, record, arguments[0], name.literal_value)
        builder.store_atomic(arguments[2], at, "release", _ALIGN)
        return context.get_dummy_value()

    return types.void(record, name, types.int64), build


@intrinsic(prefer_literal=True)
def add(typing_context, record, name, value):  # type: ignore[no-untyped-def]
    """Add an int64 to record.name, atomically; return what it was before."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = _field(builder, record, arguments[0], name.literal_value)
        return builder.atomic_rmw("add", at, arguments[2], "acq_rel")

    return types.int64(record, name, types.int64), build


@intrinsic(prefer_literal=True)
def swap(typing_context, record, name, value):  # type: ignore[no-untyped-def]
    """Set record.name to an int64, atomically; return what it was before: of several threads one gets it."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        at = _field(builder, record, arguments[0], name.literal_value)
        return builder.atomic_rmw("xchg", at, arguments[2], "acq_rel")

    return types.int64(record, name, types.int64), build


@intrinsic(prefer_literal=True)
def address_of(typing_context, record, name):  # type: ignore[no-untyped-def]
    """Return the address of record.name, for libc (a mutex or condition that lives in the record)."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ptrtoint(_field(builder, record, arguments[0], name.literal_value), _I64)

    return types.uintp(record, name), build


@intrinsic
def load_cell(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Return array[index] of an int64[:], read atomically. The caller has checked the index."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_cell(context, builder, array, *arguments), "acquire", _ALIGN)

    return types.int64(array, types.int64), build


@intrinsic
def store_cell(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Set array[index] of an int64[:], atomically. The caller has checked the index."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store_atomic(arguments[2], _cell(context, builder, array, *arguments[:2]), "release", _ALIGN)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), build


@intrinsic
def add_cell(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """Add to array[index] of an int64[:], atomically; return what it was before. The index is checked."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", _cell(context, builder, array, *arguments[:2]), arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), build
