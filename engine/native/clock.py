"""The clock as kernels see it: CLOCK_MONOTONIC in nanoseconds, and sleeping until an instant of it."""

from __future__ import annotations

import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_TIMESPEC = ir.ArrayType(_I64, 2)  # struct timespec: seconds, nanoseconds
_ABSOLUTE = 1  # TIMER_ABSTIME
_SECOND = 1_000_000_000


def timespec_from(builder: Any, nanoseconds: Any) -> Any:
    """Build a struct timespec on the stack; return a pointer to it."""
    second = ir.Constant(_I64, _SECOND)
    timespec = cgutils.alloca_once(builder, _TIMESPEC)
    zero, one = ir.Constant(_I32, 0), ir.Constant(_I32, 1)
    builder.store(builder.sdiv(nanoseconds, second), builder.gep(timespec, [zero, zero]))
    builder.store(builder.srem(nanoseconds, second), builder.gep(timespec, [zero, one]))
    return timespec


@intrinsic
def monotonic_ns(typing_context):  # type: ignore[no-untyped-def]
    """Return CLOCK_MONOTONIC in nanoseconds: the clock of Python's time.monotonic_ns."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        timespec = cgutils.alloca_once(builder, _TIMESPEC)
        kind = ir.FunctionType(_I32, [_I32, _TIMESPEC.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [ir.Constant(_I32, time.CLOCK_MONOTONIC), timespec])
        zero, one = ir.Constant(_I32, 0), ir.Constant(_I32, 1)
        seconds = builder.load(builder.gep(timespec, [zero, zero]))
        return builder.add(
            builder.mul(seconds, ir.Constant(_I64, _SECOND)), builder.load(builder.gep(timespec, [zero, one]))
        )

    return types.int64(), build


@intrinsic
def sleep_until(typing_context, deadline):  # type: ignore[no-untyped-def]
    """Sleep until CLOCK_MONOTONIC reaches `deadline` ns; return 0 or an errno (EINTR: call again)."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _TIMESPEC.as_pointer()
        kind = ir.FunctionType(_I32, [_I32, _I32, pointer, pointer])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_nanosleep")
        constants = ir.Constant(_I32, time.CLOCK_MONOTONIC), ir.Constant(_I32, _ABSOLUTE)
        timespec = timespec_from(builder, arguments[0])
        return builder.call(function, [*constants, timespec, ir.Constant(pointer, None)])

    return types.int32(types.int64), build
