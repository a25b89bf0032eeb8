"""Opening the dashboard on a local engine: the one place of the command line that loads the screen, when asked for.

The folder is prepared before the screen opens, so a path that cannot be used is one line and not a picture. Numba,
the kernels, the engine and the exporter come in the starter's thread, behind the first frame.
"""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dashboard.cli.engine_flags import EngineFlags
from dashboard.cli.interrupt import raise_on_signals
from dashboard.cli.local_engine import engine_folder, folder_notes, image_folder, make_engine
from dashboard.cli.ramdisk_place import RamdiskPlace, ramdisk_place
from dashboard.terminal import why_no_screen

if TYPE_CHECKING:
    from dashboard.cli.wal_folder import RunFolder
    from dashboard.exporter.server import Exporter
    from dashboard.starter import Progress
    from engine.engine import Engine

# They are compiled before the screen opens too: compiling in the middle of a run would hold up everything.
_IMAGE_KERNELS = ("engine.fsimage.load", "engine.fsimage.synth", "engine.fsimage.directory_sums")
_APP = "dashboard.app"  # by name: the command line must not depend on the screen


def open_dashboard(flags: EngineFlags, *, port: int, bind: str, exporter: bool) -> int:
    """Run the dashboard until it is left; return its exit code. Raises UsageError where there is no terminal."""
    if problem := why_no_screen():
        raise click.UsageError(problem)
    with (
        raise_on_signals(),
        engine_folder(flags) as folder,
        ramdisk_place(flags) as ramdisk,
        image_folder(folder) as images,
        contextlib.ExitStack() as at_end,
    ):

        def start(progress: Progress) -> Engine:
            engine = _engine(flags, folder, ramdisk, images, progress)
            if exporter:
                _export(engine, progress, at_end, port=port, bind=bind)
            return engine

        code: int = importlib.import_module(_APP).run_dashboard(start)
        return code


def _engine(flags: EngineFlags, folder: RunFolder, ramdisk: RamdiskPlace, images: Path, progress: Progress) -> Engine:
    """Make the engine, in the starter's thread. progress raises where the program ends meanwhile."""
    for note in folder_notes(folder):
        progress.note(note)
    progress.say("loading the engine")
    from dashboard.cli.kernels import compile_kernels

    compile_kernels(progress, *_IMAGE_KERNELS)
    progress.say("opening the log")
    return make_engine(flags, folder, ramdisk, images)


def _export(engine: Engine, progress: Progress, at_end: contextlib.ExitStack, *, port: int, bind: str) -> None:
    """Serve the engine's snapshots; a port in use is a line in the event log, and the dashboard goes on."""
    from dashboard.exporter.server import CannotListen, Exporter

    exporter: Exporter = Exporter(engine.sample, bind=bind, port=port)
    try:
        exporter.start()
    except CannotListen as error:
        progress.note(f"no /metrics: {error}", "warn")
        return
    at_end.callback(exporter.stop)
    progress.note(f"serving {exporter.url}")
