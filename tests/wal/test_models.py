"""Every write-thread model keeps the log's promises: order, durability, room, rolls, control, close and meters."""

from __future__ import annotations

import contextlib
import threading
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

from engine.measure.buckets import LADDER_NS
from engine.native.kernel import inner
from engine.native.locks import lock, unlock
from engine.storage.faults import Fault, FaultTable, Site
from engine.units import Bytes, Nanoseconds
from engine.wal.errors import LogClosed, LogLocked, RecordTooLarge
from engine.wal.log import Log
from engine.wal.meter import SYNC
from engine.wal.models import MODEL_NAMES
from engine.wal.reading import read_records
from engine.wal.recovery import recover
from engine.workloads.crew import Crew, HandlerSettings
from engine.workloads.handlers import expected_payload
from tests.programs import run_python
from tests.waiting import run_threads, wait_for
from tests.wal.gate import DEVICE, Gate
from tests.wal.logs import (
    SYNCS,
    commit_from_threads,
    copy_after_crash,
    no_leaked_descriptors,
    open_log,
    payload_of,
    records_of,
)

TINY = 8192  # of a segment: the smallest, and a buffer of 4096


@pytest.fixture(params=MODEL_NAMES)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run_crew(log: Log, handlers: int, each: int, *, size: int = 100, sync_every: int = 1) -> Crew:
    """Run native handlers until each has committed `each` records."""
    crew = Crew(log, HandlerSettings(value_size_bytes=Bytes(size), sync_every=sync_every, limit=each))
    crew.resize(handlers)
    wait_for(lambda: crew.wait(0.01), deadline=60, what="the handlers to end")
    assert crew.result() == 0
    return crew


# ---- Order and durability.


@pytest.mark.parametrize("sync", SYNCS)
def test_python_threads_get_each_txid_once_and_read_back_what_they_committed(model, sync, disk_path):
    with no_leaked_descriptors():
        with open_log(disk_path / "log", model=model, sync=sync) as log:
            acked = commit_from_threads(log, 8, 25)
            marks = log.watermarks()

        assert sorted(acked) == list(range(1, 201))
        assert marks["durable"] == marks["written"] == marks["appended"] == 200
        assert records_of(disk_path / "log") == sorted(acked.items())
        assert recover(disk_path / "log").is_sealed


@pytest.mark.parametrize("sync", SYNCS)
def test_native_handlers_get_each_txid_once_and_read_back_what_they_committed(model, sync, disk_path):
    with no_leaked_descriptors():
        with open_log(disk_path / "log", model=model, sync=sync) as log:
            crew = run_crew(log, 12, 30)
            assert log.durable_txid == 360

        records = records_of(disk_path / "log")
        assert [txid for txid, _ in records] == list(range(1, 361))
        following = dict.fromkeys(range(12), 0)
        for _, payload in records:
            number = int.from_bytes(payload[:8], "little")
            assert payload == expected_payload(crew.pool, number, following[number])
            following[number] += 1
        assert set(following.values()) == {30}


@pytest.mark.parametrize("sync", ["fdatasync", "fsync", "dsync"])
def test_what_a_commit_returned_for_survives_the_worst_crash(model, sync, disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, sync=sync, faults=faults) as log:
        acked = commit_from_threads(log, 6, 20)
        log.commit(b"not waited for", durable=False)

        left = copy_after_crash(disk_path, faults, None)

    assert records_of(left)[: len(acked)] == sorted(acked.items())


def test_the_worst_crash_takes_what_was_never_synced(disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", sync="none", faults=faults) as log:
        commit_from_threads(log, 2, 10)

        left = copy_after_crash(disk_path, faults, None)

    assert records_of(left) == []
    assert len(records_of(disk_path / "log")) == 20


def test_handlers_that_sync_now_and_then_lose_nothing_once_they_end(model, disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        run_crew(log, 6, 25, sync_every=7)
        left = copy_after_crash(disk_path, faults, None)
        wait_for(lambda: log.meter_totals()["ops_synced"] == 150, what="the last sync to be counted")
        totals = log.meter_totals()

    assert [txid for txid, _ in records_of(left)] == list(range(1, 151))
    assert (totals["unsynced"], totals["commit"].sum()) == (6 * 22, 6 * 3)


def test_flush_makes_durable_what_nobody_waited_for(model, disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, faults=faults) as log:
        for k in range(5):
            assert log.commit(b"%d" % k, durable=False) == k + 1

        log.flush()

        assert log.durable_txid == 5
        assert [p for _, p in records_of(copy_after_crash(disk_path, faults, None))] == [b"%d" % k for k in range(5)]


def test_a_log_goes_on_where_another_model_left_it(disk_path):
    for k, name in enumerate((*MODEL_NAMES, *reversed(MODEL_NAMES))):
        with open_log(disk_path / "log", model=name) as log:
            assert log.commit(name.encode()) == k + 1

    assert [payload.decode() for _, payload in records_of(disk_path / "log")] == [*MODEL_NAMES, *reversed(MODEL_NAMES)]


# ---- Room: payloads, buffers, segments.


def test_payloads_of_every_size_up_to_the_limit_come_back(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        sizes = [0, 1, 7, 8, 9, 4095, 4096, log.max_payload - 1, log.max_payload, 3]

        for k, size in enumerate(sizes):
            log.commit(payload_of(k, size, size))

    assert [payload for _, payload in records_of(disk_path / "log")] == [
        payload_of(k, size, size) for k, size in enumerate(sizes)
    ]


def test_a_payload_over_the_limit_is_refused_and_nothing_appended(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        with pytest.raises(RecordTooLarge, match="61,417 bytes does not fit; allowed are 61,416"):
            log.commit(bytes(log.max_payload + 1))

        assert log.commit(b"fits") == 1


def test_an_array_commits_as_its_bytes_do(disk_path):
    with open_log(disk_path / "log") as log:
        log.commit(np.arange(200, dtype=np.uint8))
        log.commit(np.frombuffer(b"read-only", np.uint8))

    assert records_of(disk_path / "log") == [(1, bytes(range(200))), (2, b"read-only")]


def test_a_load_larger_than_the_buffers_passes_in_order(model, disk_path):
    """The buffer holds four of these records and a segment as many: everyone waits for room and for rolls."""
    with open_log(disk_path / "log", model=model, segment_size=TINY) as log:
        acked = commit_from_threads(log, 8, 15, size=900)
        rolls = log.watermarks()["rolls"]

    assert rolls >= 120 // 4 - 1
    assert records_of(disk_path / "log") == sorted(acked.items())


def test_a_commit_waits_while_both_buffers_are_full(disk_path):
    with open_log(disk_path / "log", segment_size=TINY, device=DEVICE) as log:
        state = log.shared.log[0]

        def fill() -> None:
            for _ in range(8):
                log.commit(bytes(900), durable=False)

        with Gate(log) as gate:
            leader = threading.Thread(target=log.commit, args=(bytes(900),), name="leader")
            leader.start()
            gate.await_waiting(1)
            filler = threading.Thread(target=fill, name="filler")
            filler.start()
            wait_for(lambda: state["space_waiters"] == 1, what="the fifth to wait for room")
            marks = log.watermarks()

        leader.join()
        filler.join(20)
        assert not filler.is_alive()
        assert (marks["appended"], marks["durable"]) == (5, 0)
        assert marks["used"] <= state["buffer_bytes"]

    assert [txid for txid, _ in records_of(disk_path / "log")] == list(range(1, 10))


def test_a_log_rolls_by_size(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        acked = commit_from_threads(log, 6, 40, size=1000)
        rolls = log.watermarks()["rolls"]

    found = recover(disk_path / "log")
    assert rolls == len(found.segments) - 1 >= 3
    assert all(segment.used <= segment.header.segment_size for segment in found.segments)
    assert records_of(disk_path / "log") == sorted(acked.items())


def test_a_log_rolls_after_so_many_records(model, disk_path):
    with open_log(disk_path / "log", model=model, roll_records=10) as log:
        for k in range(45):
            log.commit(b"%d" % k)

    assert [segment.records for segment in recover(disk_path / "log").segments] == [10, 10, 10, 10, 5]


def test_records_are_counted_towards_a_roll_across_openings(disk_path):
    for _ in range(4):
        with open_log(disk_path / "log", roll_records=10) as log:
            for _ in range(7):
                log.commit(b"x")

    assert [segment.records for segment in recover(disk_path / "log").segments] == [10, 10, 8]


def test_a_log_made_with_small_segments_takes_larger_records_when_opened_with_large_ones(disk_path):
    with open_log(disk_path / "log", segment_size=TINY):
        pass
    with open_log(disk_path / "log") as log:
        log.commit(b"x" * 30_000)
        log.commit(b"y" * 50_000)

    assert [len(payload) for _, payload in records_of(disk_path / "log")] == [30_000, 50_000]


def test_a_log_can_be_opened_and_closed_until_seals_have_filled_its_segment(disk_path):
    with open_log(disk_path / "log", segment_size=TINY) as log:
        log.commit(b"x" * (4096 - 24 - 24 - 24 * 5))  # leaves room for five seals behind its own
    for _ in range(8):
        with open_log(disk_path / "log", segment_size=TINY):
            pass
    with open_log(disk_path / "log", segment_size=TINY) as log:
        assert log.commit(b"y") == 2

    assert [len(payload) for _, payload in records_of(disk_path / "log")] == [4096 - 24 * 7, 1]


# ---- Retention.


def inodes_by_name(folder: Path) -> dict[str, int]:
    """Return the inode of each segment; one that is renamed meanwhile has either name, or none."""
    found = {}
    for path in folder.glob("*.wal"):
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = path.stat().st_ino
    return found


@pytest.mark.parametrize("name", ["group", "pipeline:5", "handler"])
def test_a_checkpoint_recycles_and_removes_segments_below_it_and_never_one_above(name, disk_path):
    folder = disk_path / "log"
    with open_log(folder, model=name, segment_size=TINY) as log:
        inodes: set[int] = set()
        recycled = False
        for k in range(1, 121):
            log.commit(payload_of(0, k, 900))
            if k % 8 == 0:
                log.checkpoint(k - 6)
                wait_for(lambda k=k: len(log.closed_segments()) <= 4, what="old segments to go")
                assert [t for t, _ in read_records(folder, start_txid=k - 5, up_to=k)] == list(range(k - 5, k + 1))
                now = inodes_by_name(folder)
                recycled = recycled or now[max(now)] in inodes
                inodes |= set(now.values())

    kept = records_of(folder)
    assert recycled
    assert kept[0][0] <= 115
    assert kept == [(k, payload_of(0, k, 900)) for k in range(kept[0][0], 121)]


def test_without_a_checkpoint_every_segment_stays(model, disk_path):
    with open_log(disk_path / "log", model=model, segment_size=TINY) as log:
        commit_from_threads(log, 4, 10, size=900)

        assert [segment.number for segment in log.closed_segments()][:2] == [1, 2]

    assert recover(disk_path / "log").first_txid == 1


def test_closed_segments_are_told_with_what_they_hold(model, disk_path):
    with open_log(disk_path / "log", model=model, segment_size=TINY) as log:
        commit_from_threads(log, 4, 20, size=500)
        told = [(s.number, s.first_txid, s.last_txid, s.used) for s in log.closed_segments()]

    found = recover(disk_path / "log").segments
    assert told == [(s.number, s.header.first_txid, s.last_txid, s.used) for s in found[:-1]]


# ---- One writer.


def test_a_second_writer_in_this_process_is_refused(disk_path):
    with open_log(disk_path / "log") as log:
        wait_for(lambda: log.watermarks()["next_segment"])
        with no_leaked_descriptors(), pytest.raises(LogLocked, match="has this log open for writing"):
            open_log(disk_path / "log")

        assert log.commit(b"first writer goes on") == 1

    with open_log(disk_path / "log") as log:
        assert log.durable_txid == 1


def test_a_second_writer_in_another_process_is_refused(disk_path):
    source = f"""
from pathlib import Path
from engine.wal.log import Log
from engine.wal.errors import LogLocked
try:
    Log.open(Path({str(disk_path / "log")!r}))
except LogLocked as error:
    print(error.holder)
"""
    with open_log(disk_path / "log"):
        done = run_python(source)

    assert done.stdout.strip().isdigit(), done.stderr


# ---- Reconfigure.


def test_commits_go_on_while_the_model_changes_from_each_to_each(disk_path):
    walk = [name for pair in permutations(MODEL_NAMES, 2) for name in pair]
    with no_leaked_descriptors():
        with open_log(disk_path / "log", model=walk[0]) as log:
            ended = threading.Event()
            acked: dict[int, bytes] = {}

            def load() -> None:
                thread = 0
                while not ended.is_set():
                    found = commit_from_threads(log, 5, 10)
                    assert not acked.keys() & found.keys()
                    acked.update(found)
                    thread += 5

            def change() -> None:
                try:
                    for name in walk[1:]:
                        before = log.durable_txid
                        log.reconfigure(model=name)
                        assert log.model.name == name
                        wait_for(lambda before=before: log.durable_txid > before + 3, what="commits to go on")
                finally:
                    ended.set()

            run_threads(load, change, deadline=60)

        assert sorted(acked) == list(range(1, len(acked) + 1))
        assert records_of(disk_path / "log") == sorted(acked.items())


def test_no_sync_mode_betrays_the_one_before_it(model, disk_path):
    """What mode none left to the operating system is durable once another mode acks behind it."""
    faults = FaultTable()
    modes = [mode for pair in permutations(SYNCS, 2) for mode in pair]
    with open_log(disk_path / "log", model=model, segment_size=TINY, faults=faults) as log:
        acked: dict[int, bytes] = {}
        for k, mode in enumerate(modes):
            log.reconfigure(sync=mode)
            for sequence in range(6):  # more than a segment holds
                payload = payload_of(k, sequence, 900)
                acked[log.commit(payload)] = payload
            if mode != "none":
                left = copy_after_crash(disk_path, faults, None)
                assert records_of(left) == sorted(acked.items()), (k, mode)
                for path in left.iterdir():
                    path.unlink()
                left.rmdir()


def test_a_log_closed_in_mode_none_is_durable_and_sealed(model, disk_path):
    faults = FaultTable()
    with open_log(disk_path / "log", model=model, sync="none", segment_size=TINY, faults=faults) as log:
        acked = commit_from_threads(log, 3, 10, size=900)

    left = copy_after_crash(disk_path, faults, None)
    assert records_of(left) == sorted(acked.items())
    assert recover(left).is_sealed


def test_devices_change_below_a_load(model, disk_path):
    devices = ["real", "serial:100us", "parallel:100us"]
    walk = [name for pair in permutations(devices, 2) for name in pair]
    with open_log(disk_path / "log", model=model, device=walk[0]) as log:
        ended = threading.Event()
        acked: dict[int, bytes] = {}

        def load() -> None:
            while not ended.is_set():
                acked.update(commit_from_threads(log, 5, 4))

        def change() -> None:
            for name in walk[1:]:
                before = log.durable_txid
                log.reconfigure(device=name)
                wait_for(lambda before=before: log.durable_txid > before + 3, what=f"commits on {name}")
            ended.set()

        run_threads(load, change, deadline=60)

    assert records_of(disk_path / "log") == sorted(acked.items())


def start_a_needless_sync(log: Log) -> list[threading.Thread]:
    """Start two commits in model handler that one sync covers; return with the other's still going on.

    The first takes the records of both to the disk, and the second, which finds nothing left to write, syncs all the
    same.
    """
    hold_flush(log.shared.log[0])
    threads = [threading.Thread(target=log.commit, args=(b"x",), name=f"committer-{k}") for k in range(2)]
    for thread in threads:
        thread.start()
    wait_for(lambda: log.watermarks()["appended"] == 2, what="both to append")
    release_flush(log.shared.log[0])
    wait_for(lambda: log.durable_txid == 2, what="one sync to cover both")
    return threads


@inner
def hold_flush(log):
    lock(log, "flush")


@inner
def release_flush(log):
    unlock(log, "flush")


def test_a_device_changes_only_after_the_last_sync_on_the_old_one(disk_path):
    """A sync that still has its turn at a serial device passes it on, or the queue stands for ever."""
    with open_log(disk_path / "log", model="handler", device="serial:50ms") as log:
        threads = start_a_needless_sync(log)

        log.reconfigure(device="real")

        assert log.watermarks()["waiting"] == 0
        for thread in threads:
            thread.join(20)
        log.reconfigure(device="serial:50ms")
        assert log.commit(b"the queue moves") == 3


def test_reconfigure_begins_a_segment_of_its_own_and_meters_from_zero(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        log.reconfigure(device="parallel:1us")  # nothing in the segment yet: it serves as the new one
        log.commit(b"one")
        log.commit(b"two")
        log.reconfigure(device="real")
        assert log.meter_totals()["commit"].sum() == 0
        log.commit(b"three")
        assert log.meter_totals()["commit"].sum() == 1

    assert [segment.records for segment in recover(disk_path / "log").segments] == [2, 1]


# ---- Close.


def test_close_lets_commits_in_progress_end_and_takes_no_more(model, disk_path):
    with no_leaked_descriptors():
        log = open_log(disk_path / "log", model=model, device=DEVICE)
        txids: list[int] = []
        with Gate(log) as gate:
            committers = [
                threading.Thread(target=lambda: txids.append(log.commit(b"drained")), name=f"committer-{k}")
                for k in range(5)
            ]
            for thread in committers:
                thread.start()
            wait_for(lambda: log.watermarks()["appended"] == 5 and gate.waiting())
            closing = threading.Thread(target=log.close, name="closing")
            closing.start()
            wait_for(lambda: log.shared.log["closed"][0] == 1)
            with pytest.raises(LogClosed, match="this log is closed"):
                log.commit(b"too late")
        for thread in (*committers, closing):
            thread.join(20)
            assert not thread.is_alive(), thread.name

    assert sorted(txids) == [1, 2, 3, 4, 5]
    assert recover(disk_path / "log").is_sealed


def test_close_waits_for_a_sync_that_others_made_needless(disk_path):
    """Its descriptor is closed only then: its number could be another file's by the time it is used."""
    faults = FaultTable(Fault(Site.SYNC, 2, stall_ns=Nanoseconds(300_000_000)))
    log = open_log(disk_path / "log", model="handler", faults=faults)
    threads = start_a_needless_sync(log)
    wait_for(lambda: log.shared.device["sync_calls"][0] == 2, what="the other sync")

    log.close()

    assert log.watermarks()["waiting"] == 0
    for thread in threads:
        thread.join(20)


def test_a_closed_log_refuses_everything_and_stays_as_it_is(model, disk_path):
    log = open_log(disk_path / "log", model=model)
    log.commit(b"kept")
    log.close()
    after = (disk_path / "log" / "00000001.wal").read_bytes()

    for refused in (lambda: log.commit(b"no"), lambda: log.reconfigure(model="group"), lambda: log.commit(b"no")):
        with pytest.raises(LogClosed):
            refused()
    log.flush()
    log.close()
    log.checkpoint(1)

    assert (disk_path / "log" / "00000001.wal").read_bytes() == after
    assert log.durable_txid == 1


def test_rows_of_threads_that_are_gone_are_used_again(disk_path):
    with open_log(disk_path / "log") as log:
        for k in range(30):
            run_threads(lambda k=k: log.commit(b"%d" % k))

        assert log._rows.high_water <= 3
        assert log.meter_totals()["commit"].sum() == 30  # what a row counted stays counted


# ---- Meters.


@pytest.mark.parametrize("sync", SYNCS)
def test_meters_agree_with_each_other_and_with_the_device(model, sync, disk_path):
    with open_log(disk_path / "log", model=model, sync=sync, roll_records=40) as log:
        acked = commit_from_threads(log, 6, 25, size=300)
        device = log.shared.device[0]
        syncs = sync in ("fdatasync", "fsync")
        wait_for(
            lambda: not syncs or log.meter_totals()["sync"].sum() == device["sync_calls"], what="syncs to be counted"
        )
        totals = log.meter_totals()
        rolls, header_writes = (log.watermarks()["rolls"],) * 2

    assert totals["commit"].sum() == len(acked) == 150
    assert totals["payload_bytes"] == 150 * 300
    assert totals["stage_ns"].sum() == totals["commit_ns"]
    assert totals["stage"].sum(axis=1).tolist() == [150] * 4
    assert totals["commit_max_ns"] <= totals["commit_ns"]
    assert totals["ops_synced"] == (0 if sync == "none" else 150)
    assert totals["written_bytes"] == 150 * 328 + header_writes * 4096
    assert totals["write"].sum() == device["write_calls"] - 1  # the seal's
    assert rolls >= 2
    assert (totals["sync_errors"], totals["write_errors"], totals["unsynced"]) == (0, 0, 0)
    if sync == "none":
        assert totals["sync"].sum() == totals["ops_per_sync"].sum() == 0
    if sync == "dsync":
        assert totals["sync"].sum() == totals["write"].sum() - header_writes


def test_each_commit_is_charged_the_sync_that_covered_it(model, disk_path):
    """Writes are slow, too, so that most syncs begin while another batch is taken and not yet written."""
    latency = 2_000_000
    faults = FaultTable(Fault(Site.WRITE, 1, every=True, stall_ns=Nanoseconds(latency)))
    with open_log(disk_path / "log", model=model, device="serial:2ms", faults=faults) as log:
        run_crew(log, 4, 8)
        totals = log.meter_totals()

    commits = int(totals["commit"].sum())
    assert commits == 32
    assert totals["stage"][SYNC][: LADDER_NS.index(latency)].sum() == 0, "a commit that took part in no sync"
    assert totals["stage_ns"][SYNC] >= commits * latency
    assert totals["sync_ns"] >= totals["sync"].sum() * latency
    assert totals["stage_ns"].sum() == totals["commit_ns"]


def test_unmetered_rows_count_syncs_but_no_commits(model, disk_path):
    with open_log(disk_path / "log", model=model) as log:
        log.shared.meters["unmetered"] = 1
        run_crew(log, 4, 10, sync_every=2)
        wait_for(lambda: log.meter_totals()["ops_synced"] == 40)
        totals = log.meter_totals()

    assert totals["commit"].sum() == totals["stage"].sum() == totals["payload_bytes"] == totals["unsynced"] == 0
    assert totals["sync"].sum() > 0


def test_slow_syncs_are_counted_from_their_limit_on(model, disk_path):
    with open_log(disk_path / "log", model=model, slow_sync_ns=2_000_000) as log:
        log.commit(b"warm")
        log.reset_meters()
        log.stall_next_sync(3_000_000)  # type: ignore[arg-type]
        log.commit(b"stalled")
        wait_for(lambda: log.meter_totals()["slow_syncs"] >= 1)

        assert log.meter_totals()["sync_max_ns"] >= 3_000_000


def test_watermarks_are_in_order_whenever_they_are_read(model, disk_path):
    with open_log(disk_path / "log", model=model, segment_size=TINY) as log:
        seen: list[dict[str, int]] = []
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.0002):  # a watcher that never lets go would keep the preparer's thread waiting
                seen.append(log.watermarks())

        def load() -> None:
            run_crew(log, 8, 60, size=400)
            ended.set()

        run_threads(watch, load, deadline=60)
        segments = {s.number: (s.first_txid, s.used) for s in log.closed_segments()}

    for before, after in pairwise(seen):
        assert after["durable"] <= after["flushed"] <= after["written"] <= after["appended"]
        assert all(after[name] >= before[name] for name in ("durable", "flushed", "written", "appended", "rolls"))
        assert after["segment"] >= before["segment"]
        if after["segment"] in segments:
            first, used = segments[after["segment"]]
            assert after["segment_first"] == first
            assert 4096 <= after["segment_used"] <= used


def test_no_file_is_left_open_by_an_opening_that_fails(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "something else").write_text("x")

    with no_leaked_descriptors(), pytest.raises(Exception, match="something else"):
        open_log(tmp_path / "log")
