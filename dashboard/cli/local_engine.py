"""A local engine from the command line's flags: its folder, kernels and log, and that all of it goes away again."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dashboard.cli.engine_flags import EngineFlags
from dashboard.cli.kernels import prepare_kernels
from dashboard.cli.progress import Progress
from dashboard.cli.ramdisk_place import RamdiskPlace, lane_settings, ramdisk_place
from dashboard.cli.wal_folder import BadFolder, RunFolder, folder_on_disk, run_folder, temporary_folder
from dashboard.cli.wal_room import require_room
from engine.errors import TidegaugeError, printable
from engine.units import MIB

if TYPE_CHECKING:
    from engine.engine import Engine

SEGMENT_SIZE = 64 * MIB
_SEGMENTS_IN_USE = 6  # the lane checkpoints as it goes
_LOOK_SECONDS = 0.02
_MOST_IMAGE_THREADS = 8  # at first; keys change it


class LogDidNotOpen(TidegaugeError):
    """The lane could not open its log; the text is the reason."""


@contextlib.contextmanager
def engine_folder(flags: EngineFlags) -> Iterator[RunFolder]:
    """Yield a folder with room for the engine's log. A log at --path stays afterwards, a temporary one goes.

    Raises UsageError for a folder that cannot be used, DiskTooFull.
    """
    try:
        with run_folder(flags.path, keep=flags.path is not None) as folder:
            require_room(folder.path, _SEGMENTS_IN_USE * SEGMENT_SIZE)
            yield folder
    except BadFolder as error:
        raise click.UsageError(str(error)) from error


def make_engine(flags: EngineFlags, folder: RunFolder, ramdisk: RamdiskPlace, images: Path | None = None) -> Engine:
    """Return the engine, not started; its kernels should be compiled by now, or its start takes seconds.

    images: where synthetic images are made; None for an engine without an image lane.
    """
    from engine.engine import Engine
    from engine.workloads.image_lane import ImageSettings
    from engine.workloads.wal_lane import WalSettings

    return Engine(
        WalSettings(
            path=folder.path / "log" if folder.temporary else folder.path,
            handlers=flags.threads,
            model=flags.model,
            device=flags.device,
            sync=flags.sync,
            value_size_bytes=flags.value_size,
            segment_size=SEGMENT_SIZE,
        ),
        ramdisk=lane_settings(flags, ramdisk),
        image=None if images is None else ImageSettings(scratch=images, threads=_image_threads()),
    )


@contextlib.contextmanager
def image_folder(folder: RunFolder) -> Iterator[Path]:
    """Yield a name for a folder of synthetic images, on a disk; what is made there goes away. Raises FileTrouble."""
    if folder.temporary:
        yield folder.path / "images"
        return
    parent = Path(tempfile.gettempdir())
    with contextlib.suppress(TidegaugeError):  # where no disk takes temporary files, memory has to
        parent = folder_on_disk()
    with temporary_folder(parent, keep=False) as place:
        yield place / "images"


def _image_threads() -> int:
    return min(len(os.sched_getaffinity(0)), _MOST_IMAGE_THREADS)


def folder_notes(folder: RunFolder) -> list[str]:
    """Return what a person should know of the folder: that it is in memory, that it holds a log already."""
    path = printable(str(folder.path))
    notes = []
    if folder.memory:
        notes.append(f"{path} is on {folder.memory}: memory, where a sync makes nothing durable")
    if folder.existing_log:
        notes.append(f"{path} already holds a log: it goes on, and its oldest segments are recycled as it does")
    return notes


@contextlib.contextmanager
def local_engine(flags: EngineFlags, progress: Progress, stop: threading.Event) -> Iterator[Engine]:
    """Yield a started engine whose log is open.

    stop: gives up where it is set while kernels compile or the log opens, with KeyboardInterrupt. Raises what
    engine_folder raises, and LogDidNotOpen with the reason.
    """
    with engine_folder(flags) as folder, ramdisk_place(flags) as ramdisk:
        for note in folder_notes(folder):
            progress.note(f"note: {note}")
        prepare_kernels(progress, stop)
        engine = make_engine(flags, folder, ramdisk)
        engine.start()
        try:
            _await_log(engine, stop)
            yield engine
        finally:
            engine.stop()


def _await_log(engine: Engine, stop: threading.Event) -> None:
    """Wait until the log is open; recovery of a large one takes its time."""
    from engine.snapshot import Absent

    while not stop.wait(_LOOK_SECONDS):
        snapshot = engine.sample()
        if not isinstance(snapshot.wal, Absent):
            return
        errors = [event for event in snapshot.events if event.lane == "wal" and event.severity == "error"]
        failure = errors[-1].text if errors else None
        if failure is not None:
            raise LogDidNotOpen(failure)
    raise KeyboardInterrupt
