"""Reading and verifying a log while a writer appends, rolls and recycles."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.wal.log import Log
from engine.wal.reading import read_records
from engine.wal.recovery import recover
from engine.wal.verify import verify_log
from tests.waiting import wait_for


@pytest.fixture
def busy_log(disk_path: Path) -> Iterator[Log]:
    """A log that one thread commits numbered records to, in segments of 8 KiB, until the test ends."""
    log = Log.open(disk_path / "log", segment_size=8192)
    stop = threading.Event()

    def write() -> None:
        number = log.durable_txid
        while not stop.is_set():
            number += 1
            assert log.commit(b"%d" % number) == number

    writer = threading.Thread(target=write, name="writer")
    writer.start()
    yield log
    stop.set()
    writer.join(20)
    log.close()


def test_a_reader_sees_every_durable_record_and_none_twice(busy_log):
    seen: list[tuple[int, bytes]] = []
    while len(seen) < 2000:
        durable = busy_log.durable_txid
        seen += read_records(busy_log.folder, start_txid=len(seen) + 1, up_to=durable)
        assert len(seen) == durable

    assert seen == [(txid, b"%d" % txid) for txid in range(1, len(seen) + 1)]


def test_a_log_being_written_is_never_called_damaged(busy_log):
    reached = 0
    for _ in range(50):
        verdict = verify_log(busy_log.folder)
        assert verdict.is_whole, verdict.to_text()
        assert verdict.in_use
        assert verdict.last_txid >= reached
        reached = verdict.last_txid
    wait_for(lambda: verify_log(busy_log.folder).last_txid > reached, what="more records")


def test_verifying_does_not_mind_segments_that_are_recycled_under_it(busy_log):
    def first_txid_left() -> int:
        busy_log.checkpoint(busy_log.durable_txid)
        verdict = verify_log(busy_log.folder)
        assert verdict.is_whole, verdict.to_text()
        return verdict.first_txid

    wait_for(lambda: first_txid_left() > 1000, what="several segments to go")


def test_a_closed_log_is_recovered_whole_over_recycled_segments(disk_path):
    payloads = [b"%d" % number * (number % 9) for number in range(1, 1200)]
    with Log.open(disk_path / "log", segment_size=8192) as log:
        for payload in payloads:
            log.checkpoint(log.commit(payload))

    contents = recover(disk_path / "log")
    kept = list(read_records(disk_path / "log"))

    assert contents.is_sealed
    assert contents.torn is None
    assert contents.last_txid == len(payloads)
    assert kept == [(txid, payloads[txid - 1]) for txid in range(contents.first_txid, len(payloads) + 1)]


def test_reading_does_not_mind_segments_below_its_start_that_are_recycled_under_it(busy_log):
    for _ in range(60):
        durable = busy_log.durable_txid
        start = max(durable - 20, 1)
        busy_log.checkpoint(start - 1)

        found = list(read_records(busy_log.folder, start_txid=start, up_to=durable))

        assert found == [(txid, b"%d" % txid) for txid in range(start, durable + 1)]
