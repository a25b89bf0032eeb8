"""Checksums of the chunks of large buffers: one CRC32C for each fixed-size chunk, in one call without Python's lock.

A single chain of the CRC instruction waits for its own result, three cycles for eight bytes. Chunks do not depend
on each other, so four chains run side by side and the call is bound by memory instead. A stream may arrive in pieces
of any size: what a piece leaves of its last chunk waits in `stream` for the next one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from engine.native.crc32c import crc_finish, crc_start, crc_update, crc_update_u64, load_u64
from engine.native.kernel import inner, kernel, u8_array, u8_readonly

_u32 = types.Array(types.uint32, 1, "C")
_i64 = types.Array(types.int64, 1, "C")
_u32_readonly = types.Array(types.uint32, 1, "C", readonly=True)

S_FILLED, S_STATE, S_DONE = range(3)  # cells of a stream: bytes of the open chunk, its CRC state, chunks finished
STREAM_CELLS = 3


def new_stream() -> npt.NDArray[np.int64]:
    """Return the state of a stream of which nothing was seen yet."""
    return np.zeros(STREAM_CELLS, np.int64)


@kernel(
    types.int64(u8_array, types.int64, _i64, _u32),
    types.int64(u8_readonly, types.int64, _i64, _u32),
)
def take_in(data, chunk, stream, checksums):  # type: ignore[no-untyped-def]
    """Take in the next bytes of a stream; return how many chunks are finished, or -1 where `checksums` is too short.

    data: uint8[n]. chunk: bytes, a multiple of 8, above 0. stream: new_stream(). checksums: uint32[m], one cell for
    each chunk of the whole stream; nothing is changed where they do not fit.
    """
    size, filled, done = np.int64(data.size), stream[S_FILLED], stream[S_DONE]
    if done < 0 or filled < 0 or filled >= chunk or done + (filled + size) // chunk > checksums.size:
        return np.int64(-1)
    at = np.int64(0)
    if filled > 0:
        at = min(chunk - filled, size)
        state = crc_update(np.uint32(stream[S_STATE]), data, np.int64(0), at)
        filled += at
        if filled < chunk:
            stream[S_FILLED], stream[S_STATE] = filled, np.int64(state)
            return done
        checksums[done] = crc_finish(state)
        done += 1
    while at + 4 * chunk <= size:
        _four_chunks(data, at, chunk, checksums, done)
        at += 4 * chunk
        done += 4
    while at + chunk <= size:
        checksums[done] = crc_finish(crc_update(crc_start(), data, at, at + chunk))
        at += chunk
        done += 1
    stream[S_FILLED], stream[S_DONE] = size - at, done
    stream[S_STATE] = np.int64(crc_update(crc_start(), data, at, size))
    return done


@kernel(types.int64(types.int64, _i64, _u32))
def finish(chunk, stream, checksums):  # type: ignore[no-untyped-def]
    """End a stream: its last, shorter chunk gets its checksum. Return the count of chunks, or -1 as take_in does."""
    done = stream[S_DONE]
    if stream[S_FILLED] > 0:
        if done < 0 or done >= checksums.size:
            return np.int64(-1)
        checksums[done] = crc_finish(np.uint32(stream[S_STATE]))
        done += 1
        stream[S_FILLED], stream[S_DONE] = 0, done
    return done


@kernel(
    types.int64(u8_array, types.int64, _u32, types.int64),
    types.int64(u8_array, types.int64, _u32_readonly, types.int64),
    types.int64(u8_readonly, types.int64, _u32_readonly, types.int64),
)
def first_bad_chunk(data, chunk, checksums, first):  # type: ignore[no-untyped-def]
    """Return the first chunk of data that does not match, counted from data's start; -1 where all do.

    data: uint8[n], begins at the start of chunk `first` of the block and ends at a chunk's end or the block's.
    checksums: uint32[m] of the whole block; a chunk they have no cell for is bad.
    """
    count = (data.size + chunk - 1) // chunk
    for k in range(count):
        if first + k < 0 or first + k >= checksums.size:
            return np.int64(k)
        end = min((k + 1) * chunk, data.size)
        if crc_finish(crc_update(crc_start(), data, k * chunk, end)) != checksums[first + k]:
            return np.int64(k)
    return np.int64(-1)


@inner
def _four_chunks(data, at, chunk, checksums, done):  # type: ignore[no-untyped-def]
    """Checksum data[at : at + 4 * chunk] into four cells from `done`; the caller has checked both."""
    a, b, c, d = crc_start(), crc_start(), crc_start(), crc_start()
    for word in range(chunk // 8):
        offset = at + word * 8
        a = crc_update_u64(a, load_u64(data, offset))
        b = crc_update_u64(b, load_u64(data, offset + chunk))
        c = crc_update_u64(c, load_u64(data, offset + 2 * chunk))
        d = crc_update_u64(d, load_u64(data, offset + 3 * chunk))
    checksums[done] = crc_finish(a)
    checksums[done + 1] = crc_finish(b)
    checksums[done + 2] = crc_finish(c)
    checksums[done + 3] = crc_finish(d)
