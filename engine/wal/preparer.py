"""The thread that prepares segments, so that a roll finds the next file pre-zeroed with a durable entry.

Overwriting zeroed space lets a sync skip the file system's journal: about a third of its time. A segment that nobody
needs any more (wholly at or below the checkpoint) is recycled for it, which costs a rename; what is left over is
removed. A roll costs the committers one header write.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import FileTrouble
from engine.measure.clock import Clock
from engine.storage.contents import PositionedWrite, file_size
from engine.storage.descriptors import close_descriptor, open_for_writing
from engine.storage.folders import create_zeroed, recycle_file, remove_file, sync_folder
from engine.units import Bytes, Txid
from engine.wal.control import (
    WATERMARKS,
    offer_segment,
    read_watermarks,
    refuse_segment,
    wait_for_taken,
    withdraw_segment,
)
from engine.wal.segment import HEADER_BLOCK, segment_name
from engine.wal.state import pack_name

_LOOK_NS = 100_000_000  # how often the stop event and the checkpoint are looked at while nothing is taken
_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 10.0
_SPARE_SEGMENTS = 1  # kept for recycling; those beyond are removed


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A segment that was rolled away."""

    number: int
    path: Path
    first_txid: Txid
    last_txid: Txid
    used: Bytes


class SegmentPreparer:
    """Keeps one prepared segment on offer, recycles or removes those that the checkpoint has passed."""

    def __init__(
        self,
        log: npt.NDArray[np.void],
        folder: Path,
        segment_size: Bytes,
        *,
        closed: list[ClosedSegment],
        write: PositionedWrite,
        clock: Clock,
        report: Callable[[str, str], None],
    ) -> None:
        """closed: the segments before the current one, oldest first. report: takes (severity, text) of an event."""
        self._log, self._folder, self._size = log, folder, segment_size
        self._write, self._clock, self._report = write, clock, report
        self._guard = threading.Lock()  # guards the three below
        self._closed = closed
        self._checkpoint = Txid(0)
        self._current = self._watch()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wal-preparer", daemon=True)
        self._failing = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a prepared segment stays in the folder for the next one who opens the log."""
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)
        close_descriptor(int(withdraw_segment(self._log[0])))

    def checkpoint(self, txid: Txid) -> None:
        """Say that records up to `txid` are needed no more."""
        with self._guard:
            self._checkpoint = max(self._checkpoint, txid)

    def closed_segments(self) -> tuple[ClosedSegment, ...]:
        """Return the segments that were rolled away and are still there, oldest first."""
        self._note_roll()
        with self._guard:
            return tuple(self._closed)

    def _run(self) -> None:
        while not self._stop.is_set() and not self._watch()["poison"]:
            wanted = wait_for_taken(self._log[0], _LOOK_NS)
            self._note_roll()
            try:
                if wanted:
                    self._prepare()
                self._retire()
                self._failing = False
            except FileTrouble as trouble:
                self._refuse(trouble)

    def _prepare(self) -> None:
        number = self._watch()["segment"] + 1
        path = self._folder / segment_name(number)
        old = self._take_recyclable()
        if old is not None:
            recycle_file(old.path, path, zero_bytes=HEADER_BLOCK)
        else:
            create_zeroed(path, self._size, write=self._write)
        descriptor = open_for_writing(path)
        offer_segment(self._log[0], descriptor, number, self._size, pack_name(path.name), self._clock.wall_ns())

    def _refuse(self, trouble: FileTrouble) -> None:
        """Say it once and try again a little later: space may come back before a roll needs it."""
        if not self._watch()["next_segment"]:
            refuse_segment(self._log[0], trouble.errno or errno.EIO)
        if not self._failing:
            self._report("error", f"cannot prepare the next segment: {trouble}")
        self._failing = True
        self._clock.wait(self._stop, _RETRY_SECONDS)

    def _note_roll(self) -> None:
        """Move the segment that was current to the closed ones, if there was a roll since."""
        with self._guard:
            now = self._watch()
            before, self._current = self._current, now
            if now["segment"] != before["segment"]:
                path = self._folder / segment_name(before["segment"])
                last = Txid(now["segment_first"] - 1)
                used = Bytes(now["previous_used"])
                self._closed.append(ClosedSegment(before["segment"], path, Txid(before["segment_first"]), last, used))

    def _take_recyclable(self) -> ClosedSegment | None:
        with self._guard:
            if not self._closed or self._closed[0].last_txid > self._checkpoint:
                return None
            oldest = self._closed.pop(0)
        if file_size(oldest.path) == self._size:
            return oldest
        remove_file(oldest.path)
        return None

    def _retire(self) -> None:
        """Remove checkpointed segments beyond the one that is kept for recycling."""
        with self._guard:
            passed = [segment for segment in self._closed if segment.last_txid <= self._checkpoint]
            surplus = passed[: max(len(passed) - _SPARE_SEGMENTS, 0)]
            self._closed = self._closed[len(surplus) :]
        for segment in surplus:  # oldest first, each for good before the next: no gap, whenever this stops
            remove_file(segment.path)
            sync_folder(self._folder)

    def _watch(self) -> dict[str, int]:
        cells = np.zeros(len(WATERMARKS), np.int64)
        read_watermarks(self._log[0], cells)
        return dict(zip(WATERMARKS, cells.tolist(), strict=True))
