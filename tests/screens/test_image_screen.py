"""The Image screen: what it looks like in each state, and what its keys do."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dashboard.image_window import rate_line, thread_use
from dashboard.keys import STRATEGIES, keys_on, next_threads
from dashboard.terminal import Terminal
from dashboard.widgets.phase_tree import shown_phases
from engine.snapshot import PhaseRow
from engine.workloads.image_files import list_folder
from engine.workloads.image_job import STRATEGIES as KNOWN
from tests.screens.stage import Stage
from tests.snapshots import image_snapshot

Golden = Callable[[str, str], None]
SIZES = [(160, 45), (100, 30), (80, 24), (60, 16)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_load_under_way_and_then_its_summary(perform, golden: Golden, size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("4", "s")
        stage.let_work(1.25)
        stage.pass_time(4)
        stage.app._paused_at = stage.app.history.newest_ns - 4_000_000_000  # the instant it was at 62 %
        await stage.settle()
        golden(f"screens/image-loading-{size[0]}x{size[1]}.txt", stage.text())

        stage.app._paused_at = None
        await stage.settle()
        golden(f"screens/image-loaded-{size[0]}x{size[1]}.txt", stage.text())

    perform(play, size=size, without_ramdisk="none here")


def test_before_anything_is_loaded_it_says_what_to_press(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("4")
        golden("screens/image-idle.txt", stage.text())

    perform(play, without_ramdisk="none here")


def test_strategies_are_compared_in_a_list_of_loads(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("4", "s")
        stage.let_work(4)
        for _ in STRATEGIES[1:]:
            await stage.press("m", "s")
            stage.let_work(11)
        await stage.settle()
        stage.app.say("")
        await stage.settle()

        golden("screens/image-strategies.txt", stage.text())
        assert "999,999 searches for a parent" in stage.text()

    perform(play, size=(160, 45), without_ramdisk="none here")


def test_a_load_that_fails_is_one_line_that_says_why(perform, golden: Golden) -> None:
    async def play(stage: Stage) -> None:
        stage.engine.image.fails = "fsimage_7: INODE section, byte 1,048,583: a name of 4,210,688 bytes, allowed 65,535"
        await stage.press("4", "s")
        stage.let_work(4)
        await stage.settle()

        assert "fsimage_7: INODE section, byte 1,048,583: a name of 4,210,688 bytes" in stage.text()
        assert "failed" in stage.text()

    perform(play)


def test_plain_characters_do_for_every_part_of_it(perform) -> None:
    async def play(stage: Stage) -> None:
        for keys in (("4",), ("s",), ("b", "down", "enter", "escape"), ("o", "down", "escape")):
            await stage.press(*keys)
            stage.let_work(4)
            await stage.settle()
            assert stage.text().isascii(), keys

    perform(play, size=(80, 24), terminal=Terminal("none", plain=True))


def test_keys_ask_the_lane_and_say_so(perform) -> None:
    async def play(stage: Stage) -> None:
        image = stage.engine.image
        await stage.press("4", "m", "m", "plus", "plus", "minus")
        assert image.calls == [
            *(("strategy", "parent-cache"), ("strategy", "lean")),
            *(("threads", 3), ("threads", 4), ("threads", 3)),
        ]
        assert "threads of the next load" in stage.text()

        await stage.press("x")
        assert "nothing to cancel" in stage.text()
        await stage.press("b")
        assert "no tree to browse" in stage.text()

        image.calls.clear()
        await stage.press("s")
        stage.let_work(0.5)
        await stage.press("s")
        assert image.calls == [("start",)] and "x cancels it" in stage.text()
        await stage.press("x")
        assert image.calls[-1] == ("cancel",)
        stage.let_work(1)
        await stage.settle()
        assert "the load was cancelled" in stage.text()

    perform(play)


def test_keys_of_the_log_do_nothing_where_the_log_is_not_seen(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("4", "d", "y", "f")
        assert stage.calls == []
        assert "that key is the log's" in stage.text()

        await stage.press("2", "d")
        assert stage.calls == [("device", "serial:5ms")]

    perform(play)


def test_the_footer_offers_the_keys_of_the_screen() -> None:
    labels = [key.label for key in keys_on("image") if key.in_footer]

    assert labels[:2] == ["pause", "load"]
    assert not {"handlers", "model", "device", "fault"} & set(labels)


def test_strategies_are_those_of_the_engine_and_threads_step() -> None:
    assert STRATEGIES == KNOWN
    assert (next_threads(1, -1), next_threads(2, 1), next_threads(64, 1), next_threads(5, -1)) == (1, 3, 64, 4)


@pytest.mark.parametrize("size", [(100, 30), (60, 16)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_tree_is_browsed_and_hostile_names_are_harmless(perform, golden: Golden, size: tuple[int, int]) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("4", "s")
        stage.let_work(4)
        await stage.press("b", "down", "down", "down")
        golden(f"screens/image-browser-{size[0]}x{size[1]}.txt", stage.text())
        assert not any(c in stage.text() for c in "\x1b\x07\u202e")
        assert "evil \\x1b[2J" in stage.text()

        await stage.press("enter")
        assert "inside" in stage.text() and "1 of 1" in stage.text()
        await stage.press("backspace")
        assert "4 of 5" in stage.text(), "back where one came from"
        await stage.press("home", "enter", "end")
        assert "80 of 80" in stage.text() and "part-00079" in stage.text()
        await stage.press("home", "pagedown", "down")
        assert "part-00000" not in stage.text() or size[1] > 24
        await stage.press("escape")
        assert "namespace" in stage.text()

    perform(play, size=size)


def test_an_image_that_is_let_go_ends_the_browsing_in_words(perform) -> None:
    async def play(stage: Stage) -> None:
        await stage.press("4", "s")
        stage.let_work(4)
        await stage.press("b")
        stage.engine.image.cancel()
        await stage.press("down")
        assert "no image is loaded" in stage.text()

    perform(play)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a NameNode has one, and what else may stand in it."""
    (tmp_path / "fsimage_1").write_bytes(b"HDFSIMG1" + bytes(100))
    (tmp_path / "renamed.txt").write_bytes(struct.pack(">i", -18) + bytes(60))
    (tmp_path / "fsimage_2").write_bytes(b"no image at all")
    (tmp_path / "evil\x1b[2J").write_bytes(b"HDFSIMG1" + bytes(9))
    (tmp_path / "edits").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fsimage_1")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    return tmp_path


def test_a_folder_is_listed_with_images_told_by_their_first_bytes(folder: Path) -> None:
    listing = list_folder(folder)

    kinds = {entry.path.name: (entry.kind, entry.layout) for entry in listing.entries}
    assert kinds == {
        "fsimage_1": ("image", "protobuf"),
        "renamed.txt": ("image", "legacy -18"),
        "evil\x1b[2J": ("image", "protobuf"),
        "link": ("image", "protobuf"),
        "edits": ("folder", ""),
    }
    assert listing.others == 2


def test_the_picker_shows_a_folder_and_opens_what_is_chosen(perform, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder / "edits")

    async def play(stage: Stage) -> None:
        await stage.press("4", "o")
        assert "synthetic image, legacy layout" in stage.text()
        await stage.press("backspace")
        assert "evil\\x1b[2J" in stage.text() and "\x1b" not in stage.text()
        assert "renamed.txt" in stage.text() and "legacy -18" in stage.text()
        assert "2 other files" in stage.text()

        await stage.press("enter")
        asked, path = stage.engine.image.calls[-1]
        assert asked == "open" and path in set(folder.iterdir())

        await stage.press("o", "home", "down", "enter")
        assert stage.engine.image.calls[-1] == ("synthetic", "protobuf")

    perform(play, size=(120, 30))


def test_a_folder_that_cannot_be_read_says_why(perform, folder: Path, monkeypatch) -> None:
    gone = folder / "edits"
    monkeypatch.chdir(gone)
    gone.rmdir()

    async def play(stage: Stage) -> None:
        await stage.press("4", "o")
        assert "1 of" in stage.text(), "the folder one stands in is gone: begin at the top"
        await stage.press("escape")
        stage.app._image_keys._folder = gone
        await stage.press("o")
        assert "cannot list it: No such file or directory" in stage.text()

    perform(play, size=(160, 45))


def test_rates_are_differences_over_the_loads_own_time() -> None:
    image = image_snapshot()

    line = rate_line(image, lambda point: point.inodes, 20)

    assert line == pytest.approx([4_000_000.0] * 20)
    uses = {use.name: use.share for use in thread_use(image)}
    assert uses == pytest.approx({"1": 0.9, "2": 0.6, "md5": 0.22})


def test_a_running_load_shows_what_threads_did_in_its_last_moments() -> None:
    idle_since = tuple(
        msgspec.structs.replace(point, elapsed_ns=point.elapsed_ns * 10, cpu_ns=(point.cpu_ns[0], 90_000_000, 0))
        for point in image_snapshot().progress
    )

    uses = {use.name: use.share for use in thread_use(image_snapshot(state="loading", progress=idle_since))}

    assert uses["2"] == 0


def test_where_phases_do_not_fit_those_that_run_and_take_longest_stay() -> None:
    rows = [
        PhaseRow(0, "LoadingFsImage", "running", 0, None, 0, None, 900, None, 0.5),
        PhaseRow(1, "StringTable", "complete", 1, 1, 0, None, 1, None, 1.0),
        PhaseRow(1, "Inodes", "running", 1, 9, 0, None, 800, None, 0.5),
        PhaseRow(2, "scan", "complete", 1, 1, 0, None, 500, None, 1.0),
        PhaseRow(2, "reach", "complete", 1, 1, 0, None, 2, None, 1.0),
    ]

    assert [row.name for row in shown_phases(rows, 3)] == ["LoadingFsImage", "Inodes", "scan"]
