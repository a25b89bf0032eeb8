"""What the screens look like, as text: at the sizes we promise, and in the states a person meets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.starter import Starting
from dashboard.terminal import Terminal
from engine.units import MIB
from tests.screens.stage import Stage

Golden = Callable[[str, str], None]
SIZES = [(160, 45), (100, 30), (80, 24), (60, 16)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("screen", ["wal", "overview", "sources", "ramdisk"])
def test_a_screen_at_each_size(perform, golden: Golden, screen: str, size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.wal.stall_next_sync(500_000_000)
        if screen == "ramdisk":
            stage.engine.ramdisk.set_persist_rate(60 * MIB)
        stage.let_work(20)
        await stage.press({"wal": "2", "overview": "1", "sources": "5", "ramdisk": "3"}[screen])

        golden(f"screens/{screen}-{size[0]}x{size[1]}.txt", stage.text())

    perform(play, size=size, seconds=45)


@pytest.mark.parametrize("key", ["3"], ids=["ramdisk"])
def test_a_lane_that_does_not_run_says_so_and_why(perform, golden: Golden, key: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.press(key)

        golden(f"screens/not-running-{key}.txt", stage.text())

    perform(play, without_ramdisk="/dev/shm has 12 MiB free and the machine 900 MiB of memory; it needs 64 MiB")


def test_a_full_ram_disk_on_a_simulated_disk(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.ramdisk.set_persist_rate(20 * MIB)
        stage.engine.ramdisk.fill()
        stage.let_work(8)
        await stage.press("3")

        golden("screens/ramdisk-full.txt", stage.text())
        assert "RAM disk full" in stage.text()
        assert "(simulated)" in stage.text()

    perform(play)


def test_plain_characters(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        golden("screens/wal-80x24-ascii.txt", stage.text())
        assert stage.text().isascii()

        for key in ("question_mark", "escape", "f", "escape", "1", "3", "w", "escape", "5"):
            await stage.press(key)
            assert stage.text().isascii(), key

    perform(play, size=(80, 24), terminal=Terminal("16", plain=True))


def test_a_poisoned_log(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.wal.fail_next_sync()
        stage.let_work(3)
        await stage.settle()

        golden("screens/wal-poisoned.txt", stage.text())

    perform(play)


def test_a_paused_view_of_twelve_seconds_ago(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("space", "up", "left", "left")
        stage.let_work(4)
        await stage.settle()

        golden("screens/wal-paused.txt", stage.text())

    perform(play)


def test_a_simulated_device_is_named_so(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.wal.set_device("serial:5ms")
        stage.let_work(10)
        await stage.settle()

        golden("screens/wal-simulated.txt", stage.text())
        assert "serial 5 ms (simulated)" in stage.text()

    perform(play, size=(160, 45))


def test_the_start_shows_how_many_kernels_are_compiled(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        stage.app.history.__init__()  # as before the first snapshot
        stage.app._source, stage.source._latest = None, None
        stage.starting = Starting("compiling kernels, once", 12, 40)
        await stage.settle()

        golden("screens/starting.txt", stage.text())
        assert "compiling kernels, once: 12/40" in stage.text()

    perform(play)


@pytest.mark.parametrize("screen", ["question_mark", "f"], ids=["help", "faults"])
def test_a_dialog(perform, golden: Golden, screen: str) -> None:
    async def play(stage: Stage) -> None:
        await stage.press(screen)

        golden(f"screens/dialog-{screen}.txt", stage.text())

    perform(play)


@pytest.mark.parametrize("size", [(59, 16), (60, 15), (20, 5)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_terminal_that_is_too_small_is_told_what_is_needed(perform, size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        assert "needed 60 x 16" in stage.text()
        assert f"found  {size[0]} x {size[1]}" in stage.text()
        assert "ops/s" not in stage.text()

    perform(play, size=size)


def test_a_source_without_a_log_says_why(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        golden("screens/wal-absent.txt", stage.text())
        assert "the log is being opened" in stage.text()

    perform(play, without_wal="the log is being opened")
