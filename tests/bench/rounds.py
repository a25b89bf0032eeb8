"""Rounds: run contenders side by side, and say what came of it.

A shared disk is never twice the same, so contenders take turns and each round's figures are compared with that
round's: a ratio is the median of the rounds' ratios, not a ratio of figures taken minutes apart. Each round begins with
the next contender (A B C, B C A, ...), for a disk may give more to whoever comes first.
Nothing here fails because something was slow: a target is printed as met or missed, and only what breaks ends a
program with an exit code.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from engine.environment import environment_of, mount_of
from engine.native.kernel import compile_all
from engine.units import format_size

T = TypeVar("T")

VALUE_BYTES = 1024
TARGET = "target"  # how each line of a target begins, for the summary at the end


class Skipped(Exception):
    """A contender cannot run here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to measure, and where."""

    rounds: int
    seconds: float
    full: bool
    folder: Path

    @contextmanager
    def place(self, name: str) -> Iterator[Path]:
        """Yield a path for one contender's files that does not exist yet; what is there afterwards is removed."""
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        try:
            yield path / "files"
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def plan(about: str | None, *, short: float, full: float, rounds: int = 5) -> Iterator[Plan]:
    """Read the command line, print what is asked and on which machine, and yield the plan.

    short, full: seconds that each contender is measured in each round, without and with --full. Kernels are compiled
    before anything is measured.
    """
    title, _, _ = (about or "").partition("\n")
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--full", action="store_true", help="measure longer")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds to take the median of ({rounds})")
    parser.add_argument(
        "--seconds", type=float, help=f"seconds a contender and round ({short:g}; {full:g} with --full)"
    )
    parser.add_argument("--path", type=Path, help="folder on the disk to measure; a temporary one is made in it")
    given = parser.parse_args()
    seconds = given.seconds or (full if given.full else short)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was made is removed
    with tempfile.TemporaryDirectory(prefix="tidegauge-bench-", dir=given.path or _disk()) as folder:
        say(f"# {title}")
        say(f"machine: {machine_line(Path(folder))}")
        say(f"plan: {given.rounds} rounds in turn, {seconds:g} s each, records of {format_size(VALUE_BYTES)}")
        compile_all()
        yield Plan(rounds=max(given.rounds, 1), seconds=seconds, full=given.full, folder=Path(folder))


def machine_line(folder: Path) -> str:
    """Return where this was measured, in one line, and whether the machine was busy with something else."""
    found = environment_of(folder)
    busy = os.getloadavg()[0]
    parts = [
        f"{found.cpu}, {found.cores} cores",
        found.kernel,
        f"{found.file_system} on {found.device}",
        found.python,
        f"load {busy:.1f}" + (": busy, trust ratios only" if busy > 0.5 else ""),
    ]
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Rounds(Generic[T]):
    """What each contender gave in each round, in the order of the rounds, and why some gave nothing."""

    found: dict[str, list[T]]
    skipped: dict[str, str]


def take_turns(contenders: Mapping[str, Callable[[], T]], rounds: int) -> Rounds[T]:
    """Run every contender once a round; one that raises Skipped is left out from then on."""
    found: dict[str, list[T]] = {name: [] for name in contenders}
    skipped: dict[str, str] = {}
    names = list(contenders)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            if name in skipped:
                continue
            progress(f"round {number + 1} of {rounds}: {name}")
            try:
                found[name].append(contenders[name]())
            except Skipped as reason:
                skipped[name] = str(reason)
                del found[name]
    progress("")
    return Rounds(found, skipped)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def show_rates(found: Mapping[str, Sequence[float]], skipped: Mapping[str, str], *, against: str = "") -> None:
    """Print median, lowest and highest of each contender's ops/s, and its ratio to the one named `against`."""
    base = found.get(against)
    say(f"{'':32}{'ops/s':>10}{'lowest':>10}{'highest':>10}" + (f"{'ratio':>8}  to {against}" if base else ""))
    for name, rates in found.items():
        line = f"{name:32}{statistics.median(rates):10,.0f}{min(rates):10,.0f}{max(rates):10,.0f}"
        say(line + (f"{ratio(rates, base):8.2f}" if base else ""))
    for name, reason in skipped.items():
        say(f"{name:32}   skipped: {reason}")


def show_target(claim: str, found: float, *, least: float | None = None, most: float | None = None) -> None:
    """Print whether a figure is where the project wants it: at least `least`, at most `most`, both inclusive."""
    met = (least is None or found >= least) and (most is None or found <= most)
    wanted = " and ".join(
        f"{words} {limit:g}" for words, limit in (("at least", least), ("at most", most)) if limit is not None
    )
    say(f"{TARGET} {'met   ' if met else 'MISSED'} {claim}: {found:.3g}, wanted {wanted}")


def say(text: str = "") -> None:
    """Print a line of the result."""
    print(text, flush=True)


def progress(text: str) -> None:
    """Show what runs now, where someone watches."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _disk() -> Path:
    """Return the first usual folder for temporary files that is not in memory."""
    named = os.environ.get("TMPDIR")
    for folder in (*([Path(named)] if named else []), Path("/var/tmp"), Path("/tmp"), Path.cwd()):
        mount = mount_of(folder)
        if os.access(folder, os.W_OK) and (mount is None or not mount.is_memory):
            return folder
    raise SystemExit("no folder for temporary files is on a disk; use --path DIR")
