"""Kernels are compiled once per version, before anything is measured; that takes long enough to be told."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from dashboard.cli.progress import Progress
from engine.errors import TidegaugeError

_SILENT_SECONDS = 1.0  # loading them from disk takes less: nothing to tell


class UnsupportedPlatform(TidegaugeError):
    """The kernels need Linux with glibc on one of two processors."""


@dataclass(frozen=True, slots=True)
class _Compiling:
    fraction: float
    phase: str = "compiling kernels, once"
    ops_per_second: float = 0.0


def prepare_kernels(progress: Progress, stop: threading.Event) -> None:
    """Compile or load every kernel of the write-ahead log. Raises KeyboardInterrupt where stop is set meanwhile."""
    began = time.monotonic()
    progress.begin("tidegauge")

    def show(ready: int, total: int) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        if ready < total and time.monotonic() - began > _SILENT_SECONDS:
            progress.step(_Compiling(ready / total))

    compile_kernels(show)
    progress.clear()


def compile_kernels(progress: Callable[[int, int], None], *others: str) -> None:
    """Compile or load every kernel of the log and its handlers, and of `others`, which are modules' names.

    progress: takes (ready, of all), and may raise.
    """
    from engine.native.kernel import compile_all, require_platform

    if problem := require_platform():
        raise UnsupportedPlatform(problem)
    for module in ("engine.workloads.crew", *others):  # declares them: a kernel counts once its module is loaded
        importlib.import_module(module)
    compile_all(progress)
