"""The image workload, HADOOP-3248's question on this machine: how long an image takes to load, and why.

One case loads one image by one strategy (engine/fsimage/strategies) on some threads, and keeps nothing. The object
strategies are plain Python, as the NameNode's was plain Java, and on one thread, as that was: of a large image they
load the first inodes, `sample` at most, which are a whole tree, and the time is scaled to all of them. Such a result
says so (`scaled`); a tree that is deeper and wider would take longer, so the scaled time is a lower bound.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.fsimage.strategies import Strategy, StrategyRun, run_strategy
from engine.measure.clock import Clock
from engine.measure.memory import anonymous_bytes
from engine.measure.phases import PhaseSnapshot, PhaseTree
from engine.units import MIB, SECOND

STRATEGIES = tuple(strategy.value for strategy in Strategy)
READING = "ReadingFile"  # ours: the page cache is filled before anything is measured
_PIECE = 8 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCase:
    """What one case runs. sample: inodes that an object strategy loads at most; None for all."""

    strategy: str
    threads: int
    sample: int | None = None


class ImageResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one case measured, in base units; the field names are the contract of `--json`."""

    strategy: str
    threads: int
    inodes: int  # in the image
    image_bytes: int
    inodes_loaded: int  # that were measured
    scaled: bool  # elapsed_seconds and resolve_* are of fewer inodes, multiplied
    elapsed_seconds: float  # for all inodes
    measured_seconds: float
    inodes_per_second: float
    bytes_per_inode: float  # anonymous memory of the loaded tree, without names where these are apart
    name_bytes: int | None  # None: an object strategy, whose names are among the objects
    resolve_calls: int  # walks from the root (getExistingPathINode); for columnar, lookups in a table of directories
    resolve_seconds: float | None  # None: too short to time
    compile_seconds: float  # of the kernels, before the first case; in no other figure
    phases: tuple[PhaseSnapshot, ...]


def cases_of(strategies: Sequence[str], threads: Sequence[int], sample: int | None) -> Iterator[ImageCase]:
    """Yield each combination once; what runs on one thread runs once."""
    seen = set()
    for strategy, count in itertools.product(strategies, threads):
        used = count if strategy == Strategy.COLUMNAR.value else 1
        if (strategy, used) not in seen:
            seen.add((strategy, used))
            yield ImageCase(strategy=strategy, threads=used, sample=sample)


def run_case(
    case: ImageCase,
    image: Path,
    *,
    inodes: int,
    compile_seconds: float,
    clock: Clock,
    phases: PhaseTree,
    cancel: threading.Event,
) -> ImageResult:
    """Load the image once. inodes: how many it states. Raises as run_strategy does."""
    run = run_strategy(
        image,
        Strategy(case.strategy),
        clock=clock,
        threads=case.threads,
        phases=phases,
        cancel=cancel,
        most=case.sample,
        memory=anonymous_bytes,
    )
    return _result(case, run, inodes, image.stat().st_size, compile_seconds, phases.snapshot())


def read_through(image: Path, phases: PhaseTree, cancel: threading.Event) -> None:
    """Read a file once, so that no case waits for the disk."""
    size = image.stat().st_size
    with phases.phase(READING, total=size) as phase, image.open("rb", buffering=0) as file:
        while (piece := file.read(_PIECE)) and not cancel.is_set():
            phase.advance(len(piece), read=len(piece))


def _result(
    case: ImageCase,
    run: StrategyRun,
    inodes: int,
    image_bytes: int,
    compile_seconds: float,
    phases: tuple[PhaseSnapshot, ...],
) -> ImageResult:
    measured = run.elapsed / SECOND
    is_scaled = run.strategy is not Strategy.COLUMNAR and run.inodes < inodes
    factor = inodes / run.inodes if is_scaled else 1.0
    resolved = None if run.resolve_elapsed is None else run.resolve_elapsed / SECOND * factor
    return ImageResult(
        strategy=case.strategy,
        threads=case.threads,
        inodes=inodes if is_scaled else run.inodes,
        image_bytes=image_bytes,
        inodes_loaded=run.inodes,
        scaled=is_scaled,
        elapsed_seconds=measured * factor,
        measured_seconds=measured,
        inodes_per_second=run.inodes / measured if measured else 0.0,
        bytes_per_inode=max(run.memory - (run.name_bytes or 0), 0) / run.inodes,
        name_bytes=run.name_bytes,
        resolve_calls=round(run.resolve_calls * factor),
        resolve_seconds=resolved,
        compile_seconds=compile_seconds,
        phases=phases,
    )
