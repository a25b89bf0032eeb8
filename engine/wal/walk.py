"""Walking a log: all its records, oldest first, and the judgement where they end.

A crash leaves one of three things behind the last record: nothing (zeros, or old records of a recycled segment), a
torn tail (bytes of commits that nobody was promised), or damage (bytes somebody was promised that do not decode):

    segment 1        segment 2        segment 3                       segment 4
    [H|R1|R2|R3]     [H|R4|R5|R6]     [H|R7|R8|??????|0000000000]     [0|000000000000]
     each ends exactly where the       ^ R9 does not decode: torn,     prepared: not used yet
     next header says, with that        unless a record behind it
     txid and chain, or is damaged      says that R9 was durable

A writer syncs a segment before it writes the next header. So a header that is not whole belongs to the last segment
in use, the one before it is whole, and nothing behind that header was promised.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.storage.contents import read_file
from engine.units import Bytes, Nanoseconds, Offset, Txid
from engine.wal.contents import LogContents, Segment, TornTail
from engine.wal.errors import LogDamaged, NotALog, UnsupportedVersion
from engine.wal.listing import Block, list_log, read_block
from engine.wal.record import ALIGN, BAD_KIND, DATA, HEADER_SIZE, LOG_ID_BYTES, log_seed
from engine.wal.scan import AT_END, OUT_OF_ORDER, STALE, WHY, RecordScan, is_recycled, later_records, proof_of_damage
from engine.wal.segment import (
    HEADER_BLOCK,
    MAGIC,
    MAX_SEGMENT_SIZE,
    MIN_SEGMENT_SIZE,
    VERSION,
    SegmentHeader,
    segment_name,
    torn_header_fits,
)

_FRAME = struct.Struct("<IIQB3sI")
_FRAMES_LOOKED_AT = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records of one segment: rows of scan.ROW_DTYPE, whose payloads lie in `view`.

    Good until the next piece is asked for: the walk reads each segment into the memory of the one before.
    """

    path: Path
    header: SegmentHeader
    view: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.void]

    def records(self) -> Iterator[tuple[Txid, bytes]]:
        """Yield txid and payload of each DATA record."""
        columns = (self.rows[name].tolist() for name in ("kind", "txid", "offset", "length"))
        content = memoryview(self.view.data)  # slices faster than an array does
        for kind, txid, offset, length in zip(*columns, strict=True):
            if kind == DATA:
                start = offset + HEADER_SIZE
                yield Txid(txid), bytes(content[start : start + length])


class LogWalk:
    """One pass over a log. `pieces` yields its records and raises at the first damage; then `contents` is the result.

    start_txid: begin with the segment that holds it. up_to: the caller knows that this txid is durable: stop behind
    it, however the log ends. from_disk: read past the page cache. A writer may be appending meanwhile.
    """

    def __init__(self, folder: Path, *, start_txid: int = 0, up_to: int | None = None, from_disk: bool = False) -> None:
        self.folder, self._start, self._up_to, self._from_disk = folder, start_txid, up_to, from_disk
        self._segments: list[Segment] = []
        self._contents: LogContents | None = None
        self._memory: npt.NDArray[np.uint8] | None = None  # of the largest segment so far
        self.first_txid = Txid(1)  # the oldest txid of the walk
        self.reached = Txid(0)  # the newest txid read, first_txid - 1 before there is one

    @property
    def contents(self) -> LogContents:
        """Return what the log holds; `pieces` has been exhausted and was not stopped by `up_to`."""
        if self._contents is None:
            raise ValueError("the walk has not come to the end of the log")
        return self._contents

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments read to their end so far."""
        return tuple(self._segments)

    def pieces(self) -> Iterator[Piece]:
        """Yield the records in order. Raises NotALog, LogDamaged, UnsupportedVersion, FileTrouble."""
        # 1. The files. Prepared segments follow the last one whose header block is not zero.
        listing = list_log(self.folder)
        blocks = [read_block(number, path) for number, path in listing.segments]
        _check_versions(blocks)
        in_use = max((k for k, block in enumerate(blocks) if block.header or block.bad), default=-1) + 1
        used, prepared = blocks[:in_use], blocks[in_use:]
        cut_short = used.pop() if used and used[-1].header is None else None
        first = self._first_wanted(used)
        # 2. Their records, each segment against the header of the next. What is wrong with a segment is raised when
        # its turn comes, so that everything before it has been read.
        torn, dirty = None, False
        for k in range(first, len(used)):
            if k == first:
                self._begin(blocks, used, first)
            else:
                _check_follows(used[k], self._segments[-1])
            if k < len(used) - 1:
                yield from self._inner_segment(used[k], used[k + 1], _fault(blocks, used, k + 1))
            else:
                torn, dirty = yield from self._last_segment(used[k])
            if self._up_to is not None and self._segments[-1].last_txid >= self._up_to:
                return
        for k in range(len(used), len(blocks)):
            if (fault := _fault(blocks, used, k)) is not None:
                raise fault
        # 3. A header that was being written, and segments whose header never got to the disk.
        unsafe: tuple[Path, ...] = ()
        if cut_short is None:
            unsafe = self._unsafe(prepared)
        else:
            if torn is not None:
                raise LogDamaged(
                    segment=torn.segment,
                    offset=torn.offset,
                    found=torn.found,
                    allowed=f"a whole segment, since {cut_short.path.name} follows it",
                )
            torn = self._torn_header(cut_short)
        self._contents = LogContents(
            folder=self.folder,
            segments=tuple(self._segments),
            torn=torn,
            dirty_tail=dirty,
            prepared=tuple(block.path for block in prepared),
            unsafe_prepared=unsafe,
            temporary=listing.temporary,
            broken=listing.broken,
        )

    def _first_wanted(self, used: list[Block]) -> int:
        """Return the index of the segment that holds the start txid, or of the oldest."""
        starts = [k for k, block in enumerate(used) if block.header and block.header.first_txid <= self._start]
        return starts[-1] if starts else 0

    def _begin(self, blocks: list[Block], used: list[Block], first: int) -> None:
        """Check the segment that the walk begins with, and take its first txid."""
        if (fault := _fault(blocks, used, first)) is not None:
            raise fault
        _check_follows(used[first], None)
        self.first_txid = _header(used[first]).first_txid
        self.reached = Txid(self.first_txid - 1)

    def _inner_segment(self, block: Block, following: Block, fault: LogDamaged | None) -> Iterator[Piece]:
        """Yield the records of a segment that must end where the next header says; then raise that one's fault."""
        header = _header(block)
        view = self._read(block)
        end = header.segment_size if fault is not None else _header(following).previous_used
        scan = _scan(view, header, min(end, view.size))
        yield from self._pieces(block, header, scan)
        if fault is not None:
            raise fault
        if scan.position != end or scan.why != AT_END:
            raise _damaged(block, scan.position, WHY[scan.why], f"txid {scan.expected:,}, which was durable")
        if block.size < header.segment_size:
            raise _damaged(block, block.size, "the end of the file", f"a segment of {header.segment_size:,} bytes")
        self._note(block, header, scan)

    def _last_segment(self, block: Block) -> Generator[Piece, None, tuple[TornTail | None, bool]]:
        """Yield the records of the last segment; return its torn tail, and whether other bytes than zeros follow."""
        header = _header(block)
        view = self._read(block)
        scan = _scan(view, header, min(view.size, header.segment_size))
        yield from self._pieces(block, header, scan)
        # What proves damage may also be a record that a writer appended since we read the bytes before it: while
        # reading them again brings more records, it was that.
        while not self._is_enough(scan) and (proof := _proof(view, scan, header)) is not None:
            before = scan.position
            view = self._read(block)
            scan = _scan(view, header, min(view.size, header.segment_size), after=scan)
            yield from self._pieces(block, header, scan)
            if scan.position == before:
                raise _damaged(block, scan.position, WHY[scan.why], proof)
        is_short = block.size < header.segment_size
        if is_short and not (scan.is_sealed or self._is_enough(scan)):
            # Files get their whole size before their first record, so no crash made it shorter.
            found = f"the end of the file at byte {block.size:,}"
            raise _damaged(block, scan.position, found, f"a segment of {header.segment_size:,} bytes")
        self._note(block, header, scan)
        length = _nonzero_bytes(view, scan.position)
        if not is_short and (length == 0 or _is_old(view, scan, header)):
            return None, length > 0
        found = "the end of the file" if is_short and not length else WHY[scan.why]
        return (
            TornTail(segment=block.path, offset=scan.position, length=length, txid=scan.expected, found=found),
            length > 0,
        )

    def _is_enough(self, scan: RecordScan) -> bool:
        return self._up_to is not None and scan.expected > self._up_to

    def _torn_header(self, block: Block) -> TornTail:
        """Return the torn tail that begins with this segment's header, or raise what it is instead."""
        before = self._segments[-1] if self._segments else None
        bad = block.bad
        assert bad is not None  # `pieces` takes a block without header and without fault as prepared
        if block.size < HEADER_BLOCK and (before is not None or block.raw[: len(MAGIC)] == MAGIC[: block.size]):
            raise _damaged(block, block.size, "the end of the file", f"a header of {HEADER_BLOCK} bytes")
        if before is None and not all(byte in (0, whole) for byte, whole in zip(block.raw, MAGIC, strict=False)):
            raise NotALog(self.folder, found=f"{block.path.name} begins with {bad.found}")
        expected = SegmentHeader(
            log_id=before.header.log_id if before else block.raw[16:32].ljust(LOG_ID_BYTES, b"\0"),
            number=before.number + 1 if before else 1,
            segment_size=MIN_SEGMENT_SIZE,
            first_txid=Txid(before.last_txid + 1 if before else 1),
            previous_used=before.used if before else Offset(0),
            previous_chain=before.chain if before else 0,
            created_wall_ns=Nanoseconds(0),
        )
        view = self._read(block)
        if before is not None:
            log_id, txid = before.header.log_id, expected.first_txid
            start, end = min(HEADER_BLOCK, view.size), view.size & -ALIGN
            was_durable = proof_of_damage(view, start=start, end=end, expected=txid, seed=log_seed(log_id)) is not None
        else:
            was_durable = _frames_say_durable(view)
        if was_durable or not torn_header_fits(block.raw, expected):
            raise _damaged(block, bad.offset, bad.found, bad.allowed)
        return TornTail(
            segment=block.path,
            offset=Offset(0),
            length=_nonzero_bytes(view, 0),
            txid=expected.first_txid,
            found=bad.found,
            whole_segment=True,
        )

    def _unsafe(self, prepared: list[Block]) -> tuple[Path, ...]:
        """Return the prepared segments from the first one on that holds txids still to come.

        A crash can keep records and lose the header before them. Left there, they would decode again behind the
        records that are to be written over their beginning.
        """
        tail = self._segments[-1] if self._segments else None
        for k, block in enumerate(prepared):
            view = self._read(block)
            start, end = min(HEADER_BLOCK, view.size), view.size & -ALIGN
            if not _nonzero_bytes(view, start):
                continue
            if read_block(block.number, block.path).header is not None:  # a writer has taken it meanwhile
                return ()
            if tail is None:
                was_durable, unsafe = _frames_say_durable(view), True
            else:
                seed, expected = log_seed(tail.header.log_id), tail.last_txid + 1
                proof = proof_of_damage(view, start=start, end=end, expected=expected, seed=seed)
                was_durable = proof is not None
                unsafe = any(True for _ in later_records(view, start=start, end=end, expected=expected, seed=seed))
            if was_durable:
                raise _damaged(block, 0, "zeros", "a segment header: records behind it were durable")
            if unsafe:
                return tuple(later.path for later in prepared[k:])
        return ()

    def _pieces(self, block: Block, header: SegmentHeader, scan: RecordScan) -> Iterator[Piece]:
        for rows in scan.pieces():
            self.reached = Txid(int(rows["txid"][-1]))
            yield Piece(block.path, header, scan.view, rows)

    def _read(self, block: Block) -> npt.NDArray[np.uint8]:
        view = read_file(block.path, limit=MAX_SEGMENT_SIZE, from_disk=self._from_disk, into=self._memory)
        if self._memory is None or self._memory.size < view.size:
            self._memory = view
        return view

    def _note(self, block: Block, header: SegmentHeader, scan: RecordScan) -> None:
        self._segments.append(
            Segment(
                path=block.path,
                header=header,
                used=scan.position,
                last_txid=Txid(scan.expected - 1),
                chain=scan.chain,
                is_sealed=scan.is_sealed,
            )
        )


def _check_versions(blocks: list[Block]) -> None:
    """Raise UnsupportedVersion before anything else is said of a log that a later program wrote."""
    for block in blocks:
        if block.header is not None and block.header.version != VERSION:
            raise UnsupportedVersion(block.path, version=block.header.version, supported=VERSION)


def _fault(blocks: list[Block], used: list[Block], k: int) -> LogDamaged | None:
    """Return what is wrong with blocks[k] beside its neighbours, before its records are looked at; or None.

    used: those of `blocks` that have records, all in front. A number is missing before it, or its header does not
    decode or belongs elsewhere.
    """
    block = blocks[k]
    wanted = blocks[k - 1].number + 1 if k else block.number if used else 1
    if block.number != wanted:
        return LogDamaged(
            segment=block.path.with_name(segment_name(wanted)),
            offset=0,
            found="no such file",
            allowed=f"segment {wanted:,}, since {block.path.name} is there",
        )
    if k >= len(used):
        return None
    if block.bad is not None:
        return _damaged(block, block.bad.offset, block.bad.found, block.bad.allowed)
    header = block.header
    if header is None:
        return _damaged(block, 0, "zeros", f"a segment header, since {used[-1].path.name} is in use")
    if header.number != block.number:
        return _damaged(block, 32, f"segment number {header.number:,}", f"{block.number:,}, as in its name")
    log_id = next(other.header.log_id for other in used if other.header is not None)
    if header.log_id != log_id:
        return _damaged(block, 16, f"log id {header.log_id.hex()}", log_id.hex())
    before = blocks[k - 1].header if k else None
    if before is not None and not HEADER_BLOCK <= header.previous_used <= before.segment_size:
        return _damaged(block, 56, f"{header.previous_used:,} bytes used before", f"4,096 to {before.segment_size:,}")
    return None


def _check_follows(block: Block, before: Segment | None) -> None:
    """Raise LogDamaged where a header does not go on from the segment before; None: the walk begins here."""
    header = _header(block)
    if before is not None:
        txid, chain = before.last_txid + 1, before.chain
    elif header.number == 1:
        txid, chain = 1, 0
    else:
        return  # older segments are gone, or not asked for: nothing to compare with
    if header.first_txid != txid:
        raise _damaged(block, 48, f"first txid {header.first_txid:,}", f"{txid:,}")
    if header.previous_chain != chain:
        raise _damaged(block, 64, f"chain {header.previous_chain:08x}", f"{chain:08x} after the segment before")


def _header(block: Block) -> SegmentHeader:
    assert block.header is not None  # _check_headers has seen it
    return block.header


def _scan(
    view: npt.NDArray[np.uint8], header: SegmentHeader, end: int, *, after: RecordScan | None = None
) -> RecordScan:
    """Return a scan of a segment's records, or of those that follow an earlier scan of it."""
    return RecordScan(
        view,
        start=after.position if after else HEADER_BLOCK,
        end=end,
        expected=after.expected if after else header.first_txid,
        chain=after.chain if after else header.previous_chain,
        seed=log_seed(header.log_id),
    )


def _proof(view: npt.NDArray[np.uint8], scan: RecordScan, header: SegmentHeader) -> str | None:
    """Return what is allowed where the scan stopped, if that is damage; None: it is an end or a torn tail."""
    wanted = f"txid {scan.expected:,}"
    if scan.why in (OUT_OF_ORDER, BAD_KIND):
        return wanted
    if scan.position >= view.size:
        return None
    seed = log_seed(header.log_id)
    end = min(view.size, header.segment_size)
    proof = proof_of_damage(view, start=scan.position, end=end, expected=scan.expected, seed=seed)
    return None if proof is None else f"{wanted}, which was durable by the record at byte {proof:,}"


def _is_old(view: npt.NDArray[np.uint8], scan: RecordScan, header: SegmentHeader) -> bool:
    """Return whether what follows the records is from before the segment was recycled, as far as can be known.

    A record torn in recycled space looks the same; nobody was promised it, and its bytes are zeroed all the same.
    """
    if scan.why == STALE:
        return True
    end = min(view.size, header.segment_size)
    return is_recycled(view, start=scan.position, end=end, expected=scan.expected, seed=log_seed(header.log_id))


def _frames_say_durable(view: npt.NDArray[np.uint8]) -> bool:
    """Return whether segment 1, whose log id is not known, holds records that say txid 1 was durable.

    Without the id no checksum can be tested, so this follows the headers as they stand: 1, 2, 3, ...
    """
    at, txid = HEADER_BLOCK, 1
    while at + HEADER_SIZE <= view.size and txid <= _FRAMES_LOOKED_AT:
        _, length, found, kind, zeros, undurable = _FRAME.unpack_from(view.data, at)
        if found not in (txid, txid - 1) or kind not in (1, 2) or any(zeros):
            return False
        if found - undurable >= 1:
            return True
        at, txid = at + ((HEADER_SIZE + length + ALIGN - 1) & -ALIGN), found + 1
    return False


def _nonzero_bytes(view: npt.NDArray[np.uint8], start: int) -> Bytes:
    """Return how many bytes there are from `start` to the last one that is not zero."""
    end = view.size
    while end > start:  # from the end, in pieces: most of a segment's rest is zeros
        begin = max(start, end - (1 << 20))
        found = np.flatnonzero(view[begin:end])
        if found.size:
            return Bytes(begin + int(found[-1]) + 1 - start)
        end = begin
    return Bytes(0)


def _damaged(block: Block, offset: int, found: str, allowed: str) -> LogDamaged:
    return LogDamaged(segment=block.path, offset=offset, found=found, allowed=allowed)
