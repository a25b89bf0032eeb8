"""CRC32C (Castagnoli, RFC 3720 appendix B.4) for kernels.

Where the processor has the instruction (SSE4.2, or CRC32 on aarch64) eight bytes take one; elsewhere
slice-by-8 tables do. A checksum runs in steps: `crc_start`, then `crc_update` or `crc_update_u64` as often
as needed, then `crc_finish`, so a record's header can follow its payload in one checksum.
"""

from __future__ import annotations

import platform

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.native.kernel import inner

_POLYNOMIAL = 0x82F63B78  # reflected
_INTRINSICS = {
    "x86_64": ("sse4.2", "llvm.x86.sse42.crc32.64.64", "llvm.x86.sse42.crc32.32.8", 64),
    "aarch64": ("crc", "llvm.aarch64.crc32cx", "llvm.aarch64.crc32cb", 32),
}


def _has_instruction() -> bool:
    known = _INTRINSICS.get(platform.machine())
    return known is not None and bool(llvmlite.binding.get_host_cpu_features().get(known[0], False))


HAS_INSTRUCTION = _has_instruction()


def _make_tables() -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for k in range(1, 8):
        previous = tables[k - 1]
        tables[k] = (previous >> 8) ^ tables[0, previous & 0xFF]
    return tables


_TABLES = _make_tables()


@inner
def crc_start():  # type: ignore[no-untyped-def]
    """Return the state of a checksum over no bytes yet."""
    return np.uint32(0xFFFFFFFF)


@inner
def crc_finish(state):  # type: ignore[no-untyped-def]
    """Return the checksum for a state."""
    return np.uint32(state ^ np.uint32(0xFFFFFFFF))


@inner
def crc_update(state, data, start, end):  # type: ignore[no-untyped-def]
    """Take in data[start:end]. data: uint8[n]; 0 <= start <= end <= n, which the caller has checked."""
    at = start
    while at + 8 <= end:
        state = crc_update_u64(state, load_u64(data, at))
        at += 8
    while at < end:
        state = crc_update_u8(state, data[at])
        at += 1
    return state


@intrinsic
def load_u64(typing_context, data, at):  # type: ignore[no-untyped-def]
    """Return the little-endian uint64 at data[at:at + 8], aligned or not. The caller has checked bounds."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        view = context.make_array(data)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, data, view, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), build


@intrinsic
def _instruction_u64(typing_context, state, word):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        i32, i64 = ir.IntType(32), ir.IntType(64)
        _, name, _, width = _INTRINSICS[platform.machine()]
        wide = ir.IntType(width)
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(wide, [wide, i64]), name)
        before = builder.zext(arguments[0], wide) if width == 64 else arguments[0]
        after = builder.call(function, [before, arguments[1]])
        return builder.trunc(after, i32) if width == 64 else after

    return types.uint32(types.uint32, types.uint64), build


@intrinsic
def _instruction_u8(typing_context, state, byte):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        i8, i32 = ir.IntType(8), ir.IntType(32)
        operand = i8 if platform.machine() == "x86_64" else i32
        name = _INTRINSICS[platform.machine()][2]
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(i32, [i32, operand]), name)
        value = arguments[1] if operand is i8 else builder.zext(arguments[1], i32)
        return builder.call(function, [arguments[0], value])

    return types.uint32(types.uint32, types.uint8), build


@inner
def table_update_u64(state, word):  # type: ignore[no-untyped-def]
    """Take in eight bytes, little-endian, by tables: for processors without the instruction."""
    value = np.uint64(word) ^ np.uint64(state)
    after = np.uint32(0)
    for k in range(8):
        after ^= _TABLES[7 - k, np.int64((value >> np.uint64(8 * k)) & np.uint64(0xFF))]
    return after


@inner
def table_update_u8(state, byte):  # type: ignore[no-untyped-def]
    """Take in one byte by table."""
    return np.uint32((state >> np.uint32(8)) ^ _TABLES[0, np.int64((state ^ np.uint32(byte)) & np.uint32(0xFF))])


if HAS_INSTRUCTION:

    @inner
    def crc_update_u64(state, word):  # type: ignore[no-untyped-def]
        """Take in eight bytes, little-endian."""
        return _instruction_u64(np.uint32(state), np.uint64(word))

    @inner
    def crc_update_u8(state, byte):  # type: ignore[no-untyped-def]
        """Take in one byte."""
        return _instruction_u8(np.uint32(state), np.uint8(byte))
else:
    crc_update_u64 = table_update_u64
    crc_update_u8 = table_update_u8
