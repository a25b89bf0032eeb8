"""The WAL lane: controls act, trouble is told, and nothing ends its thread but its end."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from engine.engine import Engine
from engine.errors import BadValue, UnknownChoice
from engine.snapshot import Absent, WalSnapshot
from engine.units import Nanoseconds
from engine.wal.log import Log
from engine.wal.models import MODEL_NAMES
from engine.workloads.wal_lane import WalSettings
from tests.waiting import wait_for
from tests.wal.logs import no_leaked_descriptors

SEGMENT = 1 << 20
MILLISECOND = 1_000_000


class Start(Protocol):
    """Make a running engine."""

    def __call__(self, **settings: object) -> Engine: ...


@pytest.fixture
def start(disk_path: Path) -> Iterator[Start]:
    engines: list[Engine] = []

    def make(**settings: object) -> Engine:
        defaults = {"path": disk_path / "log", "handlers": 3, "segment_size": SEGMENT, **settings}
        engines.append(Engine(WalSettings(**defaults)))  # type: ignore[arg-type]
        engines[-1].start()
        return engines[-1]

    yield make
    for engine in engines:
        assert engine.stop()


def now(engine: Engine) -> WalSnapshot:
    """Return the log's snapshot, once it is open."""
    return wait_for(lambda: present(engine), what="the log to be open")


def present(engine: Engine) -> WalSnapshot | None:
    found = engine.wal.sample()
    return found if isinstance(found, WalSnapshot) else None


def await_commits(engine: Engine, more: int = 5) -> WalSnapshot:
    before = now(engine).durable_txid
    wait_for(lambda: now(engine).durable_txid >= before + more, what="commits to go on")
    return now(engine)


def said(engine: Engine, words: str) -> bool:
    return any(words in event.text for event in engine.sample().events)


# ---- Controls.


def test_handlers_are_added_and_taken_away(start):
    engine = start(handlers=2)
    await_commits(engine)

    for count in (7, 1, 4):
        engine.wal.set_handlers(count)
        wait_for(lambda count=count: now(engine).handlers == count)
        await_commits(engine)


def test_a_count_of_handlers_out_of_range_is_the_nearest_in_it(start):
    engine = start(handlers=2)
    engine.wal.set_handlers(0)

    wait_for(lambda: now(engine).handlers == 1)


@pytest.mark.parametrize("model", MODEL_NAMES)
def test_another_model_begins_an_epoch_with_totals_from_zero(model, start):
    engine = start(model="group" if model != "group" else "handler")
    before = await_commits(engine)

    engine.wal.set_model(model)

    wait_for(lambda: now(engine).epoch == before.epoch + 1)
    after = await_commits(engine)
    assert (after.model, after.state) == (model, "running")
    assert after.commits <= after.durable_txid - before.durable_txid + after.handlers
    assert after.epoch_started_ns > before.epoch_started_ns
    assert said(engine, f"now {model} on real, sync fdatasync")


def test_another_device_and_sync_mode_are_shown_as_what_they_are(start):
    engine = start()
    engine.wal.set_device("parallel:1ms")
    engine.wal.set_sync("none")

    wait_for(lambda: now(engine).sync == "none (not durable)")

    assert now(engine).device == "parallel 1 ms (simulated)"
    await_commits(engine)


def test_a_control_that_cannot_be_is_refused_at_once_and_changes_nothing(start):
    engine = start()
    before = await_commits(engine)

    with pytest.raises(UnknownChoice, match="did you mean group"):
        engine.wal.set_model("group1")
    with pytest.raises(BadValue):
        engine.wal.set_device("serial")
    with pytest.raises(UnknownChoice):
        engine.wal.set_sync("never")

    assert await_commits(engine).epoch == before.epoch


def test_settings_that_cannot_be_are_refused_before_anything_starts(tmp_path):
    with pytest.raises(UnknownChoice, match="write-thread model"):
        Engine(WalSettings(path=tmp_path / "log", model="pipe"))


def test_handlers_stop_and_start_while_the_log_stays_open(start):
    engine = start()
    await_commits(engine)
    engine.wal.stop()
    wait_for(lambda: now(engine).state == "stopped")
    stopped = now(engine)
    engine.wal.set_handlers(5)  # kept for the next start

    engine.wal.start()

    wait_for(lambda: now(engine).state == "running" and now(engine).handlers == 5)
    assert await_commits(engine).durable_txid > stopped.durable_txid == stopped.appended_txid


def test_a_stall_is_felt_and_told(start):
    engine = start(handlers=1)
    await_commits(engine)

    engine.wal.stall_next_sync(Nanoseconds(120 * MILLISECOND))

    wait_for(lambda: now(engine).slow_syncs >= 1)
    wait_for(lambda: said(engine, "sync of 100 ms or more"))
    assert said(engine, "injected: the next sync takes 120 ms longer")
    assert now(engine).commit_latency.maximum >= 120 * MILLISECOND


def test_a_stall_where_there_is_no_sync_is_not_kept_for_later(start):
    engine = start(sync="none")
    await_commits(engine)
    engine.wal.stall_next_sync(Nanoseconds(3600 * 1000 * MILLISECOND))
    wait_for(lambda: said(engine, "no stall injected: in sync mode none there is no sync to stall"))

    engine.wal.set_sync("fdatasync")

    wait_for(lambda: now(engine).sync == "fdatasync")
    await_commits(engine)


# ---- Poison.


@pytest.mark.parametrize(
    ("sync", "site"), [("fdatasync", "sync"), ("fsync", "sync"), ("dsync", "write"), ("none", "write")]
)
def test_an_injected_error_poisons_the_log_and_a_reopened_one_goes_on(sync, site, start):
    # One segment for the whole test: a fault that strikes while a segment is rolled is "at a roll".
    engine = start(sync=sync, handlers=4, device="serial:5ms", segment_size=64 * SEGMENT)
    await_commits(engine)

    engine.wal.fail_next_sync()

    wait_for(lambda: now(engine).state == "poisoned")
    poisoned = now(engine)
    wait_for(lambda: said(engine, f"EIO at a {site}: the log is poisoned; nothing above txid "))
    assert said(engine, f"injected: the next {site} fails with EIO")
    assert poisoned.poison == "Input/output error (EIO)"
    assert (poisoned.sync_errors, poisoned.write_errors) == ((1, 0) if site == "sync" else (0, 1))
    engine.wal.start()  # no handler runs on a poisoned log
    engine.wal.set_model("handler")  # kept for the next opening

    engine.wal.reopen()

    wait_for(lambda: now(engine).state == "running")
    again = await_commits(engine)
    assert again.epoch > poisoned.epoch
    assert again.model == "handler"
    assert again.durable_txid >= poisoned.durable_txid
    assert again.poison == ""
    assert said(engine, "recovered up to txid ")


# ---- Trouble.


def test_a_path_that_cannot_be_a_log_is_told_and_can_be_tried_again(start, disk_path):
    (disk_path / "log").write_text("a file of someone else")
    engine = start()

    wait_for(lambda: said(engine, "log"))

    found = engine.wal.sample()
    assert isinstance(found, Absent)
    assert str(disk_path / "log") in found.reason
    engine.wal.set_model("handler")
    engine.wal.fail_next_sync()
    engine.wal.stall_next_sync(Nanoseconds(1))
    (disk_path / "log").unlink()
    engine.wal.reopen()
    assert await_commits(engine).model == "handler"


def test_a_log_that_another_has_open_is_told(start, disk_path):
    with Log.open(disk_path / "log", segment_size=SEGMENT):
        engine = start()

        wait_for(lambda: said(engine, "has this log open for writing"))


def test_the_lane_lives_on_when_its_folder_is_taken_away(start, disk_path):
    engine = start(device="serial:20ms", handlers=1)  # slow: a roll would find the folder gone and stop the log
    await_commits(engine)

    wait_for(lambda: taken_away(disk_path / "log"), what="the folder to go, whatever is made in it meanwhile")

    wait_for(lambda: said(engine, "see how much room there is"))
    engine.wal.set_handlers(2)
    wait_for(lambda: now(engine).handlers == 2)
    assert sum("see how much room there is" in event.text for event in engine.sample().events) == 1


def taken_away(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_space_stays_bounded_while_the_lane_runs(start, disk_path):
    engine = start(sync="none", segment_size=64 << 10)

    wait_for(lambda: now(engine).rolls > 40, what="many rolls")

    wait_for(lambda: len(list((disk_path / "log").glob("*.wal"))) <= 8, what="old segments to go")


# ---- The end.


def test_fifty_busy_handlers_end_and_the_log_is_sealed_and_free(disk_path):
    with no_leaked_descriptors():
        engine = Engine(WalSettings(path=disk_path / "log", handlers=50, segment_size=SEGMENT))
        engine.start()
        await_commits(engine, 200)

        assert engine.stop()

        last = engine.wal.sample()
        assert isinstance(last, WalSnapshot)
        assert (last.state, last.handlers) == ("closed", 0)
        assert last.durable_txid == last.appended_txid >= 200
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith(("wal-", "handler-"))]
        with Log.open(disk_path / "log", segment_size=SEGMENT) as log:
            assert log.durable_txid == last.durable_txid


def test_an_engine_that_never_started_ends(tmp_path):
    engine = Engine(WalSettings(path=tmp_path / "log"))

    assert isinstance(engine.wal.sample(), Absent)
    assert engine.stop()


def test_a_poisoned_lane_ends(start):
    engine = start()
    await_commits(engine)
    engine.wal.fail_next_sync()
    wait_for(lambda: now(engine).state == "poisoned")

    assert engine.stop()
