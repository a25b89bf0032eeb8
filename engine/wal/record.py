"""WAL records: the bytes of one commit.

Little-endian, 8-byte aligned in the file, never split across segments:

    offset  size  field      meaning
         0     4  crc        CRC32C of: the log's id (16 bytes), the payload, then bytes 4 to 24 of this header
         4     4  length     payload bytes, 0 to MAX_PAYLOAD
         8     8  txid       one more than the record before; a SEAL repeats it
        16     1  kind       RecordKind; 0 is what pre-zeroed space reads as, so no record is 0
        17     3  -          zero
        20     4  undurable  txid minus the txid that was durable when this was appended, at most 2^32 - 1
        24     n  payload    then zeros up to a multiple of 8

The id comes first so that its part of the checksum is computed once a log (`log_seed`), and a payload that
holds the bytes of another log can never be mistaken for records of this one. The payload comes before the
header so that a handler can checksum it before it takes the lock that gives it a txid. `undurable` lets
recovery tell a torn tail from damage: a later record that says "yours was durable" convicts.
Spec: docs/reference/wal-format.md.
"""

from __future__ import annotations

import enum
import struct

import google_crc32c
import numpy as np

from engine.native.bytewise import copy_bytes, store_u64
from engine.native.crc32c import crc_finish, crc_start, crc_update, load_u64
from engine.native.kernel import inner
from engine.units import Txid
from engine.wal.errors import RecordTooLarge

HEADER_SIZE = 24
ALIGN = 8
MAX_PAYLOAD = 16 << 20
UNDURABLE_LIMIT = (1 << 32) - 1
LOG_ID_BYTES = 16


class RecordKind(enum.IntEnum):
    """What a record is; the numbers are in the file."""

    DATA = 1
    SEAL = 2  # empty, written and synced at a clean close: all before it was durable


DATA, SEAL = int(RecordKind.DATA), int(RecordKind.SEAL)

# What stands at an offset, as `read_record` sees it without knowing which txid should be there.
VALID = 0
NO_ROOM = 1  # fewer bytes to the end than a header takes
ZERO = 2  # a header of zeros: pre-zeroed space
BAD_LENGTH = 3  # more than MAX_PAYLOAD, or past the end
BAD_CRC = 4
BAD_KIND = 5  # the checksum holds, but the kind or the zero bytes are not ours: a later format

_BODY = struct.Struct("<IQB3xI")
_CRC = struct.Struct("<I")


def encode_record(kind: RecordKind, txid: Txid, payload: bytes, *, undurable: int, log_id: bytes) -> bytes:
    """Frame one record: header, payload, zeros to a multiple of ALIGN. The oracle of `put_record`.

    undurable: txid minus the durable txid at this moment. Raises RecordTooLarge over MAX_PAYLOAD bytes.
    """
    if len(payload) > MAX_PAYLOAD:
        raise RecordTooLarge(size=len(payload), limit=MAX_PAYLOAD)
    body = _BODY.pack(len(payload), txid, kind, min(undurable, UNDURABLE_LIMIT))
    crc = google_crc32c.value(log_id + payload + body)
    return _CRC.pack(crc) + body + payload + bytes(-len(payload) % ALIGN)


def record_size(payload_bytes: int) -> int:
    """Return the bytes that a record of such a payload takes in a segment."""
    return (HEADER_SIZE + payload_bytes + ALIGN - 1) & -ALIGN


def log_seed(log_id: bytes) -> int:
    """Return the checksum state after the log's id: what `payload_crc` starts from, the same for the whole log."""
    return int(google_crc32c.value(log_id)) ^ 0xFFFFFFFF


@inner
def record_bytes(payload_bytes):  # type: ignore[no-untyped-def]
    """Return record_size(payload_bytes), as int64, for kernels."""
    return np.int64((HEADER_SIZE + payload_bytes + (ALIGN - 1)) & np.int64(-ALIGN))


@inner
def seed_of(log_id):  # type: ignore[no-untyped-def]
    """Return log_seed of a uint8[16], as uint32."""
    return crc_update(crc_start(), log_id, 0, LOG_ID_BYTES)


@inner
def payload_crc(payload, seed):  # type: ignore[no-untyped-def]
    """Return the checksum state after `payload`: computed before the lock, given to `put_record` under it.

    payload: uint8[n], read-only or not; seed: uint32, the log's `log_seed`.
    """
    return crc_update(np.uint32(seed), payload, 0, payload.size)


@inner
def put_record(buffer, at, kind, txid, undurable, payload, payload_state):  # type: ignore[no-untyped-def]
    """Put one record at buffer[at:]; return (bytes it takes, its crc).

    buffer: uint8[n] with room for record_size(payload.size) bytes at `at`, which the caller has checked,
    as it has that payload.size <= MAX_PAYLOAD; payload: uint8[n], read-only or not, outside `buffer`;
    payload_state: uint32 from payload_crc; undurable: int64 >= 0, kept at UNDURABLE_LIMIT.
    Runs under the append lock: nothing here raises or allocates.
    """
    length = np.int64(payload.size)
    size = record_bytes(length)
    waiting = np.uint64(min(np.int64(undurable), np.int64(UNDURABLE_LIMIT)))
    store_u64(buffer, at + size - 8, np.uint64(0))  # the padding; what else lies in that word is written below
    copy_bytes(buffer, at + HEADER_SIZE, payload, length)
    store_u64(buffer, at, np.uint64(length) << np.uint64(32))
    store_u64(buffer, at + 8, np.uint64(txid))
    store_u64(buffer, at + 16, np.uint64(kind) | (waiting << np.uint64(32)))
    crc = crc_finish(crc_update(np.uint32(payload_state), buffer, at + 4, at + HEADER_SIZE))
    store_u64(buffer, at, (np.uint64(length) << np.uint64(32)) | np.uint64(crc))
    return size, crc


@inner
def read_record(view, at, end, seed):  # type: ignore[no-untyped-def]
    """Decode what stands at view[at:end]; return (code, length, txid, kind, undurable, crc), all int64.

    view: uint8[n]; 0 <= at <= end <= n, which the caller has checked; seed: uint32. The code is VALID or says why
    not; the other fields mean something for VALID and BAD_KIND only. A txid above 2^63 reads as negative: nobody's.
    """
    nothing = np.int64(0)
    if end - at < HEADER_SIZE:
        return NO_ROOM, nothing, nothing, nothing, nothing, nothing
    first, txid, last = load_u64(view, at), np.int64(load_u64(view, at + 8)), load_u64(view, at + 16)
    length = np.int64(first >> np.uint64(32))
    crc = np.int64(first & np.uint64(0xFFFFFFFF))
    kind = np.int64(last & np.uint64(0xFF))
    undurable = np.int64(last >> np.uint64(32))
    if first == 0 and txid == 0 and last == 0:
        return ZERO, nothing, nothing, nothing, nothing, nothing
    if length > MAX_PAYLOAD or HEADER_SIZE + length > end - at:
        return BAD_LENGTH, length, txid, kind, undurable, crc
    state = crc_update(np.uint32(seed), view, at + HEADER_SIZE, at + HEADER_SIZE + length)
    if np.int64(crc_finish(crc_update(state, view, at + 4, at + HEADER_SIZE))) != crc:
        return BAD_CRC, length, txid, kind, undurable, crc
    if kind not in (DATA, SEAL) or (last & np.uint64(0xFFFFFF00)) != 0 or (kind == SEAL and length != 0):
        return BAD_KIND, length, txid, kind, undurable, crc
    return VALID, length, txid, kind, undurable, crc
