"""What a log holds, as recovery found it: plain values, no open files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.units import Bytes, Offset, Txid
from engine.wal.segment import SegmentHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment in use."""

    path: Path
    header: SegmentHeader
    used: Offset  # bytes from the start of the file to the end of the last record
    last_txid: Txid  # header.first_txid - 1 while it holds no record
    chain: int  # after the last record
    is_sealed: bool  # its last record says that everything before it was durable

    @property
    def number(self) -> int:
        """Return the number in its name and header."""
        return self.header.number

    @property
    def records(self) -> int:
        """Return how many DATA records it holds."""
        return self.last_txid - self.header.first_txid + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTail:
    """What follows the last record and was never durable: a commit that a crash cut short."""

    segment: Path
    offset: Offset
    length: Bytes  # up to the last byte that is not zero; 0 where the file is only shorter than it should be
    txid: Txid  # of the record that is not whole
    found: str
    whole_segment: bool = False  # the header is not whole either: nothing of the segment counts


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContents:
    """A log: segments oldest first, what may be cut, and what else lies in its folder."""

    folder: Path
    segments: tuple[Segment, ...] = ()
    torn: TornTail | None = None
    dirty_tail: bool = False  # other bytes than zeros behind the last record, torn or left from before a recycling
    prepared: tuple[Path, ...] = ()  # never used, or recycled; in the order in which they will be
    unsafe_prepared: tuple[Path, ...] = ()  # those from the first one on in which later txids lie
    temporary: tuple[Path, ...] = ()
    broken: tuple[Path, ...] = ()  # copies that a cut or a repair kept

    @property
    def tail(self) -> Segment | None:
        """Return the segment that appending goes on in, or None for a log that was never written to."""
        return self.segments[-1] if self.segments else None

    @property
    def log_id(self) -> bytes | None:
        """Return the log's id; a log that was never written to has none yet."""
        return self.segments[0].header.log_id if self.segments else None

    @property
    def first_txid(self) -> Txid:
        """Return the oldest txid held, or the next one where the log holds none."""
        return self.segments[0].header.first_txid if self.segments else Txid(1)

    @property
    def last_txid(self) -> Txid:
        """Return the newest txid held, or one less than `first_txid` where the log holds none."""
        return self.segments[-1].last_txid if self.segments else Txid(0)

    @property
    def records(self) -> int:
        """Return how many DATA records the log holds."""
        return self.last_txid - self.first_txid + 1

    @property
    def is_sealed(self) -> bool:
        """Return whether the log was closed cleanly."""
        return bool(self.segments) and self.segments[-1].is_sealed
