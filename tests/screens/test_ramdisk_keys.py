"""The keys of the RAM disk screen: on the fake each asks for what it says, on a real store it happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.keys import KEYS
from dashboard.ramdisk_keys import RamdiskKeys
from engine.events import EventLog
from engine.measure.clock import SystemClock
from engine.native.kernel import compile_all
from engine.snapshot import Absent, RamdiskSnapshot
from engine.units import MIB
from engine.workloads.ramdisk_lane import RamdiskLane, RamdiskSettings
from tests.ramdisk.store_kit import ram_parent
from tests.screens.stage import Stage
from tests.waiting import wait_for


def test_every_key_of_the_table_is_there() -> None:
    asked = [key.action.split("'")[1] for key in KEYS if key.lane == "ramdisk"]

    assert [what for what in asked if not hasattr(RamdiskKeys, f"_{what}")] == []


@pytest.mark.parametrize(
    ("key", "calls"),
    [
        ("plus", [("rate", 200 * MIB), ("rate", 500 * MIB), ("rate", 1000 * MIB)]),
        ("minus", [("rate", 50 * MIB), ("rate", 20 * MIB), ("rate", 10 * MIB)]),
        ("y", [("checksum", "deferred"), ("checksum", "off"), ("checksum", "on")]),
        ("m", [("copy", "fadvise"), ("copy", "buffered"), ("copy", "sendfile")]),
        ("d", [("limit", 50 * MIB), ("limit", 20 * MIB), ("limit", 5 * MIB)]),
        ("s", [("stop",), ("start",), ("stop",)]),
        ("f", [("fill",)] * 3),
    ],
)
def test_a_key_pressed_quickly_goes_on_from_what_was_asked_for(perform, key: str, calls: list[tuple]) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("3", key, key, key)

        assert stage.engine.ramdisk.calls == calls
        assert stage.calls == [], "the log is left alone"

    perform(play, seconds=2)


def test_on_other_screens_the_same_keys_are_the_logs(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("3", "2", "m", "plus")

        assert [call[0] for call in stage.calls] == ["model", "handlers"]
        assert stage.engine.ramdisk.calls == []

    perform(play, seconds=2)


@pytest.mark.parametrize(("answer", "calls"), [("y", [("wipe",)]), ("n", []), ("escape", [])])
def test_memory_is_wiped_only_after_a_yes(perform, answer: str, calls: list[tuple]) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("3", "w")
        assert "A simulated reboot: everything that is in memory only is lost." in stage.text()
        assert stage.engine.ramdisk.calls == []

        await stage.press(answer)
        assert stage.engine.ramdisk.calls == calls

    perform(play, seconds=2)


def test_without_a_ram_disk_a_key_says_why(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("3", "s")
        assert "no RAM disk: /dev/shm is full" in stage.text()

    perform(play, without_ramdisk="/dev/shm is full", seconds=2)


class RealLane(RamdiskLane):
    """A real store under the stage's fake engine; real time moves it."""

    def advance(self, now: int) -> None:
        """Leave it to its threads."""

    def now(self) -> RamdiskSnapshot:
        """Return a snapshot, waiting for the store to be open."""
        taken = wait_for(lambda: None if isinstance(sample := self.sample(), Absent) else sample)
        assert isinstance(taken, RamdiskSnapshot)
        return taken


@pytest.fixture
def lane(disk_path: Path) -> Iterator[RealLane]:
    compile_all()
    with ram_parent() as ram:
        clock = SystemClock()
        settings = RamdiskSettings(
            ram_dir=ram,
            disk_dirs=(disk_path / "volume",),
            ram_capacity=32 * MIB,
            rate=20 * MIB,
            block_size=MIB,
            file_size=2 * MIB,
            copy_mode="buffered",
            starts_streaming=False,
        )
        lane = RealLane(settings, clock, EventLog(clock))
        lane.start()
        yield lane
        assert lane.close()
        assert not list(ram.glob("*/*.open")), "nothing half written is left"


def test_the_keys_move_a_real_store(perform, lane: RealLane) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.ramdisk = lane
        assert lane.now().state == "idle"

        async def shown(key: str, condition) -> None:
            await stage.press(key)
            wait_for(lambda: condition(lane.now()), what=key)
            stage.pass_time(4)
            await stage.settle()

        await stage.press("3")
        stage.pass_time(1)
        await stage.settle()
        assert "press s to start the stream" in stage.text()

        await shown("s", lambda now: now.state == "streaming" and now.persisted_blocks > 2)
        assert "● streaming" in stage.text()
        await shown("y", lambda now: now.checksum == "deferred")
        await shown("m", lambda now: now.copy_mode == "sendfile")
        await shown("d", lambda now: now.persist_rate_bytes == 50 * MIB)
        await shown("d", lambda now: now.persist_rate_bytes == 20 * MIB)
        await shown("d", lambda now: now.persist_rate_bytes == 5 * MIB)
        assert "disk 5 MiB/s (simulated)" in stage.text()
        await shown("plus", lambda now: now.stream_rate_bytes == 50 * MIB)
        await shown("f", lambda now: now.fallback_blocks > 0)
        assert "at risk" in stage.text()
        await stage.press("w", "y")
        await shown("s", lambda now: now.epoch == 2 and now.lost_files > 0 and now.state == "idle")
        assert "the reboot took" in stage.text() or "draining" in stage.text() or "idle" in stage.text()

    perform(play, size=(160, 45), seconds=1)
