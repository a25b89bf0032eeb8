"""Bytes as kernels move them: memcpy between uint8 arrays and little-endian stores into them.

Nothing here checks a bound or raises: the caller has checked. Both supported processors are little-endian.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def copy_bytes(typing_context, target, at, source, count):  # type: ignore[no-untyped-def]
    """Copy source[:count] to target[at:at + count]; both uint8[n], `source` may be read-only; they do not overlap."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        to_type, _, from_type, _ = signature.args
        into = context.make_array(to_type)(context, builder, arguments[0])
        out_of = context.make_array(from_type)(context, builder, arguments[2])
        zero = ir.Constant(ir.IntType(64), 0)
        start = cgutils.get_item_pointer(context, builder, to_type, into, [arguments[1]])
        first = cgutils.get_item_pointer(context, builder, from_type, out_of, [zero])
        cgutils.raw_memcpy(builder, start, first, arguments[3], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), build


@intrinsic
def store_u64(typing_context, target, at, word):  # type: ignore[no-untyped-def]
    """Put a little-endian uint64 at target[at:at + 8], aligned or not."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, [arguments[1]])
        builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, types.uint64), build
