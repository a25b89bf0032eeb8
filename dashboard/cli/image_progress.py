"""Work on an image in a thread of its own, watched: a progress line from its phases, and Ctrl+C as a cancel."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dashboard.cli.interrupt import stop_on_signals
from dashboard.cli.kernels import UnsupportedPlatform
from dashboard.cli.progress import Progress

if TYPE_CHECKING:
    from engine.measure.phases import PhaseSnapshot, PhaseTree

T = TypeVar("T")
_LOOK_SECONDS = 0.1
_SILENT_SECONDS = 1.0  # loading them from disk takes less: nothing to tell


@dataclass(frozen=True, slots=True)
class _At:
    phase: str
    fraction: float | None
    ops_per_second: float = 0.0


def run_watched(title: str, work: Callable[[PhaseTree, threading.Event], T], *modules: str) -> T:
    """Call work(phases, cancel) on a thread and show how far it is; return its result.

    modules: whose kernels it needs; they are loaded, and compiled where that has not happened yet, before the work.
    Raises what the work raises, and KeyboardInterrupt where a signal cancelled it.
    """
    from engine.measure.clock import SystemClock
    from engine.measure.phases import PhaseTree

    progress = Progress()
    with stop_on_signals() as stop:
        _compile(modules, progress, stop)
        tree = PhaseTree(SystemClock())
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work(tree, stop))
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors.append(error)

        progress.begin(title)
        worker = threading.Thread(target=run, name="image-work", daemon=True)
        worker.start()
        try:
            while worker.is_alive():
                worker.join(_LOOK_SECONDS)
                if (at := _running(tree.snapshot())) is not None:
                    progress.step(at)
        except KeyboardInterrupt:  # the second signal
            stop.set()
            raise
        finally:
            progress.clear()
        sys.stderr.flush()
        if stop.is_set() and errors:
            raise KeyboardInterrupt from errors[0]
        if errors:
            raise errors[0]
        return results[0]


def _compile(modules: tuple[str, ...], progress: Progress, stop: threading.Event) -> None:
    """Compile or load the kernels of `modules`, and no others: a line says so where that takes more than a moment."""
    from engine.native.kernel import compile_all, require_platform

    if problem := require_platform():
        raise UnsupportedPlatform(problem)
    for module in modules:
        importlib.import_module(module)
    began = time.monotonic()
    progress.begin("tidegauge")

    def show(ready: int, total: int) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        if ready < total and time.monotonic() - began > _SILENT_SECONDS:
            progress.step(_At("compiling kernels, once", ready / total))

    compile_all(show)
    progress.clear()


def _running(phases: tuple[PhaseSnapshot, ...]) -> _At | None:
    """Return the outermost step that runs, with how much of it is done."""
    for phase in phases:
        if phase.state == "running":
            step = next((child for child in phase.children if child.state == "running"), phase)
            return _At(step.name, step.share_done if step.total else None)
    return None
