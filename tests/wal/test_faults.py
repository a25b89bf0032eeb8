"""Faults at each write and sync, under every model: what was acked is there after any crash, and nothing is acked past
the first error."""

from __future__ import annotations

import errno
import shutil
import threading
from itertools import count
from pathlib import Path

import pytest

from engine.errors import FileTrouble
from engine.storage.faults import Fault, FaultTable, Site
from engine.units import Bytes, Nanoseconds
from engine.wal import preparer
from engine.wal.errors import LogLocked, LogPoisoned
from engine.wal.log import Log
from engine.wal.models import MODEL_NAMES
from engine.wal.recovery import recover
from tests.fakes.fake_clock import FakeClock
from tests.waiting import run_threads, wait_for
from tests.wal.gate import DEVICE, Gate
from tests.wal.logs import (
    commit_from_threads,
    copy_after_crash,
    no_leaked_descriptors,
    open_log,
    payload_of,
    records_of,
)

TINY = 8192
PIECES_OF_A_SEGMENT = 1  # Site.PREALLOCATE calls that zero one, and one more for the first segment's header


@pytest.fixture(params=MODEL_NAMES)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def commit_until_it_fails(log: Log, thread: int = 0) -> tuple[dict[int, bytes], LogPoisoned]:
    """Commit until the log stops; return what was acked, and the error."""
    acked = {}
    for sequence in count():
        payload = payload_of(thread, sequence, 300)
        try:
            acked[log.commit(payload)] = payload
        except LogPoisoned as error:
            return acked, error
        assert sequence < 500, "the planned fault never came"
    raise AssertionError


def assert_keeps(folder: Path, acked: dict[int, bytes]) -> int:
    """Assert that a log holds what was acked, and beyond it no gap; return how many records it holds."""
    records = records_of(folder)
    assert [txid for txid, _ in records] == list(range(1, len(records) + 1))
    found = dict(records)
    missing = {txid for txid, payload in acked.items() if found.get(txid) != payload}
    assert not missing, f"acked and gone, or other bytes: {sorted(missing)}"
    shutil.rmtree(folder)
    return len(records)


# ---- What a log lives through.


@pytest.mark.parametrize("short", [7, 512, 4095])
def test_short_writes_are_finished(model, short, disk_path):
    faults = FaultTable(Fault(Site.WRITE, 1, every=True, short_bytes=Bytes(short)))
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        acked = commit_from_threads(log, 4, 5, size=700)

    assert records_of(disk_path / "log") == sorted(acked.items())


def test_interrupted_writes_go_on(model, disk_path):
    faults = FaultTable(*[Fault(Site.WRITE, nth, code=errno.EINTR) for nth in (1, 2, 5, 6, 9)])
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        acked = commit_from_threads(log, 3, 8)

    assert records_of(disk_path / "log") == sorted(acked.items())


@pytest.mark.parametrize("site", [Site.WRITE, Site.SYNC], ids=["write", "sync"])
def test_a_stall_delays_commits_and_fails_none(model, site, disk_path):
    faults = FaultTable(Fault(site, 2, stall_ns=Nanoseconds(40_000_000)))
    with open_log(disk_path / "log", model=model, faults=faults, slow_sync_ns=40_000_000) as log:
        acked = commit_from_threads(log, 4, 6)

        if model != "pipeline:5" or site is Site.WRITE:  # there another sync overtakes the stalled one
            assert log.meter_totals()["commit_max_ns"] >= 40_000_000
        wait_for(lambda: site is Site.WRITE or log.meter_totals()["slow_syncs"] >= 1, what="the slow sync to count")

    assert records_of(disk_path / "log") == sorted(acked.items())


# ---- The first error is the last thing a log does.

FATAL = [
    pytest.param(Site.WRITE, errno.EIO, "fdatasync", id="eio-at-write"),
    pytest.param(Site.WRITE, errno.ENOSPC, "fdatasync", id="enospc-at-write"),
    pytest.param(Site.SYNC, errno.EIO, "fdatasync", id="eio-at-fdatasync"),
    pytest.param(Site.SYNC, errno.EIO, "fsync", id="eio-at-fsync"),
    pytest.param(Site.SYNC, errno.EINTR, "fdatasync", id="eintr-at-sync"),
    pytest.param(Site.WRITE, errno.EIO, "dsync", id="eio-at-durable-write"),
    pytest.param(Site.WRITE, errno.EDQUOT, "none", id="edquot-at-write-unsynced"),
]


@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize(("site", "code", "sync"), FATAL)
def test_the_first_error_stops_one_committer(model, site, code, sync, nth, disk_path):
    faults = FaultTable(Fault(site, nth, code=code))
    with no_leaked_descriptors():
        log = open_log(disk_path / "log", model=model, sync=sync, faults=faults)

        acked, error = commit_until_it_fails(log)

        assert error.errno == code
        assert sorted(acked) == list(range(1, nth))
        with pytest.raises(LogPoisoned) as again:
            log.commit(b"after")
        assert again.value.errno == code
        assert log.poison is not None
        assert log.poison.errno == code
        assert log.durable_txid == nth - 1
        before = (disk_path / "log" / "00000001.wal").read_bytes()
        log.close()

    assert (disk_path / "log" / "00000001.wal").read_bytes() == before, "a stopped log is only let go"
    assert not recover(disk_path / "log").is_sealed
    if sync != "none":
        for seed in (None, 1, 2, 3):
            assert_keeps(copy_after_crash(disk_path, faults, seed), acked)


@pytest.mark.parametrize("nth", [3, 8])
@pytest.mark.parametrize(("site", "code", "sync"), FATAL[:3])
def test_the_first_error_reaches_every_waiter(model, site, code, sync, nth, disk_path):
    faults = FaultTable(Fault(site, nth, code=code))
    with open_log(disk_path / "log", model=model, sync=sync, segment_size=TINY, faults=faults) as log:
        outcomes = run_threads(*[lambda k=k: commit_until_it_fails(log, k) for k in range(8)], deadline=60)
        durable = log.durable_txid

    acked = {txid: payload for found, _ in outcomes for txid, payload in found.items()}
    assert {error.errno for _, error in outcomes} == {code}
    assert sorted(acked) == list(range(1, durable + 1)), "what was durable is acked, and nothing else"
    for seed in (None, *range(6)):
        assert_keeps(copy_after_crash(disk_path, faults, seed), acked)


@pytest.mark.parametrize("site", [Site.WRITE, Site.SYNC], ids=["write", "sync"])
def test_an_error_while_the_log_rolls_stops_it(model, site, disk_path):
    """With a roll at each record, the second commit syncs the old segment, writes a header, then its record."""
    for nth in (2, 3, 4, 5):
        folder = disk_path / str(nth)
        folder.mkdir()
        faults = FaultTable(Fault(site, nth, code=errno.EIO))
        with open_log(folder / "log", model=model, roll_records=1, faults=faults) as log:
            acked, error = commit_until_it_fails(log)

        assert error.errno == errno.EIO
        assert len(acked) < nth
        for seed in (None, 1, 2):
            assert_keeps(copy_after_crash(folder, faults, seed), acked)


def test_a_stopped_log_opens_again_with_what_was_acked(model, disk_path):
    faults = FaultTable(Fault(Site.SYNC, 3, code=errno.EIO))
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        acked, _ = commit_until_it_fails(log)
    shutil.move(copy_after_crash(disk_path, faults, 4), disk_path / "again")

    with open_log(disk_path / "again", model=model) as log:
        first = log.durable_txid
        assert first >= 2
        assert log.commit(b"goes on") == first + 1

    assert dict(records_of(disk_path / "again")).items() >= acked.items()


def test_the_first_error_stays_the_one_that_is_told(disk_path):
    log = open_log(disk_path / "log", model="handler", device=DEVICE)
    with Gate(log) as gate:
        threads = [threading.Thread(target=commit_until_it_fails, args=(log, k), name=f"c-{k}") for k in range(2)]
        threads[0].start()
        gate.await_waiting(1)
        log.arm(Fault(Site.SYNC, 1, code=errno.EIO, every=True), Fault(Site.WRITE, 1, code=errno.ENOSPC, every=True))
        threads[1].start()  # its write fails first, then the sync that waits at the gate
        wait_for(lambda: log.poison is not None)
    for thread in threads:
        thread.join(20)

    assert log.poison is not None
    assert log.poison.errno == errno.ENOSPC
    log.close()


# ---- No space for the next segment.


def test_a_log_that_cannot_be_made_leaves_a_folder_that_can_be_used(disk_path):
    for nth in (1, 2):
        faults = FaultTable(Fault(Site.PREALLOCATE, nth, code=errno.ENOSPC))
        with no_leaked_descriptors(), pytest.raises(FileTrouble, match=r"00000001.wal.*: .*No space left on device"):
            open_log(disk_path / "log", faults=faults)

        assert [path.name for path in (disk_path / "log").iterdir()] == ["LOCK"]

    with open_log(disk_path / "log") as log:
        assert log.commit(b"x") == 1


def test_a_log_without_room_for_its_next_segment_commits_until_it_needs_it(model, disk_path):
    nth = PIECES_OF_A_SEGMENT + 2
    faults = FaultTable(Fault(Site.PREALLOCATE, nth, code=errno.ENOSPC, every=True))
    said: list[tuple[str, str]] = []
    with open_log(
        disk_path / "log", model=model, segment_size=TINY, faults=faults, report=lambda *event: said.append(event)
    ) as log:
        wait_for(lambda: said, what="the trouble to be reported")
        acked, error = commit_until_it_fails(log)

    assert error.errno == errno.ENOSPC
    assert len(acked) == 4096 // 328  # what the first segment holds
    assert len(said) == 1
    assert said[0][0] == "error"
    assert "cannot prepare the next segment: " in said[0][1]
    assert "No space left on device" in said[0][1]
    for seed in (None, 1):
        assert_keeps(copy_after_crash(disk_path, faults, seed), acked)
    assert not list((disk_path / "log").glob("*.tmp"))


def test_space_that_comes_back_before_a_roll_is_used(disk_path):
    faults = FaultTable(Fault(Site.PREALLOCATE, PIECES_OF_A_SEGMENT + 2, code=errno.ENOSPC))
    clock = FakeClock()
    said: list[tuple[str, str]] = []
    with open_log(
        disk_path / "log", segment_size=TINY, faults=faults, clock=clock, report=lambda *event: said.append(event)
    ) as log:
        wait_for(lambda: clock.waiters == 1, what="the preparer to wait before it tries again")
        assert log.watermarks()["prepare_error"] == errno.ENOSPC
        clock.advance(1)
        wait_for(lambda: log.watermarks()["next_segment"], what="the second attempt")

        for k in range(30):
            log.commit(payload_of(0, k, 300))

    assert len(records_of(disk_path / "log")) == 30
    assert len(said) == 1


def test_closing_gives_up_zeroing_the_next_segment(disk_path):
    """A large segment takes longer to zero than a person waits; what is half made is not left behind."""
    begun, go_on = threading.Event(), threading.Event()

    class SlowTable(FaultTable):
        def preallocate_write(self, descriptor: int, content: bytes, offset: int) -> int:
            if offset:
                begun.set()
                go_on.wait(20)
            return super().preallocate_write(descriptor, content, offset)

    faults = SlowTable()
    go_on.set()
    log = open_log(disk_path / "log", segment_size=4 << 20, faults=faults)
    wait_for(lambda: log.watermarks()["next_segment"])
    go_on.clear()
    begun.clear()
    log.commit(b"x" * 3_000_000)
    log.commit(b"y" * 3_000_000)  # takes the prepared segment: the next one is begun
    assert begun.wait(20)
    written = faults._preallocations
    closing = threading.Thread(target=log.close, name="closing")
    closing.start()
    wait_for(log._preparer._stop.is_set)
    go_on.set()
    closing.join(20)

    assert not closing.is_alive()
    assert faults._preallocations <= written + 1
    assert sorted(path.name for path in (disk_path / "log").iterdir()) == ["00000001.wal", "00000002.wal", "LOCK"]


def test_a_preparer_that_does_not_end_keeps_the_log_locked(disk_path, monkeypatch):
    """What it is about to rename into the folder would replace a segment of the next writer."""
    monkeypatch.setattr(preparer, "_JOIN_SECONDS", 0.05)
    begun, go_on = threading.Event(), threading.Event()

    class HangingTable(FaultTable):
        def preallocate_write(self, descriptor: int, content: bytes, offset: int) -> int:
            if threading.current_thread().name == "wal-preparer":
                begun.set()
                go_on.wait(20)
            return super().preallocate_write(descriptor, content, offset)

    log = open_log(disk_path / "log", faults=HangingTable())
    log.commit(b"kept")
    assert begun.wait(20)

    log.close()  # bounded

    with pytest.raises(LogLocked):
        open_log(disk_path / "log")
    go_on.set()
    log._preparer._thread.join(20)
    log._close_descriptors()
    log._lock.release()
    assert records_of(disk_path / "log") == [(1, b"kept")]


# ---- The power is cut.


def test_every_crash_leaves_every_acked_record(model, disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, segment_size=TINY, faults=faults) as log:
        acked = commit_from_threads(log, 5, 12, size=300)
        for k in range(6):
            log.commit(payload_of(9, k, 600), durable=False)
        if model.startswith("pipeline"):
            wait_for(lambda: log.watermarks()["written"] == 66)
        kept = {assert_keeps(copy_after_crash(disk_path, faults, seed), acked) for seed in (None, *range(40))}

    assert min(kept) == 60 or model.startswith("pipeline")


def test_a_crash_in_the_middle_of_a_load_leaves_every_acked_record(model, disk_path):
    """What was acked when the crash began is there, whatever writes and syncs are in progress."""
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, segment_size=TINY, faults=faults) as log:
        acked: dict[int, bytes] = {}
        crashes = 12
        allowed = threading.Semaphore(0)

        def load(thread: int) -> None:
            for sequence in range(3 * crashes):
                assert allowed.acquire(timeout=20)
                payload = payload_of(thread, sequence, 200)
                acked[log.commit(payload)] = payload

        def crash() -> None:
            for seed in range(crashes):
                allowed.release(15)  # commits that are under way while the copy is made
                before = dict(acked)
                assert_keeps(copy_after_crash(disk_path, faults, seed if seed % 3 else None), before)

        run_threads(*[lambda k=k: load(k) for k in range(5)], crash, deadline=60)


def test_recycled_segments_show_nothing_of_their_past_after_a_crash(model, disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, segment_size=TINY, faults=faults) as log:
        payloads = {}
        for k in range(1, 41):
            payloads[k] = payload_of(3, k, 700)
            log.commit(payloads[k])
            log.checkpoint(max(k - 3, 0))
            if k % 5 == 0:
                wait_for(lambda: len(log.closed_segments()) <= 3)
        assert faults._recycled, "nothing was recycled: nothing is tested"
        log.commit(b"un-synced", durable=False)

        for seed in (None, *range(20)):
            left = copy_after_crash(disk_path, faults, seed)
            records = records_of(left)
            assert [txid for txid, _ in records] == list(range(records[0][0], records[-1][0] + 1))
            assert all(payloads.get(txid, b"un-synced") == payload for txid, payload in records)
            assert records[-1][0] >= 40
            assert records[0][0] <= 38
            shutil.rmtree(left)


def test_two_crashes_in_a_row_lose_nothing(model, disk_path):
    acked: dict[int, bytes] = {}
    folder = disk_path / "0"
    for life in range(4):
        folder = disk_path / str(life)
        folder.mkdir(exist_ok=True)
        faults = FaultTable()  # its journal begins with files whose cut tail is zero
        with open_log(folder / "log", model=model, segment_size=TINY, faults=faults) as log:
            log.commit(b"torn, perhaps", durable=False)
            for k in range(9):
                payload = payload_of(life, k, 400)
                acked[log.commit(payload)] = payload
            log.commit(b"x" * 900, durable=False)
            log.commit(b"y" * 900, durable=False)
            left = copy_after_crash(folder, faults, life)
        (disk_path / str(life + 1)).mkdir()
        left.rename(disk_path / str(life + 1) / "log")

    records = dict(records_of(disk_path / "4" / "log"))
    assert records.items() >= acked.items()
    assert sorted(records) == list(range(1, len(records) + 1))
