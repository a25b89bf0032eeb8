"""Replica files: the bytes of one block on one volume.

The data comes first, so any tool reads it; the file describes itself at its end. Its size is a multiple of 4096, so
that it can be written around the page cache, and the footer is its last 128 bytes. Little-endian:

    offset            size  field
         0            n     data
    up to 8           -     zero
         .            4*c   checksums: CRC32C of each chunk of data, the last one may be shorter
         .            -     zero
    size - 128        128   footer:
                  0     8   magic "TIDERPL1"
                  8     4   version, 1
                 12     4   kind: 0 no checksums, 1 CRC32C, 2 CRC32C, not computed yet (the cells are zero)
                 16    16   store id
                 32     8   block id
                 40     8   file id
                 48     8   length: n
                 56     4   index of the block in its file
                 60     4   chunk size in bytes
                 64     4   count of checksums: c
                 68     4   CRC32C of the checksums
                 72    52   zero
                124     4   CRC32C of the footer's first 124 bytes
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import google_crc32c
import numpy as np
import numpy.typing as npt

from engine.storage.file_calls import DIRECT_ALIGNMENT, FileCalls, Place
from engine.units import Bytes

FOOTER_SIZE = 128
VERSION = 1
_MAGIC = b"TIDERPL1"
_FOOTER = struct.Struct("<8sII16sQQQIIII52x")
_CRC = struct.Struct("<I")


class Kind(IntEnum):
    """What the checksum cells of a replica hold."""

    NONE = 0
    CRC32C = 1
    PENDING = 2


@dataclass(frozen=True, slots=True)
class Footer:
    """What a replica says of itself."""

    kind: Kind
    store_id: bytes
    block_id: int
    file_id: int
    length: int
    index: int
    chunk: int
    count: int
    checksums_crc: int


def checksum_count(length: int, chunk: int) -> int:
    """Return how many chunks a block has; chunk 0 is no checksums."""
    return -(-length // chunk) if chunk else 0


def file_size(length: int, chunk: int) -> Bytes:
    """Return the size of a replica's file."""
    wanted = _up(length, 8) + 4 * checksum_count(length, chunk) + FOOTER_SIZE
    return Bytes(_up(wanted, DIRECT_ALIGNMENT))


def encode_tail(footer: Footer, checksums: npt.NDArray[np.uint32], data: bytes | memoryview = b"") -> bytes:
    """Return the file's end, from `data` on: the last bytes of the block that the caller has not written yet."""
    begin = footer.length - len(data)
    cells = checksums.astype("<u4").tobytes()
    before_cells = b"\0" * (_up(footer.length, 8) - footer.length)
    so_far = _up(footer.length, 8) - begin + len(cells)
    fill = file_size(footer.length, footer.chunk if footer.count else 0) - begin - so_far - FOOTER_SIZE
    packed = _FOOTER.pack(
        _MAGIC,
        VERSION,
        footer.kind,
        footer.store_id,
        footer.block_id,
        footer.file_id,
        footer.length,
        footer.index,
        footer.chunk,
        footer.count,
        google_crc32c.value(cells),
    )
    return b"".join((data, before_cells, cells, b"\0" * fill, packed, _CRC.pack(google_crc32c.value(packed))))


def decode_footer(data: bytes) -> Footer | str:
    """Return the footer that `data` is, or in words why it is none. data: whatever a file ended with."""
    if len(data) != FOOTER_SIZE:
        return f"{len(data)} bytes where the footer has {FOOTER_SIZE}"
    if data[:8] != _MAGIC:
        return "no footer"
    if google_crc32c.value(data[:-4]) != _CRC.unpack(data[-4:])[0]:
        return "a footer that does not match its checksum"
    _, version, kind, store_id, block_id, file_id, length, index, chunk, count, checksums_crc = _FOOTER.unpack(
        data[:-4]
    )
    if version != VERSION:
        return f"replica format version {version}, this program reads version {VERSION}"
    if kind not in tuple(Kind) or count != checksum_count(length, chunk if kind else 0):
        return f"{count:,} checksums for {length:,} bytes in chunks of {chunk:,}"
    return Footer(Kind(kind), store_id, block_id, file_id, length, index, chunk, count, checksums_crc)


def read_footer(calls: FileCalls, descriptor: int) -> Footer | str:
    """Return the footer of an open file, or why it has none. Raises OSError."""
    size = calls.size(descriptor)
    if size < FOOTER_SIZE or size % DIRECT_ALIGNMENT:
        return f"{size:,} bytes, no size that a replica has"
    data = bytearray(FOOTER_SIZE)
    calls.read(descriptor, memoryview(data), size - FOOTER_SIZE, Place.READ)
    footer = decode_footer(bytes(data))
    if isinstance(footer, Footer) and size != file_size(footer.length, footer.chunk if footer.count else 0):
        return f"{size:,} bytes, and a footer for a block of {footer.length:,}"
    return footer


def read_checksums(calls: FileCalls, descriptor: int, footer: Footer) -> npt.NDArray[np.uint32] | str:
    """Return the checksums of an open replica, or why they cannot be used. Raises OSError."""
    cells = bytearray(4 * footer.count)
    calls.read(descriptor, memoryview(cells), _up(footer.length, 8), Place.READ)
    if google_crc32c.value(bytes(cells)) != footer.checksums_crc:
        return "checksums that do not match their own"
    return np.frombuffer(cells, "<u4")


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
