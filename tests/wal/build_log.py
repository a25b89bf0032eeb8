"""Logs written in plain Python, byte by byte as docs/reference/wal-format.md says, without the kernels."""

from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c

from engine.units import Bytes, Nanoseconds, Offset, Txid
from engine.wal.record import RecordKind, encode_record
from engine.wal.segment import SegmentHeader, encode_header, segment_name

LOG_ID = bytes(range(16))
SEGMENT_SIZE = 8192


def chain_step(chain: int, crc: int) -> int:
    """CRC32C without its inversions over the eight bytes of a checksum."""
    return google_crc32c.extend(chain ^ 0xFFFFFFFF, struct.pack("<Q", crc)) ^ 0xFFFFFFFF


class LogBuilder:
    """A log in memory, one bytearray a segment; `write` puts it into a folder."""

    def __init__(self, *, log_id: bytes = LOG_ID, segment_size: int = SEGMENT_SIZE, number: int = 1, txid: int = 1):
        self.log_id, self.segment_size = log_id, segment_size
        self.segments: dict[int, bytearray] = {}
        self.payloads: dict[int, bytes] = {}
        self.places: dict[int, tuple[int, int, int]] = {}  # txid: segment, offset, undurable
        self.appended, self.durable, self.chain = txid - 1, txid - 1, 0
        self._number, self._previous_used = number - 1, 0
        self.roll()

    @property
    def last(self) -> bytearray:
        return self.segments[self._number]

    @property
    def number(self) -> int:
        return self._number

    def roll(self) -> LogBuilder:
        """Sync, then begin the next segment."""
        self.sync()
        if self.segments:
            self._previous_used = len(self.last)
        elif self._number:
            self._previous_used = 4096
        self._number += 1
        header = SegmentHeader(
            log_id=self.log_id,
            number=self._number,
            segment_size=Bytes(self.segment_size),
            first_txid=Txid(self.appended + 1),
            previous_used=Offset(self._previous_used),
            previous_chain=self.chain,
            created_wall_ns=Nanoseconds(1_700_000_000_000_000_000),
        )
        self.segments[self._number] = bytearray(encode_header(header))
        return self

    def data(self, *payloads: bytes) -> LogBuilder:
        """Append records without a sync."""
        for payload in payloads:
            txid = self.appended + 1
            undurable = txid - self.durable
            raw = encode_record(RecordKind.DATA, Txid(txid), payload, undurable=undurable, log_id=self.log_id)
            assert len(self.last) + len(raw) <= self.segment_size
            self.places[txid] = (self._number, len(self.last), undurable)
            self.last.extend(raw)
            self.appended, self.payloads[txid] = txid, payload
            self.chain = chain_step(self.chain, int.from_bytes(raw[:4], "little"))
        return self

    def sync(self) -> LogBuilder:
        self.durable = self.appended
        return self

    def seal(self) -> LogBuilder:
        """Close the log cleanly."""
        self.sync()
        self.last.extend(encode_record(RecordKind.SEAL, Txid(self.appended), b"", undurable=0, log_id=self.log_id))
        return self

    def files(self) -> dict[str, bytearray]:
        """Return the whole files, pre-zeroed to the segment size."""
        return {
            segment_name(number): content + bytes(self.segment_size - len(content))
            for number, content in self.segments.items()
        }

    def records(self) -> list[tuple[int, bytes]]:
        return sorted(self.payloads.items())

    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        for name, content in self.files().items():
            (folder / name).write_bytes(content)
        return folder


def small_log(*, sealed: bool = False) -> LogBuilder:
    """Three segments, nine records of several sizes; the last two were never synced unless sealed."""
    log = LogBuilder()
    log.data(b"one").sync().data(b"two" * 5, b"").roll()
    log.data(b"four").sync().data(b"\x00\xff" * 9).roll()
    log.data(b"six", b"seven7!!").sync().data(b"eight" * 3, b"nine")
    return log.seal() if sealed else log
