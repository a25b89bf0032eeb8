"""The RAM-disk lane: controls act, and what came of them is seen in snapshots and events."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import BadValue, UnknownChoice
from engine.events import EventLog
from engine.measure.clock import SystemClock
from engine.native.kernel import compile_all
from engine.snapshot import Absent, RamdiskSnapshot
from engine.units import MIB
from engine.workloads.ramdisk_lane import RamdiskLane, RamdiskSettings
from tests.ramdisk.store_kit import ram_parent
from tests.waiting import wait_for

FILE = 2 * MIB


class Running:
    """A lane and its events."""

    def __init__(self, ram: Path, disk: Path) -> None:
        clock = SystemClock()
        self.events = EventLog(clock)
        self.settings = RamdiskSettings(
            ram_dir=ram,
            disk_dirs=(disk / "volume",),
            ram_capacity=16 * MIB,
            rate=20 * MIB,
            block_size=1 * MIB,
            file_size=FILE,
            copy_mode="buffered",
        )
        self.lane = RamdiskLane(self.settings, clock, self.events)

    def now(self) -> RamdiskSnapshot:
        """Return a snapshot, waiting for the store to be open."""
        taken = wait_for(lambda: None if isinstance(sample := self.lane.sample(), Absent) else sample)
        assert isinstance(taken, RamdiskSnapshot)
        return taken

    def said(self, words: str) -> bool:
        return any(words in event.text for event in self.events.newest())


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """Compile what opening a store would: a lane that compiles first outlasts a deadline on a busy machine."""
    compile_all()


@pytest.fixture
def running(disk_path: Path) -> Iterator[Running]:
    with ram_parent() as ram:
        running = Running(ram, disk_path)
        yield running
        assert running.lane.close()


def test_the_stream_writes_and_the_lazy_writer_follows(running: Running) -> None:
    running.lane.start()

    wait_for(lambda: running.now().persisted_blocks >= 4)

    now = running.now()
    assert now.state == "streaming"
    assert now.ram_blocks_written >= 4 and now.fallback_blocks == 0
    assert sum(now.persist_window.counts) == now.persisted_blocks
    assert now.persist_busy_ns > 0
    assert {row.state for row in now.replicas} <= {"at risk", "persisted"}


def test_stopping_the_stream_lets_the_backlog_drain(running: Running) -> None:
    running.lane.start()
    wait_for(lambda: running.now().ram_blocks_written >= 2)

    running.lane.stop()

    wait_for(lambda: running.now().state == "idle" and running.now().backlog_bytes == 0)
    assert running.now().oldest_at_risk_ns == 0


def test_a_throttled_disk_makes_the_backlog_grow_and_fall_back(running: Running) -> None:
    running.lane.set_persist_rate(1000)
    running.lane.start()
    running.lane.fill()

    wait_for(lambda: running.now().fallback_blocks >= 1)

    now = running.now()
    assert now.backlog_bytes >= 10 * MIB
    assert now.oldest_at_risk_ns > 0
    assert now.persist_rate_bytes == 1000
    assert now.replicas[0].state == "at risk"
    assert running.said("simulated slow disk")


def test_checksum_and_copy_mode_change_while_it_runs(running: Running) -> None:
    running.lane.start()
    wait_for(lambda: running.now().ram_blocks_written >= 1)

    running.lane.set_checksum("deferred")
    running.lane.set_copy_mode("fadvise")

    wait_for(lambda: (running.now().checksum, running.now().copy_mode) == ("deferred", "fadvise"))
    before = running.now().persisted_blocks
    wait_for(lambda: running.now().persisted_blocks > before + 2)


def test_a_wipe_is_a_new_epoch_and_names_what_was_lost(running: Running) -> None:
    running.lane.set_persist_rate(1000)
    running.lane.start()
    wait_for(lambda: running.now().files >= 2)

    running.lane.wipe()

    wait_for(lambda: running.said("memory wiped") and running.said("are lost: 'stream-"))
    wait_for(lambda: running.now().epoch == 2 and running.now().ram_blocks_written >= 1)
    assert running.now().lost_files >= 1


def test_a_store_that_does_not_open_says_why(running: Running, disk_path: Path) -> None:
    (disk_path / "volume").mkdir()
    (disk_path / "volume" / "mine").write_text("x")
    running.lane.start()

    wait_for(lambda: running.said("it holds 'mine'"))

    sample = running.lane.sample()
    assert isinstance(sample, Absent) and "it holds 'mine'" in sample.reason


def test_a_store_that_did_not_open_is_tried_again(running: Running, disk_path: Path) -> None:
    (disk_path / "volume").mkdir()
    (disk_path / "volume" / "mine").write_text("x")
    running.lane.start()
    wait_for(lambda: running.said("it holds 'mine'"))

    (disk_path / "volume" / "mine").unlink()
    running.lane.start()

    wait_for(lambda: running.now().ram_blocks_written >= 1)


def test_wrong_values_are_refused_at_once(running: Running) -> None:
    with pytest.raises(UnknownChoice, match="allowed is on, deferred, off"):
        running.lane.set_checksum("later")
    with pytest.raises(UnknownChoice, match="buffered, sendfile, direct, fadvise"):
        running.lane.set_copy_mode("x")
    with pytest.raises(BadValue, match="0 or more"):
        running.lane.set_rate(-1)


def test_a_ram_folder_that_goes_away_is_told_and_the_stream_goes_on(running: Running) -> None:
    running.lane.start()
    wait_for(lambda: running.now().ram_blocks_written >= 1)
    for folder in Path(running.settings.ram_dir).glob("tidegauge-*"):
        shutil.rmtree(folder)

    wait_for(lambda: running.now().fallback_blocks >= 1)

    wait_for(lambda: running.said("is gone: blocks go to disk"))
