"""Every byte-prefix and every single-bit flip of a small log: a correct prefix or a report, never a wrong record.

The small log has three segments and nine records. `must_keep` says how much of it recovery may not lose in silence:
segments before the last one, and in the last one every txid that an untouched record says was durable.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.wal.errors import LogDamaged, NotALog, UnsupportedVersion
from engine.wal.reading import read_records
from engine.wal.record import RecordKind
from engine.wal.recovery import prepare_for_writing, recover
from engine.wal.repair import repair_log
from engine.wal.segment import segment_name
from tests.wal.build_log import SEGMENT_SIZE, LogBuilder, small_log

HEADER_FIELDS = 84
SEAL_SIZE = 24
REPORTS = (LogDamaged, UnsupportedVersion, NotALog)


@pytest.fixture(params=["unsealed", "sealed"])
def log(request: pytest.FixtureRequest) -> LogBuilder:
    return small_log(sealed=request.param == "sealed")


def must_keep(log: LogBuilder, flipped: int) -> int:
    """Return the last txid that has to be there, or be reported, with byte `flipped` of the last segment changed."""
    kept = max(txid for txid, (number, _, _) in log.places.items() if number < log.number)
    for txid, (number, offset, undurable) in log.places.items():
        size = 24 + len(log.payloads[txid])
        if number == log.number and not offset <= flipped < offset + size:
            kept = max(kept, txid - undurable)
    return log.appended if is_sealed(log) and flipped < len(log.last) - SEAL_SIZE else kept


def is_sealed(log: LogBuilder) -> bool:
    """Return whether the last bytes of the log are a SEAL's."""
    return log.last[-SEAL_SIZE + 16] == RecordKind.SEAL and log.durable == log.appended


def read(folder: Path) -> list[tuple[int, bytes]] | None:
    """Return the records, or None where recovery reports that it cannot."""
    try:
        recover(folder, from_disk=False)
        return list(read_records(folder))
    except REPORTS:
        return None


def before_damage(folder: Path) -> list[tuple[int, bytes]]:
    """Return the records that are read before damage is met."""
    found = []
    with contextlib.suppress(LogDamaged):
        for record in read_records(folder):
            found.append(record)
    return found


def flips_that_matter(log: LogBuilder) -> Iterator[tuple[int, int]]:
    """Yield (segment, bit) for all header fields and all records with their padding."""
    for number, content in log.segments.items():
        for byte in (*range(HEADER_FIELDS), *range(4096, len(content))):
            for k in range(8):
                yield number, 8 * byte + k


def flips_of_zeros(log: LogBuilder) -> Iterator[tuple[int, int]]:
    """Yield (segment, bit) for the rest: each fifth byte, each time another bit."""
    for number, content in log.segments.items():
        for byte in (*range(HEADER_FIELDS, 4096, 5), *range(len(content), SEGMENT_SIZE, 5)):
            yield number, 8 * byte + byte // 5 % 8


def test_no_flipped_bit_makes_a_wrong_record(log, tmp_path):
    folder = log.write(tmp_path / "log")
    whole = log.records()
    lost_something = 0
    for number, bit in (*flips_that_matter(log), *flips_of_zeros(log)):
        byte, mask = bit // 8, 1 << bit % 8
        with (folder / segment_name(number)).open("r+b", buffering=0) as file:
            file.seek(byte)
            before = file.read(1)
            file.seek(byte)
            file.write(bytes([before[0] ^ mask]))

            found = read(folder)

            if found is not None:
                assert found == whole[: len(found)], (number, bit)
                keep = must_keep(log, byte) if number == log.number else log.appended
                assert len(found) >= keep, (number, bit)
                lost_something += len(found) < len(whole)
            file.seek(byte)
            file.write(before)

    # Its last two records, of which nothing says that they were durable; a SEAL says it of all of them.
    assert bool(lost_something) is not is_sealed(log)
    assert read(folder) == whole


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_no_byte_prefix_makes_a_wrong_record(log, cut, tmp_path):
    """The log up to a byte of segment `cut`, later segments missing: damage, unless the last record is a seal."""
    folder = log.write(tmp_path / "log")
    whole = log.records()
    for number in range(cut + 1, log.number + 1):
        (folder / segment_name(number)).unlink()
    path = folder / segment_name(cut)
    used = len(log.segments[cut])
    zeros = [*range(SEGMENT_SIZE - 1, used, -97), *range(4095, HEADER_FIELDS, -97)]  # cuts there are all alike
    for size in sorted({*zeros, *range(4096, used + 1), *range(HEADER_FIELDS + 1)}, reverse=True):
        os.truncate(path, size)

        found = read(folder)

        assert found == (whole if cut == log.number and is_sealed(log) and size >= used else None), size
        readable = before_damage(folder)
        assert readable == whole[: len(readable)], size


def test_a_prefix_in_the_middle_is_damage(log, tmp_path):
    folder = log.write(tmp_path / "log")
    path = folder / segment_name(2)
    everything = path.read_bytes()
    for size in range(0, SEGMENT_SIZE, 7):
        path.write_bytes(everything[:size])

        with pytest.raises(LogDamaged, match=r"00000002.wal: damaged at byte "):
            recover(folder, from_disk=False)


def test_after_each_cut_the_log_is_salvaged_to_what_was_before_it(tmp_path):
    log = small_log()
    for size in range(4096, len(log.last) + 1, 3):
        folder = log.write(tmp_path / f"log-{size}")
        with (folder / segment_name(3)).open("r+b") as file:
            file.truncate(size)
        ends = [offset + 24 + len(log.payloads[t]) for t, (number, offset, _) in log.places.items() if number == 3]

        kept = repair_log(folder, salvage=True).contents

        again = recover(folder, from_disk=False)
        assert (again.torn, again.dirty_tail, again.last_txid) == (None, False, kept.last_txid)
        assert kept.last_txid == log.appended - len(ends) + sum(end <= size for end in ends)


@given(
    sealed=st.booleans(),
    patches=st.lists(
        st.tuples(
            st.integers(1, 3),
            st.integers(0, 4300) | st.integers(0, SEGMENT_SIZE - 1),
            st.binary(min_size=1, max_size=64) | st.integers(1, 4200).map(bytes),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_no_overwritten_bytes_make_a_wrong_record(sealed, patches):
    log = small_log(sealed=sealed)
    with tempfile.TemporaryDirectory() as name:
        folder = log.write(Path(name) / "log")
        for number, offset, content in patches:
            with (folder / segment_name(number)).open("r+b") as file:
                file.seek(offset)
                file.write(content[: SEGMENT_SIZE - offset])

        found = read(folder)

        if found is not None:
            assert found == log.records()[: len(found)]
            assert prepare_for_writing(recover(folder, from_disk=False)).last_txid == len(found)
            assert read(folder) == found
