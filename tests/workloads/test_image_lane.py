"""The image lane: it loads what it is told to, says how far it is, and gives memory back."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from engine.errors import BadValue, UnknownChoice
from engine.events import EventLog
from engine.measure.clock import SystemClock
from engine.native.kernel import compile_all
from engine.snapshot import Absent, ImageSnapshot, ImageSummary
from engine.units import MIB
from engine.workloads.image_lane import ImageLane, ImageSettings
from engine.workloads.image_tree import TreeListing
from tests.programs import ROOT
from tests.waiting import wait_for

SMALL, SLOW = 20_000, 400_000


class Running:
    """A lane and its events."""

    def __init__(self, scratch: Path, inodes: int = SMALL) -> None:
        clock = SystemClock()
        self.events = EventLog(clock)
        self.lane = ImageLane(ImageSettings(scratch=scratch, synthetic_inodes=inodes), clock, self.events)

    def until(self, *states: str) -> ImageSnapshot:
        """Wait for a state."""
        return wait_for(lambda: now if (now := self.lane.sample()).state in states else None, what=f"{states}")

    def said(self, words: str) -> bool:
        return any(words in event.text for event in self.events.newest())

    def listing(self, row: int | None = None, first: int = 0, count: int = 50) -> TreeListing:
        found = self.lane.list_children(row, first, count)
        assert isinstance(found, TreeListing)
        return found


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """Compile what a load would: one that compiles first outlasts a deadline on a busy machine."""
    import engine.fsimage.directory_sums
    import engine.fsimage.load
    import engine.fsimage.synth  # noqa: F401

    compile_all()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path / "images")
    yield running
    assert running.lane.close()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Running]:
    """A lane whose loads by `objects` take seconds."""
    running = Running(tmp_path / "images", SLOW)
    running.lane.set_strategy("objects")
    yield running
    assert running.lane.close()


def anonymous_bytes() -> int:
    """RssAnon of this process."""
    return psutil.Process().memory_info().rss - psutil.Process().memory_info().shared


def test_a_lane_that_was_not_started_has_no_thread_and_loads_no_numba(tmp_path: Path) -> None:
    program = (
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from engine.events import EventLog\n"
        "from engine.measure.clock import SystemClock\n"
        "from engine.workloads.image_lane import ImageLane, ImageSettings\n"
        f"settings = ImageSettings(scratch=Path({str(tmp_path)!r}) / 'x')\n"
        "lane = ImageLane(settings, SystemClock(), EventLog(SystemClock()))\n"
        "print(lane.sample().state, threading.active_count(), 'numba' in sys.modules, lane.close())\n"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["idle", "1", "False", "True"]
    assert not list(tmp_path.iterdir())


def test_without_a_file_a_synthetic_image_is_made_loaded_and_said_to_be_one(running: Running) -> None:
    running.lane.start()
    now = running.until("loaded")

    assert now.is_synthetic and now.layout.startswith("-18 ")
    assert now.inodes == now.lane_inodes == SMALL
    assert isinstance(now.summary, ImageSummary)
    assert now.summary.files + now.summary.directories == SMALL
    assert running.said("synthetic image of 20,000 inodes made")
    names = [(row.depth, row.name) for row in now.phases]
    assert names[:3] == [(0, "CompilingKernels"), (0, "LoadingFsImage"), (1, "Inodes")]
    assert {row.state for row in now.phases} == {"complete"}
    assert [row.outcome for row in now.runs] == ["complete"]
    made = Path(now.image).stat().st_mtime_ns

    running.lane.start()
    wait_for(lambda: running.lane.sample().lane_loads == 2)
    assert Path(now.image).stat().st_mtime_ns == made, "it is made once"


def test_progress_only_grows_and_ends_at_the_totals(running: Running) -> None:
    running.lane.set_threads(2)
    running.lane.start()
    now = running.until("loaded")

    points = now.progress
    assert len(points) >= 1
    for before, after in pairwise(points):
        assert before.elapsed_ns < after.elapsed_ns
        assert before.inodes <= after.inodes and before.read_bytes <= after.read_bytes
        assert all(a <= b for a, b in zip(before.cpu_ns, after.cpu_ns, strict=False))
    assert points[-1].read_bytes == now.read_bytes
    assert points[-1].inodes >= SMALL
    assert [thread.name for thread in now.cpu][:1] == ["1"]
    assert now.cpu[0].cpu_ns > 0


def test_the_summary_is_that_of_the_columns(running: Running) -> None:
    running.lane.start()
    now = running.until("loaded")
    namespace = running.lane._job.loaded.namespace  # type: ignore[union-attr]
    sizes = {row: namespace.size(row) for row in range(namespace.rows)}

    assert isinstance(now.summary, ImageSummary)
    assert now.summary.content_bytes == sum(sizes.values())
    largest = max(range(namespace.rows), key=lambda row: sum(sizes[int(child)] for child in namespace.children(row)))
    first = now.summary.largest[0]
    assert first.size_bytes == sum(sizes[int(child)] for child in namespace.children(largest))
    assert [d.size_bytes for d in now.summary.largest] == sorted(
        (d.size_bytes for d in now.summary.largest), reverse=True
    )

    def below(row: int) -> tuple[int, int]:
        files, size = 0, sizes[row]
        for child in namespace.children(row):
            more = below(int(child))
            files, size = files + more[0] + (namespace.kind(int(child)) != 2), size + more[1]
        return files, size

    root = running.listing()
    for entry in root.entries:
        if entry.kind == "directory":
            assert (entry.files, entry.size_bytes) == below(entry.row)


def test_a_directory_is_listed_as_far_as_it_is_looked_at(running: Running) -> None:
    running.lane.start()
    running.until("loaded")

    root = running.listing()
    assert (root.path, root.above, root.total) == ("/", None, len(root.entries))
    folder = next(entry for entry in root.entries if entry.kind == "directory")
    inside = running.listing(folder.row, 1, 2)
    assert (inside.above, inside.path) == (root.row, f"/{folder.name}")
    assert len(inside.entries) == min(2, inside.total - 1)
    assert running.lane.place_of(folder.row) == [entry.row for entry in root.entries].index(folder.row)
    assert running.listing(folder.row, 10**9, 5).total == inside.total


def test_letting_an_image_go_frees_its_columns_at_once(running: Running) -> None:
    running.lane.start()
    running.until("loaded")
    loaded = running.lane._job.loaded  # type: ignore[union-attr]
    assert loaded is not None
    columns = [
        weakref.ref(column) for column in (*loaded.namespace.inodes, *loaded.namespace.blocks, *loaded.sums._sums)
    ]
    del loaded

    running.lane.cancel()
    running.until("idle")

    wait_for(lambda: not [column for column in columns if column() is not None])
    assert isinstance(running.lane.list_children(None, 0, 5), Absent)
    assert running.said("image let go")


def test_a_cancelled_load_of_objects_leaves_none(slow: Running) -> None:
    from engine.fsimage.strategies import Node

    slow.lane.start()
    wait_for(lambda: slow.lane.sample().inodes >= 20_000, what="some objects")

    slow.lane.cancel()
    slow.until("cancelled")

    assert not [found for found in gc.get_objects() if type(found) is Node]  # isinstance asks dead proxies
    assert slow.lane.sample().lane_cancelled_loads == 1
    assert slow.said("cancelled; its memory is free")


def test_a_load_by_columns_that_is_cancelled_leaves_no_column(tmp_path: Path) -> None:
    running = Running(tmp_path, 2_000_000)
    running.lane.open_synthetic("protobuf")
    before = wait_for(lambda: anonymous_bytes() if running.lane.sample().state == "loading" else 0)
    wait_for(lambda: running.lane.sample().inodes >= 200_000 or running.lane.sample().state == "loaded")

    running.lane.cancel()
    running.until("cancelled", "idle")

    wait_for(lambda: anonymous_bytes() - before < 60 * MIB, what="memory: its columns take 250 MB")
    assert running.lane.close()


def test_another_load_cancels_the_one_that_runs_and_follows_it(slow: Running) -> None:
    slow.lane.start()
    wait_for(lambda: slow.lane.sample().inodes >= 10_000)

    slow.lane.set_strategy("columnar")
    slow.lane.start()
    now = slow.until("loaded")

    assert [(row.strategy, row.outcome) for row in now.runs] == [("objects", "cancelled"), ("columnar", "complete")]
    assert now.lane_inodes > now.inodes == SLOW


def test_closing_ends_a_load(tmp_path: Path) -> None:
    running = Running(tmp_path, SLOW)
    running.lane.set_strategy("lean")
    running.lane.start()
    wait_for(lambda: running.lane.sample().inodes >= 10_000)

    assert running.lane.close()

    assert running.lane.sample().state == "closed"


@pytest.mark.parametrize("strategy", ["parent-cache", "lean", "objects"])
def test_other_strategies_are_timed_and_keep_nothing(running: Running, strategy: str) -> None:
    running.lane.set_strategy(strategy)
    running.lane.start()
    now = running.until("loaded")

    (row,) = now.runs
    assert (row.strategy, row.threads, row.inodes, row.outcome) == (strategy, 1, SMALL, "complete")
    assert row.resolve_calls > 0 and row.resolve_ns
    assert isinstance(now.summary, Absent)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not an image", "not an fsimage: it starts with 'not an i'; allowed is HDFSIMG1"),
        (b"HDFSIMG1" + bytes(20), "FileSummary section, byte 0: a summary of 0 bytes, allowed 1 to"),
        (None, "cannot read: No such file or directory"),
    ],
    ids=["no-image", "cut", "missing"],
)
def test_what_cannot_be_loaded_is_one_line_that_says_why(
    running: Running, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "fsimage_\x1b[2J"
    if content is not None:
        path.write_bytes(content)

    running.lane.open(path)
    now = running.until("failed")

    assert words in now.error
    assert now.error.isprintable()
    assert running.said(now.error)
    assert now.lane_failed_loads == 1


def test_a_strategy_that_cannot_read_the_layout_says_what_it_can(running: Running) -> None:
    running.lane.set_strategy("lean")
    running.lane.open_synthetic("protobuf")

    assert "allowed is a legacy layout for strategy lean" in running.until("failed").error


def test_wrong_values_are_refused_at_once(running: Running) -> None:
    with pytest.raises(UnknownChoice, match="columnar, parent-cache, lean, objects"):
        running.lane.set_strategy("fast")
    with pytest.raises(BadValue, match="1 to 64"):
        running.lane.set_threads(0)
    with pytest.raises(UnknownChoice, match="legacy, protobuf"):
        running.lane.open_synthetic("new")


def test_an_md5_that_does_not_match_is_said(running: Running) -> None:
    running.lane.start()
    image = Path(running.until("loaded").image)
    wait_for(lambda: running.lane.sample().md5 == "match")
    sidecar = image.with_name(image.name + ".md5")
    sidecar.write_text(f"{'0' * 32} *{image.name}\n")

    running.lane.start()

    wait_for(lambda: running.lane.sample().md5 == "mismatch")
    wait_for(lambda: running.said("the .md5 file says 0000"))


@pytest.mark.parametrize(
    ("name", "inodes"),
    [
        ("hdfs/fsimage/rich_plain.fsimage", 2324),
        ("hdfs/fsimage/rich_parallel_gzip.fsimage", 2324),
        ("fsimages/legacy/hadoop-0.18-layout16.img", 22),
        ("fsimages/legacy/hadoop-2.0-layout40.img", 9),
    ],
)
def test_images_of_real_name_nodes_are_loaded_and_summed_up(
    running: Running, shared: Path, name: str, inodes: int
) -> None:
    running.lane.open(shared / "data" / name)
    now = running.until("loaded", "failed")

    assert (now.state, now.error, now.inodes, now.is_synthetic) == ("loaded", "", inodes, False)
    assert isinstance(now.summary, ImageSummary)
    assert now.summary.files + now.summary.directories + now.summary.symlinks == inodes
