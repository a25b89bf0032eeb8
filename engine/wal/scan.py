"""Scanning a segment: its records in order, why they end, and whether what follows proves that they should not.

Kernels do the reading, some thousand records or a million bytes a call, so that progress and cancel stay in
Python. Nothing here knows of files: a segment is a uint8 array.

Where records end at X in the last segment, with txid T expected there, it is either the end of the log (what
follows was never durable) or damage (T was durable, and its bytes are gone). `proof_of_damage` decides it: it
looks at each multiple of 8 behind X for a record of this log that was appended when T was durable already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numba import types

from engine.native.crc32c import load_u64
from engine.native.kernel import kernel, type_of_record, u8_array
from engine.units import Offset, Txid
from engine.wal.record import (
    ALIGN,
    BAD_CRC,
    BAD_KIND,
    BAD_LENGTH,
    DATA,
    HEADER_SIZE,
    NO_ROOM,
    SEAL,
    VALID,
    ZERO,
    read_record,
    record_bytes,
)
from engine.wal.segment import chain_after

RECORDS_A_CALL = 4096
POSITIONS_A_CALL = 1 << 20

# Why a scan stopped, besides the codes of read_record.
MORE = 100  # the rows are full: call again
AT_END = 101
STALE = 102  # a whole record of this log with a txid already passed: space that is used again
OUT_OF_ORDER = 103  # a whole record with a txid that cannot follow

WHY = {
    AT_END: "the end of the segment",
    NO_ROOM: "the end of the segment",
    ZERO: "zeros",
    STALE: "a record from before the segment was recycled",
    BAD_LENGTH: "a record that would pass the end",
    BAD_CRC: "bytes whose checksum does not match",
    BAD_KIND: "a record of an unknown kind",
    OUT_OF_ORDER: "a record with another txid",
}

ROW_DTYPE = np.dtype(
    [("offset", "i8"), ("txid", "i8"), ("length", "i8"), ("undurable", "i8"), ("crc", "i8"), ("kind", "i8")], align=True
)
_ROWS = types.Array(type_of_record(ROW_DTYPE), 1, "C")

_SCAN_DTYPE = np.dtype(
    [
        ("position", "i8"),
        ("end", "i8"),  # records must end here or before
        ("expected", "i8"),  # txid of the next DATA record
        ("chain", "i8"),
        ("seed", "i8"),
        ("why", "i8"),
        ("sealed", "i8"),  # 1: the last record was a SEAL
    ],
    align=True,
)
_SCAN = type_of_record(_SCAN_DTYPE)

_SEARCH_DTYPE = np.dtype(
    [
        ("position", "i8"),
        ("start", "i8"),
        ("end", "i8"),
        ("expected", "i8"),
        ("seed", "i8"),
        ("wanted", "i8"),  # _PROOF, _LATER or _OLDER
        ("budget", "i8"),  # bytes that may still be checksummed
        ("found", "i8"),  # offset, or -1
        ("found_txid", "i8"),
        ("found_bytes", "i8"),
    ],
    align=True,
)
_SEARCH = type_of_record(_SEARCH_DTYPE)
_SEARCHING, _FOUND, _NOTHING, _TOO_MANY = 0, 1, 2, 3
_PROOF, _LATER, _OLDER = 0, 1, 2  # records that say `expected` was durable; from it on; from before it


class RecordScan:
    """The records of view[start:end], from txid `expected` on.

    After `pieces` is exhausted, `position`, `expected` and `chain` say where and with what the records ended,
    `why` says what stands there, a key of WHY.
    """

    def __init__(
        self, view: npt.NDArray[np.uint8], *, start: int, end: int, expected: int, chain: int, seed: int
    ) -> None:
        if start < 0 or end > view.size:
            raise ValueError(f"scan of {start} to {end} in {view.size} bytes")
        self.view = view
        self._scan = np.zeros(1, _SCAN_DTYPE)
        for name, value in (("position", start), ("end", end), ("expected", expected), ("chain", chain)):
            self._scan[name] = value
        self._scan["seed"] = seed

    def pieces(self, records: int = RECORDS_A_CALL) -> Iterator[npt.NDArray[np.void]]:
        """Yield arrays of ROW_DTYPE, at most `records` rows each, in file order; SEALs among them."""
        while True:
            rows = np.zeros(records, ROW_DTYPE)
            count = int(scan_records(self.view, self._scan[0], rows))
            if count:
                yield rows[:count]
            if self.why != MORE:
                return

    @property
    def position(self) -> Offset:
        """Return where the next record would begin."""
        return Offset(int(self._scan["position"][0]))

    @property
    def expected(self) -> Txid:
        """Return the txid the next DATA record must have."""
        return Txid(int(self._scan["expected"][0]))

    @property
    def chain(self) -> int:
        """Return the chain after the last DATA record."""
        return int(self._scan["chain"][0])

    @property
    def why(self) -> int:
        """Return why the scan stopped."""
        return int(self._scan["why"][0])

    @property
    def is_sealed(self) -> bool:
        """Return whether the last record read is a SEAL."""
        return bool(self._scan["sealed"][0])


def proof_of_damage(view: npt.NDArray[np.uint8], *, start: int, end: int, expected: int, seed: int) -> Offset | None:
    """Return the offset of a record in view[start:end] that was appended when txid `expected` was durable, or None.

    start: where that txid should stand, a multiple of 8. Bytes made to look like millions of records cost a bounded
    time and count as proof: what cannot be told apart from damage is not cut.
    """
    search = _make_search(start, end, expected, seed, _PROOF)
    status = _run(view, search)
    return None if status == _NOTHING else Offset(int(search["found"][0]))


def later_records(
    view: npt.NDArray[np.uint8], *, start: int, end: int, expected: int, seed: int
) -> Iterator[tuple[Offset, Txid]]:
    """Yield (offset, txid) of the records in view[start:end], at any multiple of 8, from txid `expected` on."""
    search = _make_search(start, end, expected, seed, _LATER)
    while _run(view, search) == _FOUND:
        yield Offset(int(search["found"][0])), Txid(int(search["found_txid"][0]))
        search["position"] = search["found"] + search["found_bytes"]


def is_recycled(view: npt.NDArray[np.uint8], *, start: int, end: int, expected: int, seed: int) -> bool:
    """Return whether view[start:end] holds a record from before `expected`: space that was written before."""
    return _run(view, _make_search(start, end, expected, seed, _OLDER)) == _FOUND


@kernel(types.int64(u8_array, _SCAN, _ROWS))
def scan_records(view, scan, rows):  # type: ignore[no-untyped-def]
    """Fill `rows` with the records from scan.position on; return how many, with scan.why set.

    view: uint8[n]; 0 <= scan.position, scan.end <= n, which the caller has checked. A record whose padding alone is
    cut off counts; then scan.position ends up behind scan.end.
    """
    count = np.int64(0)
    scan.why = MORE
    while count < rows.size:
        at = scan.position
        if at >= scan.end:
            scan.why = AT_END
            break
        code, length, txid, kind, undurable, crc = read_record(view, at, scan.end, scan.seed)
        if code != VALID:
            scan.why = code
            break
        wanted = scan.expected - (kind == SEAL)
        if txid != wanted:
            scan.why = STALE if 0 <= txid < wanted else OUT_OF_ORDER
            break
        row = rows[count]
        row.offset, row.txid, row.length = at, txid, length
        row.undurable, row.crc, row.kind = undurable, crc, kind
        count += 1
        scan.position = at + record_bytes(length)
        scan.sealed = kind == SEAL
        if kind == DATA:
            scan.expected += 1
            scan.chain = chain_after(scan.chain, crc)
    return count


@kernel(types.int64(u8_array, _SEARCH, types.int64))
def search_records(view, search, positions):  # type: ignore[no-untyped-def]
    """Look at up to `positions` multiples of 8 for a record; return _SEARCHING, _FOUND, _NOTHING or _TOO_MANY.

    view: uint8[n]; 0 <= search.start <= search.position, search.end <= n, which the caller has checked. A txid can
    have advanced by one for each HEADER_SIZE bytes at most, which keeps checksums of chance bytes rare.
    """
    for _ in range(positions):
        at = search.position
        if search.end - at < HEADER_SIZE:
            return np.int64(_NOTHING)
        search.position = at + ALIGN
        last = load_u64(view, at + 16)
        if (last & np.uint64(0xFFFFFF00)) != 0 or (last & np.uint64(0xFF)) not in (DATA, SEAL):
            continue
        txid, undurable = np.int64(load_u64(view, at + 8)), np.int64(last >> np.uint64(32))
        if search.wanted == _OLDER:
            if not 0 <= txid < search.expected:
                continue
        elif txid < search.expected or txid - search.expected > (at - search.start) // HEADER_SIZE:
            continue
        if search.wanted == _PROOF and txid - undurable < search.expected:
            continue
        code, length, _txid, _kind, _undurable, _crc = read_record(view, at, search.end, search.seed)
        search.found = at
        if code == VALID:
            search.found_txid, search.found_bytes = txid, record_bytes(length)
            return np.int64(_FOUND)
        search.budget -= length + HEADER_SIZE if code != BAD_LENGTH else HEADER_SIZE
        if search.budget < 0:
            return np.int64(_TOO_MANY)
    return np.int64(_SEARCHING)


def _make_search(start: int, end: int, expected: int, seed: int, wanted: int) -> npt.NDArray[np.void]:
    search = np.zeros(1, _SEARCH_DTYPE)
    search["position"] = search["start"] = start
    search["end"], search["expected"], search["seed"], search["wanted"] = end, expected, seed, wanted
    search["budget"] = 16 * (end - start) + (64 << 20)
    search["found"] = -1
    return search


def _run(view: npt.NDArray[np.uint8], search: npt.NDArray[np.void]) -> int:
    if search["start"][0] < 0 or search["end"][0] > view.size:
        raise ValueError(f"search of {search['start'][0]} to {search['end'][0]} in {view.size} bytes")
    status = _SEARCHING
    while status == _SEARCHING:
        status = int(search_records(view, search[0], POSITIONS_A_CALL))
    return status
