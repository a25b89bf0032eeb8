"""An image lane that reads nothing and reports plausibly: a load of a million inodes that takes two seconds.

A load goes through the phases of a real one at a steady pace, by the clock; the tree that can be browsed is a small
one, with names as a hostile image has them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.snapshot import (
    Absent,
    ImageProgress,
    ImageRun,
    ImageSnapshot,
    ImageSummary,
    ImageThread,
    LargeDirectory,
    PhaseRow,
)
from engine.workloads.image_tree import TreeEntry, TreeListing

INODES = 1_000_000
SIZE = 128_561_251
LOAD_NS = 2_000_000_000
SLOWER = {"columnar": 1, "parent-cache": 2, "lean": 3, "objects": 5}
# name, depth, from, to: shares of the load's time
_STEPS = (
    ("scan", 2, 0.0, 0.36),
    ("columns", 2, 0.36, 0.8),
    ("owners", 2, 0.8, 0.82),
    ("children", 2, 0.82, 0.89),
    ("order", 2, 0.89, 0.97),
    ("reach", 2, 0.97, 1.0),
)
_LATER = ("DelegationKeys", "DelegationTokens", "CachePools", "CacheEntries")
SUMMARY = ImageSummary(
    files=914_738,
    directories=85_261,
    symlinks=1,
    blocks=1_204_118,
    content_bytes=52_939_373_725_522,
    open_files=3,
    hdfs_snapshots=2,
    snapshot_only=7,
    name_bytes=14_211_098,
    column_bytes=98_740_112,
    troubles=(),
    trouble_count=0,
    largest=tuple(
        LargeDirectory(
            f"/user/u{user:06d}/project-{user % 7}/data/part={user * 13 % 97:03d}", 2000 - user, (149 - user) * 10**9
        )
        for user in range(1, 13)
    ),
)
TREE = {
    0: ("", None, [1, 2, 3, 4, 5]),
    1: ("data", 0, list(range(100, 180))),
    2: ("tmp", 0, []),
    3: ("user", 0, [6]),
    4: ("evil \x1b[2J\x07name\u202e", 0, [7]),
    5: ("zz.log", 0, None),
    6: ("hdfs", 3, [8]),
    7: ("inside", 4, None),
    8: ("a" * 200, 6, None),
} | {row: (f"part-{row - 100:05d}", 1, None) for row in range(100, 180)}

Say = Callable[[str, str], None]


class FakeImage:
    """Looks like engine.workloads.image_lane.ImageLane from outside; `advance` moves it to an instant."""

    def __init__(self, say: Say, now_ns: int) -> None:
        self.calls: list[tuple[object, ...]] = []
        self._say, self._now, self._began = say, now_ns, now_ns
        self._epoch, self._state, self._error = 0, "idle", ""
        self._image, self._is_synthetic, self._next = (
            "/scratch/synthetic_legacy",
            True,
            "synthetic image (1M inodes, legacy)",
        )
        self._strategy = self._next_strategy = "columnar"
        self._threads = self._next_threads = 2
        self._elapsed = 0
        self._runs: tuple[ImageRun, ...] = ()
        self._has_summary = False
        self.summary = SUMMARY
        self.fails = ""

    # Controls.

    def start(self) -> None:
        self._asked("start")
        self._load()

    def open(self, path: Path) -> None:
        self._asked("open", path)
        self._image = self._next = str(path)
        self._is_synthetic = False
        self._load()

    def open_synthetic(self, layout: str) -> None:
        self._asked("synthetic", layout)
        self._image, self._next = f"/scratch/synthetic_{layout}", f"synthetic image (1M inodes, {layout})"
        self._is_synthetic = True
        self._load()

    def set_strategy(self, strategy: str) -> None:
        self._asked("strategy", strategy)
        self._next_strategy = strategy

    def set_threads(self, threads: int) -> None:
        self._asked("threads", threads)
        self._next_threads = threads

    def cancel(self) -> None:
        self._asked("cancel")
        if self._state == "loading":
            self._end("cancelled")
            self._say("info", f"load of {self._next} cancelled; its memory is free")
        elif self._has_summary:
            self._state, self._has_summary = "idle", False

    def list_children(self, row: int | None, first: int, count: int) -> TreeListing | Absent:
        if not self._has_summary:
            return Absent("no image is loaded")
        at = row or 0
        children = TREE[at][2] or []
        start = min(max(first, 0), max(len(children) - 1, 0))
        return TreeListing(
            at,
            _path(at),
            TREE[at][1],
            _entry(at),
            len(children),
            start,
            tuple(_entry(child) for child in children[start : start + count]),
        )

    def place_of(self, row: int) -> int:
        above = TREE[row][1]
        return 0 if above is None else (TREE[above][2] or []).index(row)

    # What moves it.

    def advance(self, now_ns: int) -> None:
        self._now = now_ns
        if self._state == "loading":
            self._elapsed = min(now_ns - self._began, self._whole)
            if self.fails and self._elapsed > self._whole // 3:
                self._error = self.fails
                self._end("failed")
                self._say("error", self.fails)
            elif self._elapsed == self._whole:
                self._end("complete")
                self._say("info", f"{self._next}: {INODES:,} inodes in {self._whole / 1e9:g} s")

    def sample(self) -> ImageSnapshot:
        share = self._elapsed / self._whole if self._epoch else 0.0
        loaded = round(INODES * min(max((share - 0.36) / 0.44, 0.0), 1.0))
        points = tuple(self._point(number / 40) for number in range(1, 41) if number / 40 <= share)
        return ImageSnapshot(
            epoch=self._epoch,
            epoch_started_ns=self._began,
            state=self._state,  # type: ignore[arg-type]
            error=self._error,
            image=self._image,
            is_synthetic=self._is_synthetic,
            layout="-18 (space quotas; Hadoop 0.19 and 0.20)" if self._epoch else "",
            codec="",
            size_bytes=SIZE if self._epoch else 0,
            strategy=self._strategy,
            threads=self._threads,
            next_image=self._next,
            next_strategy=self._next_strategy,
            next_threads=self._next_threads,
            md5="match" if self._has_summary else "none",
            md5_bytes=SIZE if self._has_summary else 0,
            inodes=loaded,
            read_bytes=points[-1].read_bytes if points else 0,
            elapsed_ns=self._elapsed,
            phases=self._phases(share) if self._epoch else (),
            cpu=self._cpu(share) if self._epoch else (),
            progress=points,
            summary=self.summary if self._has_summary else Absent("no image is loaded"),
            runs=self._runs,
            lane_inodes=INODES * sum(run.outcome == "complete" for run in self._runs),
            lane_read_bytes=2 * SIZE * len(self._runs),
            lane_loads=sum(run.outcome == "complete" for run in self._runs),
            lane_cancelled_loads=sum(run.outcome == "cancelled" for run in self._runs),
            lane_failed_loads=sum(run.outcome == "failed" for run in self._runs),
        )

    @property
    def _whole(self) -> int:
        return LOAD_NS * SLOWER[self._strategy]

    def _asked(self, *call: object) -> None:
        self.calls.append(call)

    def _load(self) -> None:
        self._strategy, self._threads = self._next_strategy, self._next_threads
        self._epoch, self._began, self._elapsed = self._epoch + 1, self._now, 0
        self._state, self._error, self._has_summary = "loading", "", False
        self._say("info", f"loading {self._next} by {self._strategy}, {self._threads} threads")

    def _end(self, outcome: str) -> None:
        self._state = {"complete": "loaded"}.get(outcome, outcome)
        self._has_summary = outcome == "complete" and self._strategy == "columnar"
        calls, time = (81_094, None) if self._strategy == "columnar" else (999_999, 3_400_000_000)
        row = ImageRun(
            self._epoch, "synthetic", self._strategy, self._threads, outcome,  # type: ignore[arg-type]
            INODES if outcome == "complete" else 400_000, self._elapsed, calls, time,
        )  # fmt: skip
        self._runs = (*self._runs, row)

    def _point(self, share: float) -> ImageProgress:
        at = round(self._whole * share)
        busy = tuple(thread.cpu_ns for thread in self._cpu(share))
        done = {name: min(max((share - start) / (end - start), 0.0), 1.0) for name, _, start, end in _STEPS}
        read = done["scan"] ** 1.1 + done["columns"] ** 0.9
        return ImageProgress(at, round(INODES * read), round(SIZE * read), busy)

    def _cpu(self, share: float) -> tuple[ImageThread, ...]:
        second = max(min(share, 0.8) - 0.36, 0.0)
        times = {"1": 0.98 * share, "2": 0.93 * second, "md5": 0.55 * share}
        return tuple(ImageThread(name, round(self._whole * part)) for name, part in times.items())

    def _phases(self, share: float) -> tuple[PhaseRow, ...]:
        top = "failed" if self._state == "failed" else "complete" if share >= 1 else "running"
        rows = [
            PhaseRow(0, "LoadingFsImage", top, 0, None, 0, SIZE, self._elapsed, None, share),  # type: ignore[arg-type]
            PhaseRow(
                1, "Inodes", top, round(INODES * share), INODES, round(SIZE * share), None, self._elapsed, None, share
            ),  # type: ignore[arg-type]
        ]
        for name, depth, start, end in _STEPS if self._strategy == "columnar" else ():
            done = min(max((share - start) / (end - start), 0.0), 1.0)
            if done <= 0:
                continue
            state = "complete" if done >= 1 else top
            time = round(self._whole * (min(share, end) - start))
            count = round(INODES * done) if name in ("scan", "columns", "order") else 0
            rows.append(PhaseRow(depth, name, state, count, INODES, 0, None, time, None, done))  # type: ignore[arg-type]
        if share >= 1:
            rows += [PhaseRow(1, name, "complete", 0, 0, 0, None, 4_000, 3_000, 1.0) for name in _LATER]
        return tuple(rows)


def _path(row: int) -> str:
    name, above, _ = TREE[row]
    return "/" if above is None else f"{_path(above).rstrip('/')}/{name}"


def _entry(row: int) -> TreeEntry:
    name, _, children = TREE[row]
    is_directory = children is not None
    return TreeEntry(
        row=row,
        name=name,
        kind="directory" if is_directory else "file",
        size_bytes=row * 1_234_567_890,
        files=len(children or ()),
        owner="hdfs",
        group="super\x1bgroup" if row == 4 else "supergroup",
        mode=0o1777 if name == "tmp" else 0o755 if is_directory else 0o644,
        modified_ms=(1 << 62) if row == 7 else 1_400_000_000_000 + row * 86_400_000,
        replication=0 if is_directory else 3,
        blocks=0 if is_directory else 2,
        is_open=row == 5,
    )
