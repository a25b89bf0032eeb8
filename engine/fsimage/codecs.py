"""Undoing an image's compression: one function, bounded output, concatenated streams.

    Default, Deflate    zlib streams            Lz4, Snappy    Hadoop's block framing: runs of
    Gzip                gzip members                            BE32 raw bytes of the block, then until they are
    BZip2               bzip2 streams                           all there: BE32 compressed bytes, a compressed chunk
    ZStandard           zstd frames

An image saved with sub-sections holds several independent streams one behind the other in each section (HDFS-17573),
so every codec reads on until its input is used up. The output is bounded (`raw_limit`): what claims to expand
further is an attack, not an image.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable
from typing import Protocol

import cramjam
import numpy as np

from engine.fsimage.columns import U8

INPUT_STEP = 1 << 18  # bytes between two looks at `tick`; a stream's state is small, its unread input is copied
_FREE_RAW_BYTES = 16 << 20
_MAX_EXPANSION = 128  # images expand 3 to 30 times


class CodecError(Exception):
    """A stream that does not decompress; `offset` counts compressed bytes."""

    def __init__(self, offset: int, found: str, allowed: str = "a whole stream") -> None:
        super().__init__(found)
        self.offset, self.found, self.allowed = offset, found, allowed


class _Stream(Protocol):
    """What zlib's and bz2's decompressors share."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


Tick = Callable[[int], None]
Decode = Callable[[memoryview, int, Tick], bytearray | bytes | U8]


def raw_limit(compressed: int) -> int:
    """Return the most bytes that `compressed` bytes may expand to."""
    return _FREE_RAW_BYTES + _MAX_EXPANSION * compressed


def decompress(codec: str, data: memoryview, tick: Tick = lambda consumed: None) -> U8:
    """Return the bytes behind `data`, read-only.

    codec: the class name as an image stores it, known to `is_known`. tick: called now and then with compressed bytes
    consumed since the last call; what it raises ends the work. Raises CodecError.
    """
    raw = _DECODERS[codec_name(codec)](data, raw_limit(len(data)), tick)
    frozen = np.frombuffer(raw, np.uint8) if not isinstance(raw, np.ndarray) else raw
    frozen.flags.writeable = False
    return frozen


def codec_name(codec: str) -> str:
    """Return the short name of a codec class: `org.apache.hadoop.io.compress.GzipCodec` is `gzip`."""
    return codec.rpartition(".")[2].removesuffix("Codec").lower()


def is_known(codec: str) -> bool:
    """Return whether `decompress` can undo it."""
    return codec_name(codec) in _DECODERS


def _zlib_streams(window: int) -> Decode:
    return lambda data, limit, tick: _streams(data, limit, tick, lambda: zlib.decompressobj(window))


def _bzip2_streams(data: memoryview, limit: int, tick: Tick) -> bytearray:
    return _streams(data, limit, tick, bz2.BZ2Decompressor)


def _streams(data: memoryview, limit: int, tick: Tick, new_stream: Callable[[], _Stream]) -> bytearray:
    """Decompress streams one behind the other until the input is used up."""
    raw, at, stream, is_open = bytearray(), 0, new_stream(), False
    while at < len(data):
        step = data[at : at + INPUT_STEP]
        room = limit - len(raw) + 1
        try:
            raw += stream.decompress(step, room)
        except (zlib.error, OSError, ValueError, EOFError) as error:
            raise CodecError(at, f"compressed bytes that do not decode ({error})") from error
        if len(raw) > limit:
            raise CodecError(at, f"{len(data):,} bytes that expand to more than {limit:,}", f"{limit:,}")
        used = len(step) - len(stream.unused_data)
        is_open = not stream.eof
        if stream.eof:
            stream = new_stream()
        at += used
        tick(used)
    if is_open:
        raise CodecError(len(data), "a stream cut short")
    return raw


def _blocks(decode_chunk: Callable[[memoryview, int], bytes]) -> Decode:
    def decode(data: memoryview, limit: int, tick: Tick) -> bytearray:
        raw, at = bytearray(), 0
        while at < len(data):
            wanted = _word(data, at)
            if wanted > limit - len(raw):
                raise CodecError(at, f"a block of {wanted:,} bytes", f"{limit - len(raw):,}")
            at, target = at + 4, len(raw) + wanted
            while len(raw) < target:
                size = _word(data, at)
                if not 0 < size <= len(data) - at - 4:
                    raise CodecError(at, f"a chunk of {size:,} bytes", f"1 to {len(data) - at - 4:,}")
                chunk = _chunk(decode_chunk, data[at + 4 : at + 4 + size], target - len(raw), at)
                raw += chunk
                at += 4 + size
                tick(4 + size)
        return raw

    return decode


def _chunk(decode_chunk: Callable[[memoryview, int], bytes], data: memoryview, room: int, at: int) -> bytes:
    try:
        chunk = decode_chunk(data, room)
    except (cramjam.DecompressionError, ValueError, OverflowError) as error:
        raise CodecError(at, f"a chunk that does not decode ({str(error)[:60]})") from error
    if not 0 < len(chunk) <= room:
        raise CodecError(at, f"a chunk that holds {len(chunk):,} bytes", f"1 to {room:,}")
    return chunk


def _word(data: memoryview, at: int) -> int:
    if len(data) - at < 4:
        raise CodecError(at, f"{len(data) - at} bytes of a length", "4")
    return int(struct.unpack_from(">I", data, at)[0])


def _snappy_chunk(data: memoryview, room: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(data)
    if size > room:
        raise ValueError(f"{size} bytes where {room} are left")
    return bytes(cramjam.snappy.decompress_raw(data, output_len=size))


def _lz4_chunk(data: memoryview, room: int) -> bytes:
    return bytes(cramjam.lz4.decompress_block(data, output_len=room))


def _zstd_frames(data: memoryview, limit: int, tick: Tick) -> U8:
    # The output is a reservation: pages that no byte reaches cost nothing, and a frame cannot write past it.
    if len(data) == 0:
        return np.zeros(0, np.uint8)
    room = np.empty(limit, np.uint8)
    try:
        size = cramjam.zstd.decompress_into(data, room.data)
    except (cramjam.DecompressionError, ValueError) as error:
        raise CodecError(0, f"frames that do not decode within {limit:,} bytes ({str(error)[:60]})") from error
    tick(len(data))
    return room[:size]


_DECODERS: dict[str, Decode] = {
    "default": _zlib_streams(zlib.MAX_WBITS),
    "deflate": _zlib_streams(zlib.MAX_WBITS),
    "gzip": _zlib_streams(zlib.MAX_WBITS | 16),
    "bzip2": _bzip2_streams,
    "snappy": _blocks(_snappy_chunk),
    "lz4": _blocks(_lz4_chunk),
    "zstandard": _zstd_frames,
    "zstd": _zstd_frames,
}
