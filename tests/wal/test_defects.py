"""The defects of HBase's log, by JIRA id: each was real once, none may exist here.

The list, with where each is visible in the source of the time, is that of HBASE-8755 and its successors.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import numpy as np
import pytest

from engine.native.kernel import inner
from engine.native.locks import lock, unlock
from engine.storage.faults import Fault, FaultTable, Site
from engine.units import Nanoseconds
from engine.wal.errors import LogPoisoned
from engine.wal.log import Log
from engine.wal.models import MODEL_NAMES
from engine.wal.pipeline import _choose_syncer
from engine.wal.stop import poison
from tests.waiting import run_threads, wait_for
from tests.wal.build_log import LogBuilder
from tests.wal.gate import DEVICE, Gate
from tests.wal.logs import commit_from_threads, copy_after_crash, open_log, payload_of, records_of

OVERLAPPING = ("handler", "pipeline:5")  # models whose syncs overlap
MILLISECOND = Nanoseconds(1_000_000)
TINY = 8192


@pytest.fixture(params=MODEL_NAMES)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Committer:
    """A thread inside one commit, and what came of it."""

    def __init__(self, log: Log, payload: bytes, *, durable: bool = True) -> None:
        self.result: int | LogPoisoned = 0
        self.thread_id = 0
        self._log, self._payload, self._durable = log, payload, durable
        self._thread = threading.Thread(target=self._run, name=f"committer-{payload!r}")
        self._thread.start()

    def _run(self) -> None:
        self.thread_id = threading.get_native_id()
        try:
            self.result = self._log.commit(self._payload, durable=self._durable)
        except LogPoisoned as error:
            self.result = error

    def outcome(self) -> int | LogPoisoned:
        self._thread.join(20)
        assert not self._thread.is_alive(), "the commit does not end"
        return self.result

    @property
    def is_inside(self) -> bool:
        return self._thread.is_alive()


def await_appended(log: Log, txid: int) -> None:
    wait_for(lambda: log.watermarks()["appended"] == txid, what=f"txid {txid} to be appended")


# ---- AsyncWriter step 3-4: a batch behind a failed one may succeed on the same broken writer.


@pytest.mark.parametrize("site", [Site.WRITE, Site.SYNC], ids=["write", "sync"])
def test_hbase_8755_a_failure_is_final_though_the_next_call_would_succeed(model, site, disk_path):
    faults = FaultTable(Fault(site, 2, code=errno.EIO))
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        assert log.commit(b"kept") == 1

        for _ in range(3):  # the commit that meets the error, and those after it
            with pytest.raises(LogPoisoned, match=r"Input/output error \(EIO\)"):
                log.commit(b"lost")

        with pytest.raises(LogPoisoned):
            log.commit(b"not even appended", durable=False)

        assert (log.durable_txid, log.watermarks()["appended"]) == (1, 2)
        calls = log.shared.device[0]["write_calls" if site is Site.WRITE else "sync_calls"]

    assert calls == 2, "nothing is tried again, by a later commit or by close"
    assert records_of(copy_after_crash(disk_path, faults, None)) == [(1, b"kept")]


def test_hbase_8755_roll_does_not_move_the_watermark_past_another_handlers_failure(disk_path):
    """The roll's own sync succeeds after a handler's sync of the same bytes has failed: Linux reports an error once.

    handler A                  handler B
    write 2, sync ...
                               append 3, roll: sync the old segment ...
    ... fails: poisoned
                               ... succeeds, and must not ack 2
    """
    faults = FaultTable(
        Fault(Site.SYNC, 2, code=errno.EIO, stall_ns=Nanoseconds(60 * MILLISECOND)),
        Fault(Site.SYNC, 3, stall_ns=Nanoseconds(200 * MILLISECOND)),
    )
    with open_log(disk_path / "log", model="handler", roll_records=2, faults=faults) as log:
        assert log.commit(b"kept") == 1
        first = Committer(log, b"meets the error")
        wait_for(lambda: log.shared.device["sync_calls"][0] == 2, what="the sync that will fail")
        second = Committer(log, b"rolls")

        assert isinstance(first.outcome(), LogPoisoned)
        assert isinstance(second.outcome(), LogPoisoned)
        assert log.durable_txid == 1
        assert log.watermarks()["rolls"] == 0


# ---- syncer(): `txid <= failedTxid` fails durable records whose thread has not woken yet.


@inner
def publish_and_poison(log, flushed, error):
    """Sync up to `flushed`, and fail before anyone was told: what a syncer and the next one's failure leave."""
    lock(log, "mutex")
    log.flushed = flushed
    poison(log, error, 2)
    unlock(log, "mutex")


def test_hbase_8755_what_was_synced_before_a_failure_is_acked_though_nobody_was_told_yet(disk_path):
    log = open_log(disk_path / "log", model="pipeline:1")
    log._threads.stop()  # AsyncNotifier tells nobody
    synced = Committer(log, b"synced")
    await_appended(log, 1)
    pending = Committer(log, b"pending")
    await_appended(log, 2)

    publish_and_poison(log.shared.log[0], 1, errno.EIO)

    assert synced.outcome() == 1
    assert isinstance(pending.outcome(), LogPoisoned)
    log.close()


def test_hbase_8755_a_failure_fails_no_record_that_was_durable(model, disk_path):
    faults = FaultTable(Fault(Site.SYNC, 6, code=errno.EIO))
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        outcomes = run_threads(*[lambda k=k: commit_until_poisoned(log, k) for k in range(6)], deadline=60)
        durable = log.durable_txid

    acked = sorted(txid for found in outcomes for txid in found)
    assert acked == list(range(1, durable + 1))


def commit_until_poisoned(log: Log, thread: int) -> list[int]:
    acked = []
    for k in range(200):
        try:
            acked.append(log.commit(payload_of(thread, k)))
        except LogPoisoned:
            return acked
    raise AssertionError("the planned fault never came")


# ---- HBASE-22761: a success callback that comes after the failure callback.


@pytest.mark.parametrize("name", OVERLAPPING)
def test_hbase_22761_a_sync_that_ends_well_after_another_failed_acks_nothing(name, disk_path):
    faults = FaultTable(
        Fault(Site.SYNC, 1, stall_ns=Nanoseconds(150 * MILLISECOND)),  # succeeds, late
        Fault(Site.SYNC, 2, code=errno.EIO),
    )
    with open_log(disk_path / "log", model=name, faults=faults) as log:
        late = Committer(log, b"late")
        wait_for(lambda: log.shared.device["sync_calls"][0] == 1, what="the first sync")
        failing = Committer(log, b"failing")

        assert isinstance(failing.outcome(), LogPoisoned)
        assert isinstance(late.outcome(), LogPoisoned)
    marks = log.watermarks()  # close has waited for the late sync to end
    assert (marks["flushed"], marks["durable"]) == (0, 0)


# ---- HBASE-10329 and 17206: a roll while syncers and unflushed entries are about.


@pytest.mark.parametrize("roll", [1, 3])
def test_hbase_10329_a_roll_leaves_no_acked_record_unsynced_in_the_old_segment(model, roll, disk_path):
    """What the worst crash leaves, at each step: a syncer that met the new segment would ack the old one's records."""
    faults = FaultTable(Fault(Site.SYNC, 1, every=True, stall_ns=Nanoseconds(MILLISECOND)))
    with open_log(disk_path / "log", model=model, segment_size=TINY, roll_records=roll, faults=faults) as log:
        for _ in range(4):
            acked = commit_from_threads(log, 6, 3)

            left = copy_after_crash(disk_path, faults, None)
            assert acked.items() <= dict(records_of(left)).items()
            for path in left.iterdir():
                path.unlink()
            left.rmdir()

        assert log.watermarks()["rolls"] >= 4


@pytest.mark.parametrize("name", OVERLAPPING)
def test_hbase_17206_a_roll_syncs_what_the_old_segment_still_holds_unsynced(name, disk_path):
    """The sync of record 1 is under way when record 2 rolls: 2 must not be acked on a segment without 1."""
    faults = FaultTable(Fault(Site.SYNC, 1, stall_ns=Nanoseconds(300 * MILLISECOND)))
    with open_log(disk_path / "log", model=name, roll_records=1, faults=faults) as log:
        slow = Committer(log, b"one")
        wait_for(lambda: log.shared.device["sync_calls"][0] == 1, what="the slow sync")

        assert log.commit(b"two") == 2

        left = copy_after_crash(disk_path, faults, None)
        assert log.watermarks()["rolls"] == 1
        assert slow.outcome() == 1
    assert records_of(left) == [(1, b"one"), (2, b"two")]


# ---- HBASE-16429: a roll while everything is full waits for those who wait for it.


def test_hbase_16429_rolls_go_on_while_handlers_wait_for_room(model, disk_path):
    with open_log(disk_path / "log", model=model, segment_size=TINY) as log:
        acked = commit_from_threads(log, 12, 10, size=1500)  # two fill a buffer and a segment

        assert log.watermarks()["rolls"] >= 59

    assert records_of(disk_path / "log") == sorted(acked.items())


# ---- notifyAll: every handler wakes and looks again on every sync.


def switches(thread_id: int) -> int:
    """Return how often a thread went to sleep by itself."""
    text = Path(f"/proc/self/task/{thread_id}/status").read_text()
    return int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_hbase_8755_a_sync_wakes_no_handler_whose_record_it_did_not_cover(disk_path):
    with open_log(disk_path / "log", model="pipeline:1", device=DEVICE) as log:
        with Gate(log) as gate:
            covered = Committer(log, b"covered")
            gate.await_waiting(1)
            others = []
            for k in range(3):  # each a batch of its own, written behind the sync that is under way
                others.append(Committer(log, b"other %d" % k))
                wait_for(lambda k=k: log.watermarks()["written"] == k + 2, what="its batch to be written")
            wait_for(lambda: all(is_asleep(other.thread_id) for other in others), what="the others to sleep")
            before = [switches(other.thread_id) for other in others]

            gate.let_pass()

            assert covered.outcome() == 1
            gate.await_waiting(1)  # the next sync, which is to cover the others
            assert [switches(other.thread_id) for other in others] == before
            assert all(other.is_inside for other in others)
        assert [other.outcome() for other in others] == [2, 3, 4]


def is_asleep(thread_id: int) -> bool:
    return Path(f"/proc/self/task/{thread_id}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


# ---- HBASE-10714, 11145, 14317, 25984: lost wakes and waits that never end.


def test_hbase_10714_the_first_txid_is_1_and_its_commit_returns(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        assert log.durable_txid == 0
        assert Committer(log, b"first").outcome() == 1


def test_hbase_11145_more_handlers_than_any_queue_is_long_all_return(model, disk_path):
    """Mailboxes keep the newest txid, so there is no queue to fill."""
    with open_log(disk_path / "log", model=model) as log:
        acked = commit_from_threads(log, 60, 4)

    assert sorted(acked) == list(range(1, 241))


def test_hbase_14317_a_bad_disk_releases_every_waiter_with_the_error(model, disk_path):
    log = open_log(disk_path / "log", model=model, device=DEVICE)
    with Gate(log):
        waiters = [Committer(log, b"%d" % k) for k in range(20)]
        await_appended(log, 20)
        log.arm(Fault(Site.SYNC, 1, code=errno.EIO, every=True))

    outcomes = [waiter.outcome() for waiter in waiters]
    assert [outcome.errno for outcome in outcomes if isinstance(outcome, LogPoisoned)] == [errno.EIO] * 20
    assert log.durable_txid == 0
    log.close()


def test_hbase_14317_those_who_wait_for_room_are_released_too(disk_path):
    log = open_log(disk_path / "log", segment_size=TINY, device=DEVICE)
    with Gate(log) as gate:
        leader = Committer(log, b"leads")
        gate.await_waiting(1)
        fillers = [Committer(log, bytes(2000), durable=False) for _ in range(5)]
        wait_for(lambda: log.shared.log["space_waiters"][0] >= 3, what="the buffer to be full")
        log.arm(Fault(Site.SYNC, 1, code=errno.EIO, every=True))

    assert isinstance(leader.outcome(), LogPoisoned)
    outcomes = [filler.outcome() for filler in fillers]
    assert sum(isinstance(outcome, LogPoisoned) for outcome in outcomes) == 3
    assert sorted(outcome for outcome in outcomes if isinstance(outcome, int)) == [2, 3]  # appended, as asked
    log.close()


def test_hbase_25984_no_wake_is_lost_between_many_short_commits(model, disk_path):
    """A waiter that missed its wake would hang: nobody else commits once the others have ended."""
    with open_log(disk_path / "log", model=model, sync="none") as log:
        for threads in (2, 3, 7):
            commit_from_threads(log, threads, 300, size=8)

        assert log.durable_txid == 300 * 12


def test_hbase_25984_who_waits_during_the_last_sync_of_others_is_woken_to_its_own(model, disk_path):
    """The first returns and never commits again: nobody but the waiter is left to make its record durable."""
    with open_log(disk_path / "log", model=model, device=DEVICE) as log:
        with Gate(log) as gate:
            first = Committer(log, b"first")
            gate.await_waiting(1)
            second = Committer(log, b"second")
            await_appended(log, 2)
            wait_for(lambda: is_asleep(second.thread_id), what="the second to sleep")

            gate.let_pass()

            assert first.outcome() == 1
        assert second.outcome() == 2


def test_hbase_25984_room_that_only_unsynced_records_wait_for_is_made(disk_path):
    """The leader returns and nobody of the next group waits to be durable: one of those who want room must lead."""
    with open_log(disk_path / "log", segment_size=TINY, device=DEVICE) as log:
        with Gate(log) as gate:
            leader = Committer(log, b"leads")
            gate.await_waiting(1)
            fillers = [Committer(log, bytes(1900), durable=False) for _ in range(4)]
            wait_for(lambda: log.shared.log["space_waiters"][0] == 2, what="two to wait for room")

        assert leader.outcome() == 1
        assert sorted(filler.outcome() for filler in fillers) == [2, 3, 4, 5]


# ---- HBASE-11200 and 14759: `(int) txid % n` is negative after 2^31 edits.


@pytest.mark.parametrize("last", [2**31 - 3, 2**32 - 3, 2**53 - 3], ids=["2^31", "2^32", "2^53"])
def test_hbase_11200_txids_beyond_an_integers_range_commit_and_come_back(model, last, disk_path):
    LogBuilder(number=2, txid=last, segment_size=TINY).data(b"before").seal().write(disk_path / "log")

    with open_log(disk_path / "log", model=model) as log:
        txids = [log.commit(b"%d" % k) for k in range(6)]

    assert txids == list(range(last + 1, last + 7))
    assert [txid for txid, _ in records_of(disk_path / "log")] == [last, *txids]


@inner
def choose(log, last):
    return _choose_syncer(log, last)


def test_hbase_11200_where_all_syncers_are_busy_one_of_them_is_chosen(disk_path):
    log = open_log(disk_path / "log", model="pipeline:5")
    log._threads.stop()
    state = log.shared.log[0]
    state["syncer_busy"] = 1

    for last in (1, 2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**63 - 1):
        assert choose(state, np.int64(last)) == last % 5

    state["syncer_busy"] = 0
    log.close()


# ---- HBASE-22539: a buffer that is used again before it was written.


def test_hbase_22539_a_buffer_is_not_filled_again_before_it_was_written(model, disk_path):
    faults = FaultTable(Fault(Site.WRITE, 1, every=True, stall_ns=Nanoseconds(MILLISECOND // 2)))
    with open_log(disk_path / "log", model=model, segment_size=TINY, faults=faults) as log:
        acked = commit_from_threads(log, 8, 10, size=700)

    assert records_of(disk_path / "log") == sorted(acked.items())


# ---- Sequence assigned under one lock, entry inserted under another.


def test_hbase_8755_file_order_is_txid_order_and_each_threads_order(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:

        def run(thread: int) -> None:
            for sequence in range(30):
                txid = log.commit(b"%d:%d" % (thread, sequence))
                assert log.durable_txid >= txid

        run_threads(*[lambda thread=thread: run(thread) for thread in range(8)])

    records = records_of(disk_path / "log")
    assert [txid for txid, _ in records] == list(range(1, 241))
    for thread in range(8):
        mine = [payload for _, payload in records if payload.startswith(b"%d:" % thread)]
        assert mine == [b"%d:%d" % (thread, sequence) for sequence in range(30)]
