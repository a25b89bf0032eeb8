"""The engine: its snapshots hold together whoever asks and whatever changes meanwhile."""

from __future__ import annotations

import threading
from itertools import pairwise

from engine.engine import Engine
from engine.snapshot import Absent, FineHistogram, WalSnapshot, from_json, from_msgpack, to_json, to_msgpack
from engine.workloads.wal_lane import WalSettings
from tests.waiting import run_threads, wait_for

SEGMENT = 1 << 20
GROWING = ("commits", "payload_bytes", "written_bytes", "rolls", "slow_syncs", "sync_errors", "write_errors")


def running(engine: Engine) -> WalSnapshot | None:
    found = engine.wal.sample()
    return found if isinstance(found, WalSnapshot) and found.durable_txid > 0 else None


def test_a_live_snapshot_comes_back_from_both_encodings_as_it_was(disk_path):
    with Engine(WalSettings(path=disk_path / "log", handlers=5, segment_size=SEGMENT)) as engine:
        wait_for(lambda: running(engine))
        snapshot = engine.sample()

    assert from_msgpack(to_msgpack(snapshot)) == snapshot
    assert from_json(to_json(snapshot)) == snapshot
    assert isinstance(snapshot.wal, WalSnapshot)
    assert snapshot.wal.state == "running"
    assert snapshot.source_id == "local"


def test_a_snapshot_before_the_start_says_why_there_is_nothing(tmp_path):
    snapshot = Engine(WalSettings(path=tmp_path / "log")).sample()

    assert snapshot.wal == Absent("the log is being opened")
    assert from_msgpack(to_msgpack(snapshot)) == snapshot


def test_events_are_numbered_by_one_so_that_each_is_shown_once(disk_path):
    with Engine(WalSettings(path=disk_path / "log", handlers=2, segment_size=SEGMENT)) as engine:
        for model in ("handler", "pipeline:1", "group"):
            engine.wal.set_model(model)
        wait_for(lambda: len(engine.sample().events) >= 4)
        numbers = [event.number for event in engine.sample().events]

    assert numbers == list(range(1, len(numbers) + 1))


def histogram_total(found: object) -> int:
    assert isinstance(found, FineHistogram)
    return sum(found.counts)


def assert_never_shrinks(before: WalSnapshot, after: WalSnapshot) -> None:
    """Assert what holds between two snapshots that one thread took one after the other."""
    assert after.epoch >= before.epoch
    assert after.durable_txid >= before.durable_txid
    assert after.appended_txid >= before.appended_txid
    if after.epoch > before.epoch:
        return
    for name in GROWING:
        assert getattr(after, name) >= getattr(before, name), name
    assert histogram_total(after.commit_latency) >= histogram_total(before.commit_latency)
    assert histogram_total(after.sync_latency) >= histogram_total(before.sync_latency)
    for name in ("queue", "write", "sync", "wake"):
        assert getattr(after.stages, name).total >= getattr(before.stages, name).total
    assert all(b <= a for b, a in zip(before.ops_per_sync.counts, after.ops_per_sync.counts, strict=True))


def test_totals_never_shrink_within_an_epoch_and_watermarks_are_in_order_while_all_changes(disk_path):
    """Four threads sample 50 handlers while model, device and sync mode change below them."""
    with Engine(WalSettings(path=disk_path / "log", handlers=50, segment_size=SEGMENT)) as engine:
        wait_for(lambda: running(engine))
        ended = threading.Event()
        taken: list[list[WalSnapshot]] = []

        def sample() -> None:
            mine: list[WalSnapshot] = []
            taken.append(mine)
            while not ended.wait(0.001):
                snapshot = engine.sample()
                assert isinstance(snapshot.wal, WalSnapshot)
                mine.append(snapshot.wal)

        def change() -> None:
            try:
                for control, value in (
                    (engine.wal.set_model, "pipeline:5"),
                    (engine.wal.set_sync, "none"),
                    (engine.wal.set_device, "parallel:1ms"),
                    (engine.wal.set_model, "handler"),
                    (engine.wal.set_sync, "dsync"),
                    (engine.wal.set_model, "handler-recheck"),
                    (engine.wal.set_device, "real"),
                    (engine.wal.set_model, "group"),
                    (engine.wal.set_sync, "fdatasync"),
                ):
                    before = running(engine)
                    assert before is not None
                    control(value)
                    wait_for(lambda before=before: has_moved_on(engine, before), what=f"commits after {value}")
            finally:
                ended.set()

        run_threads(sample, sample, sample, sample, change, deadline=90)

    for mine in taken:
        assert len(mine) > 20
        assert {snapshot.epoch for snapshot in mine} >= set(range(2, 10))
        for snapshot in mine:
            assert snapshot.durable_txid <= snapshot.written_txid <= snapshot.appended_txid
            assert 0 <= snapshot.waiting_handlers <= 51
            numbers = [row.number for row in snapshot.segments]
            assert numbers == sorted(set(numbers))
            assert [row.state for row in snapshot.segments].count("active") == 1
        for before, after in pairwise(mine):
            assert_never_shrinks(before, after)


def has_moved_on(engine: Engine, before: WalSnapshot) -> bool:
    after = running(engine)
    return after is not None and after.epoch > before.epoch and after.durable_txid > before.durable_txid + 50
