"""Compressing a section as Hadoop does: the other direction of `codecs`.

    Default, Deflate    a zlib stream           Lz4, Snappy    blocks: BE32 raw bytes, BE32 compressed bytes, a chunk
    Gzip                a gzip member
    BZip2               a bzip2 stream
    ZStandard           a zstd frame

A block holds what Hadoop's 256 KiB buffers take in one go: its decompressor copies a chunk into one of them, and stops
at a chunk that is larger. An empty section is a stream all the same (blocks: BE32 zero), as a NameNode writes it.
The bytes depend on nothing but the input: no time stamps, and pieces are cut the same way on any number of threads.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable
from typing import Protocol

import cramjam

_CLASS = "org.apache.hadoop.io.compress."
CODECS = {
    "none": "",
    "deflate": f"{_CLASS}DefaultCodec",
    "gzip": f"{_CLASS}GzipCodec",
    "bzip2": f"{_CLASS}BZip2Codec",
    "lz4": f"{_CLASS}Lz4Codec",
    "snappy": f"{_CLASS}SnappyCodec",
    "zstd": f"{_CLASS}ZStandardCodec",
}
_BUFFER = 256 << 10  # io.compression.codec.{lz4,snappy}.buffersize
_LZ4_BLOCK = _BUFFER - _BUFFER // 255 - 16  # less what incompressible bytes grow by, so that a chunk fits the buffer
_SNAPPY_BLOCK = _BUFFER - _BUFFER // 6 - 32
_ZSTD_LEVEL = 3  # io.compression.codec.zstd.level

Buffer = bytes | bytearray | memoryview


class Compressor(Protocol):
    """One stream under way."""

    def feed(self, data: Buffer) -> bytes:
        """Take raw bytes; return what is compressed so far and was not returned yet."""

    def finish(self) -> bytes:
        """End the stream; return the rest."""


class _Plain:
    """What zlib's and bz2's compressors share."""

    def __init__(self, stream: zlib._Compress | bz2.BZ2Compressor) -> None:
        self._stream = stream

    def feed(self, data: Buffer) -> bytes:
        return self._stream.compress(data)

    def finish(self) -> bytes:
        return self._stream.flush()


class _Blocks:
    """Hadoop's BlockCompressorStream: blocks of at most `size` raw bytes, a chunk each."""

    def __init__(self, size: int, compress: Callable[[bytes], bytes]) -> None:
        self._size, self._compress = size, compress
        self._held, self._is_empty = bytearray(), True

    def feed(self, data: Buffer) -> bytes:
        self._held += data
        out, at = [], 0
        while len(self._held) - at >= self._size:
            out.append(self._block(bytes(memoryview(self._held)[at : at + self._size])))
            at += self._size
        del self._held[:at]
        return b"".join(out)

    def finish(self) -> bytes:
        if self._held:
            return self._block(bytes(self._held))
        return struct.pack(">I", 0) if self._is_empty else b""

    def _block(self, raw: bytes) -> bytes:
        chunk = self._compress(raw)
        self._is_empty = False
        return struct.pack(">II", len(raw), len(chunk)) + chunk


class _Zstd:
    """A zstd frame."""

    def __init__(self) -> None:
        self._stream = cramjam.zstd.Compressor(level=_ZSTD_LEVEL)

    def feed(self, data: Buffer) -> bytes:
        self._stream.compress(bytes(data))
        return bytes(self._stream.flush())

    def finish(self) -> bytes:
        return bytes(self._stream.finish())


_STREAMS: dict[str, Callable[[], Compressor]] = {
    "DefaultCodec": lambda: _Plain(zlib.compressobj()),
    "DeflateCodec": lambda: _Plain(zlib.compressobj()),
    "GzipCodec": lambda: _Plain(zlib.compressobj(wbits=zlib.MAX_WBITS | 16)),
    "BZip2Codec": lambda: _Plain(bz2.BZ2Compressor()),
    "Lz4Codec": lambda: _Blocks(_LZ4_BLOCK, lambda raw: bytes(cramjam.lz4.compress_block(raw, store_size=False))),
    "SnappyCodec": lambda: _Blocks(_SNAPPY_BLOCK, lambda raw: bytes(cramjam.snappy.compress_raw(raw))),
    "ZStandardCodec": _Zstd,
}


def compressor(codec: str) -> Compressor:
    """Start a stream; codec: a class name of CODECS."""
    return _STREAMS[codec.removeprefix(_CLASS)]()


def compress(codec: str, data: Buffer) -> bytes:
    """Return `data` as one whole stream; as it is where there is no codec."""
    if not codec:
        return bytes(data)
    stream = compressor(codec)
    return stream.feed(data) + stream.finish()
