"""WAL segments: the numbered files of a log, and the header each begins with.

Little-endian. The header has the first HEADER_BLOCK bytes of the file to itself; records follow it:

    offset  size  field            meaning
         0     8  magic            "TIDEWAL1"
         8     4  version          VERSION
        12     4  header_bytes     HEADER_BLOCK: where records begin
        16    16  log_id           random, the same in every segment of a log
        32     8  number           as in the file's name, from 1
        40     8  segment_size     bytes of the file, a multiple of 4096
        48     8  first_txid       of the first record here
        56     8  previous_used    bytes used in the segment before, its header included; 0 in segment 1
        64     4  previous_chain   the chain after the last record of the segment before; 0 in segment 1
        68     4  -                zero
        72     8  created_wall_ns  when, by the wall clock; for people
        80     4  crc              CRC32C of bytes 0 to 80
        84  4012  -                zero

The *chain* runs over the checksums of all DATA records of the log, so a segment that was exchanged or lost in
the middle is noticed. A header block of zeros is a *prepared* segment: made in advance, not used yet.
Spec: docs/reference/wal-format.md.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import google_crc32c
import numpy as np

from engine.errors import BadValue
from engine.native.bytewise import copy_bytes, store_u64
from engine.native.crc32c import crc_finish, crc_start, crc_update, crc_update_u64
from engine.native.kernel import inner
from engine.units import Bytes, Nanoseconds, Offset, Txid
from engine.wal.record import HEADER_SIZE, LOG_ID_BYTES

MAGIC = b"TIDEWAL1"
VERSION = 1
HEADER_BLOCK = 4096
BLOCK = 4096  # segment sizes are multiples of it
MIN_SEGMENT_SIZE = Bytes(2 * BLOCK)
MAX_SEGMENT_SIZE = Bytes(1 << 30)  # a reader holds one segment in memory
MAX_TXID = (1 << 63) - 1

_FIELDS = struct.Struct("<8sII16sQQQQIIQ")
_CRC = struct.Struct("<I")
_CRC_AT = _FIELDS.size
_NAME = re.compile(r"([0-9]{8,18})\.wal")
_MAGIC_WORD = np.uint64(int.from_bytes(MAGIC, "little"))
_VERSION_WORD = np.uint64(VERSION | HEADER_BLOCK << 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHeader:
    """What a segment says of itself and of the one before it."""

    log_id: bytes
    number: int
    segment_size: Bytes
    first_txid: Txid
    previous_used: Offset
    previous_chain: int
    created_wall_ns: Nanoseconds
    version: int = VERSION


class BadHeader(ValueError):
    """A header block that does not decode; recovery, which knows the place, decides what that means."""

    def __init__(self, *, offset: int, found: str, allowed: str) -> None:
        super().__init__(f"byte {offset}: found {found}, allowed {allowed}")
        self.offset, self.found, self.allowed = offset, found, allowed


def segment_name(number: int) -> str:
    """Return the file name of a segment: at least eight digits."""
    return f"{number:08d}.wal"


def segment_number(name: str) -> int | None:
    """Return the number in a segment's file name, or None where the name is not one."""
    match = _NAME.fullmatch(name)
    number = int(match.group(1)) if match else 0
    return number if number and segment_name(number) == name else None


def check_segment_size(size: int) -> Bytes:
    """Return a segment size that a log can have. Raises BadValue."""
    if size % BLOCK or not MIN_SEGMENT_SIZE <= size <= MAX_SEGMENT_SIZE:
        allowed = f"a multiple of {BLOCK} bytes from {MIN_SEGMENT_SIZE} to {MAX_SEGMENT_SIZE}"
        raise BadValue(what="segment size", given=str(size), allowed=allowed, example="64MiB")
    return Bytes(size)


def payload_room(segment_size: int) -> Bytes:
    """Return the largest payload that a segment of that size holds."""
    return Bytes(segment_size - HEADER_BLOCK - HEADER_SIZE)


def encode_header(header: SegmentHeader) -> bytes:
    """Return the HEADER_BLOCK bytes of a segment's header. The oracle of `put_segment_header`."""
    fields = _FIELDS.pack(
        MAGIC,
        header.version,
        HEADER_BLOCK,
        header.log_id,
        header.number,
        header.segment_size,
        header.first_txid,
        header.previous_used,
        header.previous_chain,
        0,
        header.created_wall_ns,
    )
    return (fields + _CRC.pack(google_crc32c.value(fields))).ljust(HEADER_BLOCK, b"\0")


def decode_header(block: bytes) -> SegmentHeader | None:
    """Decode a header block; None for a prepared segment, whose block is all zero.

    block: the first HEADER_BLOCK bytes of the file, fewer where the file is shorter. A header of another
    version decodes with that version, if it is whole; the caller refuses it. Raises BadHeader.
    """
    if len(block) < HEADER_BLOCK:
        raise BadHeader(offset=len(block), found="the end of the file", allowed=f"a header of {HEADER_BLOCK} bytes")
    if not any(block):
        return None
    if block[:8] != MAGIC:
        raise BadHeader(offset=0, found=ascii(block[:8])[1:], allowed=ascii(MAGIC)[1:])
    (crc,) = _CRC.unpack_from(block, _CRC_AT)
    computed = google_crc32c.value(block[:_CRC_AT])
    if crc != computed:
        raise BadHeader(offset=_CRC_AT, found=f"checksum {crc:08x}", allowed=f"{computed:08x} for this header")
    _, version, header_bytes, log_id, number, size, first, used, chain, zero, created = _FIELDS.unpack_from(block)
    if version == VERSION:
        _check_fields(header_bytes, number, size, first, used, zero, block)
    return SegmentHeader(
        log_id=log_id,
        number=number,
        segment_size=Bytes(size),
        first_txid=Txid(first),
        previous_used=Offset(used),
        previous_chain=chain,
        created_wall_ns=Nanoseconds(created),
        version=version,
    )


def _check_fields(header_bytes: int, number: int, size: int, first: int, used: int, zero: int, block: bytes) -> None:
    """Raise BadHeader where a checksum holds and a field still makes no sense."""
    if header_bytes != HEADER_BLOCK:
        raise BadHeader(offset=12, found=f"a header of {header_bytes} bytes", allowed=str(HEADER_BLOCK))
    if number < 1 or number >= 10**18:
        raise BadHeader(offset=32, found=f"segment number {number}", allowed="1 to 10^18 - 1")
    if size % BLOCK or not MIN_SEGMENT_SIZE <= size <= MAX_SEGMENT_SIZE:
        allowed = f"a multiple of {BLOCK} from {MIN_SEGMENT_SIZE} to {MAX_SEGMENT_SIZE}"
        raise BadHeader(offset=40, found=f"segment size {size}", allowed=allowed)
    if not 1 <= first <= MAX_TXID:
        raise BadHeader(offset=48, found=f"first txid {first}", allowed="1 to 2^63 - 1")
    if used % 8 or used > MAX_SEGMENT_SIZE or (used < HEADER_BLOCK and used != 0):
        raise BadHeader(offset=56, found=f"{used} bytes used before", allowed="0, or a multiple of 8 from 4096")
    if zero or any(block[_CRC_AT + _CRC.size :]):
        raise BadHeader(offset=68, found="other bytes", allowed="zeros at 68 to 72 and at 84 to 4096")


def torn_header_fits(block: bytes, expected: SegmentHeader) -> bool:
    """Return whether a block that does not decode can be `expected`, half written.

    A crash leaves each byte as it was (zero) or as it was being written. Another byte means that the file is
    damaged, or something else altogether, and must not be cut. Segment size and time are not compared.
    """
    whole = encode_header(expected)
    compared = [*range(40), *range(48, 72), *range(_CRC_AT + _CRC.size, HEADER_BLOCK)]
    return all(block[k] in (0, whole[k]) for k in compared if k < len(block))


@inner
def put_segment_header(  # type: ignore[no-untyped-def]
    block, log_id, number, segment_size, first_txid, previous_used, previous_chain, created_wall_ns
):
    """Put a header into `block`, uint8[>= HEADER_BLOCK]; log_id: uint8[16]; the rest int64.

    Allocates nothing and never raises: the thread that rolls holds the right to write.
    """
    for k in range(HEADER_BLOCK):
        block[k] = 0
    store_u64(block, 0, _MAGIC_WORD)
    store_u64(block, 8, _VERSION_WORD)
    copy_bytes(block, 16, log_id, LOG_ID_BYTES)
    store_u64(block, 32, np.uint64(number))
    store_u64(block, 40, np.uint64(segment_size))
    store_u64(block, 48, np.uint64(first_txid))
    store_u64(block, 56, np.uint64(previous_used))
    store_u64(block, 64, np.uint64(previous_chain) & np.uint64(0xFFFFFFFF))
    store_u64(block, 72, np.uint64(created_wall_ns))
    store_u64(block, 80, np.uint64(crc_finish(crc_update(crc_start(), block, 0, _CRC_AT))))


@inner
def chain_after(chain, crc):  # type: ignore[no-untyped-def]
    """Return the chain after a DATA record with that crc; both as int64."""
    return np.int64(crc_update_u64(np.uint32(chain), np.uint64(crc)))
