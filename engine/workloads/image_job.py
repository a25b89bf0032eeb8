"""One load of an image, from its start to its end: what its thread does, and what others may see of it meanwhile.

    made      a synthetic image, where there is none to load (its own phases; no part of the load)
    compiled  kernels, which is nothing where that was done before
    loaded    columnar: a Namespace that stays; any other strategy: a tree of objects that is let go once timed
    summed up what lies below each directory

A job runs once. Its thread writes each field once, or replaces it whole, so a reader takes no lock. What it loads is
free soon after it is cancelled or let go: nothing else holds it.
"""

from __future__ import annotations

import gc
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.errors import TidegaugeError, printable
from engine.measure.clock import Clock
from engine.measure.phases import PhaseSnapshot, PhaseTree
from engine.measure.thread_cpu import thread_cpu_ns
from engine.snapshot import (
    Absent,
    ImageProgress,
    ImageRun,
    ImageSummary,
    ImageThread,
    LargeDirectory,
    PhaseRow,
)
from engine.storage.space import shortage
from engine.units import Bytes, Nanoseconds

if TYPE_CHECKING:  # they load numba, and a lane that is not started loads nothing
    from engine.fsimage.columns import Namespace
    from engine.fsimage.directory_sums import DirectorySums
    from engine.fsimage.load import Loaded

SUMMARY = "Summary"  # ours, behind the NameNode's phases
STRATEGIES = ("columnar", "parent-cache", "lean", "objects")
POINTS = 160  # of progress; when there are more, every second one goes
_LARGEST, _TROUBLES = 12, 6
_PATH_SHOWN = 300  # characters of a path in a snapshot
_BYTES_AN_INODE = 160  # of a synthetic image, at most

Outcome = Literal["complete", "cancelled", "failed"]
NO_SUMMARY = Absent("no image is loaded")


@dataclass(frozen=True, slots=True)
class Image:
    """What to load: a file, or a synthetic image of so many inodes that is made once and kept in a folder."""

    path: Path
    inodes: int = 0  # to make; 0 for a file that is there
    layout: Literal["legacy", "protobuf"] = "legacy"

    @property
    def is_synthetic(self) -> bool:
        """Whether it is made here."""
        return self.inodes > 0


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """What stays in memory after a load."""

    result: Loaded
    sums: DirectorySums
    summary: ImageSummary

    @property
    def namespace(self) -> Namespace:
        """The inodes."""
        return self.result.namespace


class Job:
    """One load. `run` is its thread's; `watch` and `run_row` are the lane's thread's; the rest is anyone's."""

    def __init__(self, number: int, image: Image, strategy: str, threads: int, clock: Clock) -> None:
        self.number, self.image, self.strategy, self.threads = number, image, strategy, threads
        self.began_ns = clock.monotonic_ns()
        self.cancel = threading.Event()
        self.is_leaving = False  # the program ends: all memory is about to be free
        self.tree = PhaseTree(clock)  # replaced once a synthetic image is made: the load's own
        self.is_making = image.is_synthetic and not image.path.exists()
        self.outcome: Outcome | None = None  # None while it runs
        self.error = ""
        self.layout, self.codec, self.size_bytes = "", "", 0
        self.loaded: LoadedImage | None = None
        self.inodes = 0  # once it has ended
        self.points: tuple[ImageProgress, ...] = ()
        self.cpu: tuple[ImageThread, ...] = ()
        self.notes: list[str] = []  # appended by the job's thread, said by the lane's
        self._clock = clock
        self._load_began = self.began_ns
        self._resolve_calls = 0
        self._resolve_ns: Nanoseconds | None = None
        self._every = 1  # of looks, one is kept
        self._looks = 0
        self._own_cpu = 0  # of the job's thread, once it has ended
        self._thread_id = 0
        self._cpu_before = 0
        self._seen_cpu: dict[str, int] = {}

    # The job's thread.

    def run(self) -> None:
        """Do it all; never raises. `outcome` is set last."""
        outcome: Outcome = "failed"
        try:
            self._work()
            outcome = "cancelled" if self.cancel.is_set() else "complete"
        except TidegaugeError as trouble:
            outcome = "cancelled" if self.cancel.is_set() else "failed"
            self.error = "" if self.cancel.is_set() else str(trouble)
        except MemoryError:
            self.error = f"{printable(str(self.image.path))}: not enough memory to load it"
        except Exception as mistake:  # noqa: BLE001 - a mistake of ours ends the load and is said, not the program
            self.error = f"{printable(str(self.image.path))}: {type(mistake).__name__}: {printable(str(mistake))}"
        if outcome != "complete":
            self.loaded = None
        if outcome != "complete" and not self.is_leaving:
            gc.collect()  # threads that failed left their errors in cycles with the columns they were filling
        self._own_cpu = (thread_cpu_ns(self._thread_id) or 0) - self._cpu_before
        self.outcome = outcome

    def _work(self) -> None:
        self._thread_id = threading.get_native_id()
        if self.is_making:
            self._make()
        self._cpu_before = thread_cpu_ns(self._thread_id) or 0
        self._load_began = self._clock.monotonic_ns()
        tree = self.tree = PhaseTree(self._clock)
        self.is_making = False  # after the three above: from here on it is watched
        with suppress(TidegaugeError):  # a header that cannot be read is the load's to tell
            self._outline()
        from engine.fsimage.load import compile_kernels

        compile_kernels(tree)
        if self.strategy == "columnar":
            self._load(tree)
        else:
            self._load_objects(tree)

    def _make(self) -> None:
        """Make the synthetic image."""
        from engine.fsimage.synth import SynthOptions, synthesise

        folder = self.image.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        if short := shortage(folder, self.image.inodes * _BYTES_AN_INODE):
            raise TidegaugeError(f"no synthetic image: {short}")
        options = SynthOptions(self.image.inodes, self.image.layout, sub_sections=0)
        synthesise(
            self.image.path, options, clock=self._clock, threads=self.threads, phases=self.tree, cancel=self.cancel
        )
        self.notes.append(f"synthetic image of {self.image.inodes:,} inodes made: {self.image.path}")

    def _outline(self) -> None:
        from engine.fsimage.outline import read_outline

        outline = read_outline(self.image.path)
        self.layout = f"{outline.layout_version} ({outline.layout})"
        self.codec = printable(outline.codec.rpartition(".")[2])
        self.size_bytes = outline.size_bytes

    def _load(self, tree: PhaseTree) -> None:
        from engine.fsimage.directory_sums import sum_directories
        from engine.fsimage.load import load_image

        lookups: list[int] = []
        result = load_image(
            self.image.path, clock=self._clock, threads=self.threads, phases=tree, cancel=self.cancel, lookups=lookups
        )
        self._resolve_calls, self.inodes = sum(lookups), result.namespace.rows
        try:
            with tree.phase(SUMMARY) as phase:
                sums = sum_directories(result.namespace, largest=_LARGEST, phase=phase, cancel=self.cancel)
                self.loaded = LoadedImage(result, sums, summarise(result, sums))
        except BaseException:
            stop_checksum(result)
            raise

    def _load_objects(self, tree: PhaseTree) -> None:
        from engine.fsimage.strategies import Strategy, run_strategy

        ran = run_strategy(self.image.path, Strategy(self.strategy), clock=self._clock, phases=tree, cancel=self.cancel)
        self.inodes, self._resolve_calls, self._resolve_ns = ran.inodes, ran.resolve_calls, ran.resolve_elapsed

    # The lane's thread.

    def watch(self) -> None:
        """Take a point of progress; called often while the job runs, and once after."""
        if self.is_making:
            return
        phases = self.tree.snapshot()
        self.cpu = self._threads(phases)
        self._looks += 1
        if self._looks % self._every and self.outcome is None:
            return
        passed, read = _passed(phases)
        elapsed = Nanoseconds(self._clock.monotonic_ns() - self._load_began)
        point = ImageProgress(elapsed, passed, read, tuple(thread.cpu_ns for thread in self.cpu))
        points = (*self.points, point)
        if len(points) > POINTS:
            points, self._every = points[::2], self._every * 2
        self.points = points

    def run_row(self) -> ImageRun:
        """Return the ended load as a row for comparing."""
        assert self.outcome is not None
        return ImageRun(
            self.number,
            "synthetic" if self.image.is_synthetic else self.image.path.name[:80],
            self.strategy,
            self.threads if self.strategy == "columnar" else 1,
            self.outcome,
            self.loaded_so_far(self.tree.snapshot()),
            elapsed_of(self.tree.snapshot()),
            self._resolve_calls,
            self._resolve_ns,
        )

    def loaded_so_far(self, phases: tuple[PhaseSnapshot, ...]) -> int:
        """Return how many inodes are loaded."""
        if self.is_making or self.inodes:
            return self.inodes
        inodes = _step(phases, "LoadingFsImage", "Inodes")
        return 0 if inodes is None else inodes.count

    def read_so_far(self, phases: tuple[PhaseSnapshot, ...]) -> int:
        """Return the bytes that were passed over."""
        return 0 if self.is_making else _passed(phases)[1]

    def _threads(self, phases: tuple[PhaseSnapshot, ...]) -> tuple[ImageThread, ...]:
        """Return each thread's processor time. Helpers come and go, phase by phase: those that ended stand in `phases`.

        `phases` was taken before the clocks are read, so a time is never counted twice; it may be a little low while
        a helper ends, hence the maximum.
        """
        times: dict[str, int] = {}
        own = thread_cpu_ns(self._thread_id) if self._thread_id and not self._own_cpu else None
        times["1"] = self._own_cpu if own is None else max(own - self._cpu_before, 0)
        live: dict[str, int] = {}
        for thread in threading.enumerate():
            if thread.name.startswith("fsimage-") and thread.native_id is not None:
                live[thread.name.removeprefix("fsimage-")] = thread_cpu_ns(thread.native_id) or 0
        for top in phases:
            for _, phase in top.walk():
                is_thread, _, number = phase.name.partition("thread ")
                if not is_thread and number and number != "1":
                    running = live.get(number, 0) if phase.state == "running" else 0
                    times[number] = times.get(number, 0) + (phase.cpu_ns or 0) + running
        if "md5" in live or "md5" in self._seen_cpu:
            times["md5"] = live.get("md5", 0)
        for name, time in times.items():
            self._seen_cpu[name] = max(time, self._seen_cpu.get(name, 0))
        names = sorted(times, key=lambda name: (not name.isdigit(), len(name), name))
        return tuple(ImageThread(name, Nanoseconds(self._seen_cpu[name])) for name in names)


def phase_rows(phases: tuple[PhaseSnapshot, ...]) -> tuple[PhaseRow, ...]:
    """Return phases as rows, parents before children; the threads inside them are told apart from them."""
    return tuple(
        PhaseRow(
            depth,
            phase.name,
            phase.state,
            phase.count,
            phase.total,
            phase.read_bytes,
            phase.size_bytes,
            phase.elapsed_ns,
            phase.cpu_ns,
            phase.share_done,
        )
        for top in phases
        for depth, phase in top.walk()
        if not phase.name.startswith("thread ")
    )


def elapsed_of(phases: tuple[PhaseSnapshot, ...]) -> Nanoseconds:
    """Return the time of the load itself: kernels and our own summary stand apart."""
    loading = _step(phases, "LoadingFsImage")
    return Nanoseconds(0) if loading is None else loading.elapsed_ns


def summarise(loaded: Loaded, sums: DirectorySums) -> ImageSummary:
    """Return what an image holds, in a few hundred bytes."""
    from engine.fsimage.columns import Kind
    from engine.fsimage.directory_sums import count_kinds_in_chunks
    from engine.fsimage.tree import path_of

    namespace, report = loaded.namespace, loaded.integrity
    kinds = count_kinds_in_chunks(namespace.inodes)
    snapshots = namespace.extras.snapshots
    top = sums.below(namespace.root)
    troubles = sorted(report.counts, key=lambda pair: -pair[1])[:_TROUBLES]
    return ImageSummary(
        files=kinds[Kind.FILE],
        directories=kinds[Kind.DIRECTORY],
        symlinks=kinds[Kind.SYMLINK],
        blocks=int(namespace.blocks.length.size),
        content_bytes=0 if top is None else top.size,
        open_files=len(namespace.extras.open_files),
        hdfs_snapshots=0 if snapshots is None else len(snapshots.snapshots),
        snapshot_only=report.snapshot_only,
        name_bytes=Bytes(int(namespace.names.size)),
        column_bytes=Bytes(namespace.column_bytes()),
        troubles=tuple(f"{count:,} {trouble.value}" for trouble, count in troubles),
        trouble_count=sum(count for _, count in report.counts),
        largest=tuple(
            LargeDirectory(shown_path(path_of(namespace, held.row)), held.files, held.size) for held in sums.largest
        ),
    )


def shown_path(path: bytes) -> str:
    """Return a path as text, the end of it where it is very long."""
    text = path.decode("utf-8", "backslashreplace")
    return text if len(text) <= _PATH_SHOWN else "..." + text[-_PATH_SHOWN:]


def stop_checksum(loaded: Loaded) -> None:
    """End the MD5 that may still run, and wait: it looks at its flag every few milliseconds."""
    if loaded.checksum is not None:
        loaded.checksum.stop()
        loaded.checksum.join()


def _passed(phases: tuple[PhaseSnapshot, ...]) -> tuple[int, int]:
    """Return the inodes and bytes that were read, in every pass over them; sorting what is in memory is no pass."""
    inodes = _step(phases, "LoadingFsImage", "Inodes")
    if inodes is None:
        return 0, 0
    passes = [phase for _, phase in inodes.walk() if phase.read_bytes]
    return sum(each.count for each in passes), sum(each.read_bytes for each in passes)


def _step(phases: tuple[PhaseSnapshot, ...], *path: str) -> PhaseSnapshot | None:
    found: PhaseSnapshot | None = None
    for name in path:
        found = next((phase for phase in phases if phase.name == name), None)
        if found is None:
            return None
        phases = found.children
    return found
