"""The image lane: loads an fsimage when it is told to, and keeps it in memory to be looked at.

    lane's thread    carries controls out in order; while a job runs it looks at it every few milliseconds
    job's thread     makes a synthetic image where none was chosen, loads, sums up (image_job.py)

Controls return at once, and what came of them is seen in snapshots and events. Until the first of them there is no
thread, no numba and no memory; while nothing loads, the lane's thread sleeps. A load that is cancelled, or an image
that is let go, gives its memory back at once. One load runs at a time: another one cancels it first.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import BadValue, TidegaugeError, UnknownChoice, printable
from engine.events import EventLog, Severity
from engine.measure.clock import Clock
from engine.snapshot import Absent, ImageRun, ImageSnapshot
from engine.units import Bytes, Nanoseconds, format_count, format_duration, format_size
from engine.workloads.image_job import (
    NO_SUMMARY,
    STRATEGIES,
    Image,
    Job,
    elapsed_of,
    phase_rows,
    stop_checksum,
)
from engine.workloads.image_tree import TreeListing, list_children, place_of

MAX_THREADS = 64
_LOOK_SECONDS = 0.02  # between two looks at a load: one of a fifth of a second has ten points then
_JOIN_SECONDS = 0.8  # the longest kernel call on an image of 20 million inodes takes half of it
_RUNS_KEPT = 12

Layout = Literal["legacy", "protobuf"]
LAYOUTS: tuple[Layout, ...] = ("legacy", "protobuf")
NOT_LOADED = Absent("no image is loaded")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """What the lane loads at first; controls change it later.

    scratch: where synthetic images are made, once one is asked for; whoever gives the folder removes it.
    path: the image; None is a synthetic one of `synthetic_inodes`, in a legacy layout, which every strategy reads.
    """

    scratch: Path
    path: Path | None = None
    strategy: str = "columnar"
    threads: int = 2
    synthetic_inodes: int = 1_000_000


class ImageLane:
    """Loads images, and its controls."""

    def __init__(self, settings: ImageSettings, clock: Clock, events: EventLog) -> None:
        """Check the settings; nothing is loaded yet. Raises BadValue or UnknownChoice."""
        _check_strategy(settings.strategy)
        _check_threads(settings.threads)
        self._settings, self._clock, self._events = settings, clock, events
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="image-lane", daemon=True)
        self._starting = threading.Lock()  # guards the start of the lane's thread: controls come from any
        # Written by the lane's thread alone; each is replaced whole, so a reader sees the old or the new one.
        self._next = Image(settings.path) if settings.path is not None else self._synthetic("legacy")
        self._strategy, self._threads = settings.strategy, settings.threads
        self._job: Job | None = None
        self._worker: threading.Thread | None = None
        self._is_next_asked = False  # a load that begins once the one before it has ended
        self._has_let_go = False
        self._runs: tuple[ImageRun, ...] = ()
        self._loads = {"complete": 0, "cancelled": 0, "failed": 0}
        self._past = (0, 0, 0)  # inodes and bytes of the loads that have ended, and the number of the last of them
        self._has_ended = True  # what came of the newest job is noted
        self._md5_said = True
        self._settled: tuple[object, ImageSnapshot] | None = None  # the newest sample, with what it was made of

    # Controls: each returns at once.

    def start(self) -> None:
        """Load what was chosen; a load that runs is cancelled first."""
        self._ask(self._load)

    def open(self, path: Path) -> None:
        """Choose an image and load it."""
        self._ask(lambda: self._open(Image(path)))

    def open_synthetic(self, layout: str) -> None:
        """Choose the synthetic image of a layout and load it; it is made once. Raises UnknownChoice at once."""
        if layout not in LAYOUTS:
            raise UnknownChoice(what="layout", given=layout, choices=LAYOUTS)
        chosen: Layout = "legacy" if layout == "legacy" else "protobuf"
        self._ask(lambda: self._open(self._synthetic(chosen)))

    def set_strategy(self, strategy: str) -> None:
        """Load by another strategy from the next load on. Raises UnknownChoice at once."""
        _check_strategy(strategy)
        self._ask(lambda: self._set(strategy, None))

    def set_threads(self, threads: int) -> None:
        """Load with that many threads from the next load on. Raises BadValue at once."""
        _check_threads(threads)
        self._ask(lambda: self._set(None, threads))

    def cancel(self) -> None:
        """Cancel the load, or let go of the image that is loaded; either way its memory is free soon after."""
        job = self._job
        if job is not None:
            job.cancel.set()  # at once: the lane's thread may be at something else
        self._ask(self._cancel)

    def ask_to_stop(self) -> None:
        """Begin to stop, without waiting."""
        self._stop.set()
        job = self._job
        if job is not None:
            job.is_leaving = True
            job.cancel.set()
        self._requests.put(lambda: None)

    def close(self) -> bool:
        """Stop a load that runs and let go of everything; return whether it ended in time."""
        self.ask_to_stop()
        if self._thread.ident:
            self._thread.join(2 * _JOIN_SECONDS)
        return not self._thread.is_alive()

    # What others see.

    def list_children(self, row: int | None, first: int, count: int) -> TreeListing | Absent:
        """Return a part of a directory of the loaded image; any thread may ask. row: None for the root."""
        job = self._job
        loaded = job.loaded if job is not None and job.outcome == "complete" else None
        return NOT_LOADED if loaded is None else list_children(loaded, row, first, count)

    def place_of(self, row: int) -> int:
        """Return which child of its directory an inode of the loaded image is; 0 where there is none."""
        job = self._job
        loaded = job.loaded if job is not None and job.outcome == "complete" else None
        return 0 if loaded is None else place_of(loaded, row)

    def sample(self) -> ImageSnapshot:
        """Return the totals of this instant; any thread may ask. While nothing changes, it is the same object."""
        job, is_settled = self._job, self._has_ended and self._md5_said
        is_loaded = job is not None and job.loaded is not None
        told = is_loaded, self._has_let_go, self._next, self._strategy, self._threads, self._stop.is_set()
        key = (job, told)
        settled = self._settled
        if is_settled and settled is not None and settled[0] == key:
            return settled[1]
        taken = self._take()
        self._settled = (key, taken) if is_settled else None
        return taken

    def _take(self) -> ImageSnapshot:
        job, strategy, threads = self._job, self._strategy, self._threads
        past_inodes, past_bytes, counted = self._past
        phases = () if job is None else job.tree.snapshot()
        inodes = 0 if job is None else job.loaded_so_far(phases)
        read = 0 if job is None else job.read_so_far(phases)
        is_counted = job is None or job.number <= counted  # the job's own are in the past ones
        loaded = None if job is None else job.loaded
        md5, md5_bytes = _md5(job)
        shown = self._next if job is None else job.image
        return ImageSnapshot(
            epoch=0 if job is None else job.number,
            epoch_started_ns=Nanoseconds(0) if job is None else job.began_ns,
            state=self._state(job),
            error="" if job is None else job.error,
            image=str(shown.path),
            is_synthetic=shown.is_synthetic,
            layout="" if job is None else job.layout,
            codec="" if job is None else job.codec,
            size_bytes=Bytes(0 if job is None else job.size_bytes),
            strategy=strategy if job is None else job.strategy,
            threads=threads if job is None else job.threads,
            next_image=_named(self._next),
            next_strategy=strategy,
            next_threads=threads,
            md5=md5,
            md5_bytes=Bytes(md5_bytes),
            inodes=inodes,
            read_bytes=read,
            elapsed_ns=elapsed_of(phases),
            phases=phase_rows(phases),
            cpu=() if job is None else job.cpu,
            progress=() if job is None else job.points,
            summary=NO_SUMMARY if loaded is None else loaded.summary,
            runs=self._runs,
            lane_inodes=past_inodes + (0 if is_counted else inodes),
            lane_read_bytes=past_bytes + (0 if is_counted else read),
            lane_loads=self._loads["complete"],
            lane_cancelled_loads=self._loads["cancelled"],
            lane_failed_loads=self._loads["failed"],
        )

    def _state(
        self, job: Job | None
    ) -> Literal["idle", "making", "loading", "loaded", "cancelled", "failed", "closed"]:
        if self._stop.is_set():
            return "closed"
        if job is None:
            return "idle"
        if job.outcome is None or not self._has_ended:
            return "making" if job.is_making else "loading"
        if job.outcome == "complete":
            return "idle" if self._has_let_go else "loaded"
        return job.outcome

    # The lane's thread.

    def _ask(self, request: Callable[[], None]) -> None:
        self._requests.put(request)
        with self._starting:
            if not self._thread.ident and not self._stop.is_set():
                self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._next_request()()
                self._tick()
            except TidegaugeError as trouble:
                self._say("error", str(trouble))
        self._end()

    def _next_request(self) -> Callable[[], None]:
        try:
            return self._requests.get(timeout=None if self._has_ended and self._md5_said else _LOOK_SECONDS)
        except queue.Empty:
            return lambda: None

    def _end(self) -> None:
        job, worker = self._job, self._worker
        if job is not None:
            job.cancel.set()
        if worker is not None:
            worker.join(_JOIN_SECONDS)  # it may be inside a kernel; the process does not wait longer for it
        if job is not None and job.loaded is not None:
            stop_checksum(job.loaded.result)
            job.loaded = None

    def _set(self, strategy: str | None, threads: int | None) -> None:
        self._strategy, self._threads = strategy or self._strategy, threads or self._threads

    def _open(self, image: Image) -> None:
        self._next = image
        self._load()

    def _load(self) -> None:
        """Begin a load, or let it follow the one that runs."""
        if not self._has_ended:
            assert self._job is not None
            self._job.cancel.set()
            self._is_next_asked = True
            return
        self._let_go()
        self._is_next_asked, self._has_let_go, self._has_ended, self._md5_said = False, False, False, False
        number = 1 if self._job is None else self._job.number + 1
        job = self._job = Job(number, self._next, self._strategy, self._threads, self._clock)
        made = (
            f"{job.threads} {'thread' if job.threads == 1 else 'threads'}" if job.strategy == "columnar" else "1 thread"
        )
        self._say("info", f"loading {_named(job.image)} by {job.strategy}, {made}")
        self._worker = threading.Thread(target=job.run, name="image-load", daemon=True)
        self._worker.start()

    def _cancel(self) -> None:
        self._is_next_asked = False
        if not self._has_ended:
            assert self._job is not None
            self._job.cancel.set()
        elif self._job is not None and self._job.loaded is not None:
            summary = self._job.loaded.summary
            self._let_go()
            self._has_let_go = True
            self._say("info", f"image let go: {format_size(summary.column_bytes + summary.name_bytes)} free")

    def _let_go(self) -> None:
        """Drop the loaded image: nothing else holds its columns."""
        if self._job is not None and self._job.loaded is not None:
            stop_checksum(self._job.loaded.result)
            self._md5_said = True
            self._job.loaded = None

    def _tick(self) -> None:
        """Look after the job between requests."""
        job, worker = self._job, self._worker
        if job is None or worker is None:
            return
        if not self._has_ended:
            has_ended = job.outcome is not None
            job.watch()
            if has_ended:
                worker.join(_JOIN_SECONDS)
                self._note_end(job)
        if self._has_ended and not self._md5_said:
            self._say_md5(job)

    def _note_end(self, job: Job) -> None:
        assert job.outcome is not None
        for note in job.notes:
            self._say("info", printable(note))
        row = job.run_row()
        self._runs = (*self._runs, row)[-_RUNS_KEPT:]
        self._loads = {**self._loads, job.outcome: self._loads[job.outcome] + 1}
        phases = job.tree.snapshot()
        inodes, read, _ = self._past
        self._past = inodes + job.loaded_so_far(phases), read + job.read_so_far(phases), job.number
        if job.cancel.is_set():  # it may have ended just before
            self._let_go()
            self._has_let_go = True
        self._has_ended = True
        name = _named(job.image)
        if job.outcome == "failed":
            self._say("error", job.error)
        elif job.outcome == "cancelled":
            self._say("info", f"load of {name} cancelled; its memory is free")
        else:
            rate = format_count(row.inodes * 1e9 / row.elapsed_ns) if row.elapsed_ns else "n/a"
            self._say("info", f"{name}: {row.inodes:,} inodes in {format_duration(row.elapsed_ns)}, {rate}/s")
        if job.loaded is not None and job.loaded.summary.trouble_count:
            self._say("warn", f"{name} is not whole: {'; '.join(job.loaded.summary.troubles)}")
        self._md5_said = job.loaded is None
        if self._is_next_asked:
            self._load()

    def _say_md5(self, job: Job) -> None:
        """Say what the MD5 check found, once it has ended."""
        loaded = job.loaded
        result = None if loaded is None else loaded.result.wait_for_checksum(0)
        if loaded is None or result is not None:
            self._md5_said = True
            if result is not None and result.problem:
                self._say("error", f"{_named(job.image)}: {printable(result.problem)}")

    def _synthetic(self, layout: Layout) -> Image:
        name = f"synthetic_{layout}_{self._settings.synthetic_inodes}"
        return Image(self._settings.scratch / name, self._settings.synthetic_inodes, layout)

    def _say(self, severity: Severity, text: str) -> None:
        self._events.add(severity, "image", text)


def _named(image: Image) -> str:
    if image.is_synthetic:
        return f"synthetic image ({format_count(image.inodes)} inodes, {image.layout})"
    return printable(str(image.path))


def _md5(job: Job | None) -> tuple[Literal["none", "checking", "match", "mismatch"], int]:
    """Return what the MD5 check says by now, and how far it is."""
    loaded = None if job is None else job.loaded
    if loaded is None or loaded.result.checksum is None:
        return "none", 0
    result, hashed = loaded.result.wait_for_checksum(0), loaded.result.checksum.hashed_bytes
    if result is None:
        return "checking", hashed
    return "mismatch" if result.problem else "match" if result.is_match else "none", hashed


def _check_strategy(strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise UnknownChoice(what="strategy", given=strategy, choices=STRATEGIES)


def _check_threads(threads: int) -> None:
    if not 1 <= threads <= MAX_THREADS:
        raise BadValue(what="threads", given=str(threads), allowed=f"1 to {MAX_THREADS}")
