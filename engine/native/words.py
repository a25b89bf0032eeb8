"""Eight bytes at a time at any address, and the width of a number: what writing packed bytes fast comes down to.

Addresses are plain integers (`array.ctypes.data` plus an offset); the caller has checked bounds. No alignment is asked.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def store_word(typing_context, address, value):  # type: ignore[no-untyped-def]
    """Put a uint64 at address[0:8], little-endian on the processors we run on."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[1], builder.inttoptr(arguments[0], _WORD.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), build


@intrinsic
def load_word(typing_context, address):  # type: ignore[no-untyped-def]
    """Return address[0:8] as a uint64."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(builder.inttoptr(arguments[0], _WORD.as_pointer()), align=1)

    return types.uint64(types.uint64), build


@intrinsic
def bit_width(typing_context, value):  # type: ignore[no-untyped-def]
    """Return how many bits a uint64 needs, 0 for 0."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        leading = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(_WORD, 64), leading)

    return types.int64(types.uint64), build
