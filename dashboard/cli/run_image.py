"""`tidegauge run image`: how long an image takes to load, by four strategies, beside the report of 2008.

image     the one given, read once so that the disk is not measured; or a synthetic one of --inodes, made in a
          temporary folder and gone afterwards
cases     each strategy on each number of threads; the object strategies have one thread, and on a large image
          load a part of it, which the table says
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dashboard.cli import types
from dashboard.cli.exits import Exit
from dashboard.cli.program import complain
from engine.errors import FileTrouble, TidegaugeError, printable
from engine.units import format_count, format_size

if TYPE_CHECKING:
    from engine.fsimage.outline import Outline
    from engine.workloads.image import ImageResult

STRATEGIES = ("columnar", "parent-cache", "lean", "objects")
WIDTH_WITHOUT_TERMINAL = 100
_BYTES_AN_INODE = 150  # of disk for a synthetic legacy image, and of memory for its columns and names: 130 are used
_WORKLOAD = "engine.workloads.image"


class TooLittleMemory(TidegaugeError):
    """The loaded image would not fit memory."""


@click.command("image")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--inodes", type=types.count("inodes", minimum=10, maximum=1_000_000_000), default=20_000_000,
    show_default="20M", help="Without FILE: how many files and directories the synthetic image has.",
)  # fmt: skip
@click.option(
    "--seed", type=types.count("seed", minimum=0, maximum=2**62), default=1, show_default=True,
    help="Of the synthetic image.",
)  # fmt: skip
@click.option(
    "--strategy", "strategies", type=types.ListOf(types.Name("strategy", STRATEGIES)), default=",".join(STRATEGIES),
    show_default=True, metavar="LIST", help="How to load. All but columnar need a legacy layout with full paths.",
)  # fmt: skip
@click.option(
    "--threads", type=types.ListOf(types.count("threads", minimum=1, maximum=256)), metavar="LIST",
    help="Threads of columnar; the others have one.  [default: the processor's cores]",
)  # fmt: skip
@click.option(
    "--sample", type=types.count("sample", minimum=0, maximum=1_000_000_000), default=1_000_000, show_default="1M",
    help="Inodes that a strategy other than columnar loads at most; its time is scaled. 0: all.",
)  # fmt: skip
@click.option("--path", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the synthetic image.")
@click.option("--seed-table", is_flag=True, help="Print HADOOP-3248's figures beside ours.")
@click.option(
    "--json", "json_to", metavar="FILE",
    help="Write the results as JSON; - is stdout, and the table then goes to stderr.",
)  # fmt: skip
@click.pass_context
def run_image(
    ctx: click.Context,
    file: Path | None,
    inodes: int,
    seed: int,
    strategies: tuple[str, ...],
    threads: tuple[int, ...] | None,
    sample: int,
    path: Path | None,
    seed_table: bool,
    json_to: str | None,
) -> int:
    """Load the image FILE, or a synthetic one, by each strategy and say how fast, and why.

    Lists make a matrix.
    """
    if json_to is not None:
        from dashboard.cli.json_target import check_target

        check_target(json_to)

    def was_typed(name: str) -> bool:
        return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE

    if file is not None and (wrong := [name for name in ("inodes", "seed", "path") if was_typed(name)]):
        raise click.UsageError(f"--{wrong[0]} is for a synthetic image; FILE is there already")
    run = _Run(threads or (_cores(),), sample or None, seed_table, json_to)
    with contextlib.ExitStack() as stack:
        try:
            if file is None:
                file = run.synthesise(stack, inodes, seed, path)
            outline = run.outline(file)
            if not outline.has_full_paths:
                if was_typed("strategies") and strategies != ("columnar",):
                    raise click.UsageError(
                        f"--strategy: {printable(str(file))} has layout {outline.layout_version}; "
                        "all but columnar need an uncompressed legacy layout with full paths (to -29, -32, -41)"
                    )
                strategies = ("columnar",)
            return run.measure(file, outline, strategies, is_synthetic=not was_typed("file"))
        except KeyboardInterrupt:
            return complain("interrupted", Exit.INTERRUPTED)


class _Run:
    """One run: settings, and results as they come."""

    def __init__(self, threads: tuple[int, ...], sample: int | None, seed_table: bool, json_to: str | None) -> None:
        self._threads, self._sample, self._seed_table, self._json_to = threads, sample, seed_table, json_to
        self._results: list[ImageResult] = []
        self._compile_seconds = 0.0

    def synthesise(self, stack: contextlib.ExitStack, inodes: int, seed: int, path: Path | None) -> Path:
        """Make an image in a folder that goes with `stack`. Raises TidegaugeError where it would not fit."""
        from dashboard.cli.image_progress import run_watched
        from dashboard.cli.wal_folder import folder_on_disk, temporary_folder
        from engine.storage.space import shortage

        parent = folder_on_disk() if path is None else path
        if not parent.is_dir():
            raise FileTrouble(parent, "use it for an image", NotADirectoryError(20, "Not a directory"))
        _require_memory(inodes)
        if short := shortage(parent, _BYTES_AN_INODE * inodes):
            raise TidegaugeError(f"{short}; use --inodes with fewer, or --path")
        image = stack.enter_context(temporary_folder(parent, keep=False)) / "fsimage"

        def work(tree: Any, stop: Any) -> None:
            from engine.fsimage.synth import SynthOptions, synthesise
            from engine.measure.clock import SystemClock

            options = SynthOptions(inodes, "legacy", seed)
            synthesise(image, options, clock=SystemClock(), threads=max(self._threads), phases=tree, cancel=stop)

        self._prepare("engine.fsimage.synth", _WORKLOAD)
        run_watched(f"make an image of {format_count(inodes)} inodes", work)
        return image

    def outline(self, image: Path) -> Outline:
        """Read what the image says about itself; refuse here what a load would refuse."""
        from engine.fsimage.outline import read_outline

        return read_outline(image)

    def measure(self, image: Path, outline: Outline, strategies: tuple[str, ...], *, is_synthetic: bool) -> int:
        """Run the cases, print, and return the exit code."""
        from dashboard.cli.image_progress import run_watched
        from engine.environment import environment_of, memory_available_bytes
        from engine.measure.clock import SystemClock
        from engine.workloads.image import cases_of, read_through, run_case

        stated = outline.counts["inodes"]
        failure: TidegaugeError | OSError | None = None
        interrupted = False
        cases = list(cases_of(strategies, self._threads, self._sample))
        environment = environment_of(image)
        try:
            self._prepare(_WORKLOAD)
            if not is_synthetic:
                if outline.size_bytes < (memory_available_bytes() or 0) // 2:
                    run_watched(f"read {image.name}", lambda tree, stop: read_through(image, tree, stop))
                else:
                    click.echo("note: the image does not fit the page cache: its disk is measured too", err=True)
            for number, case in enumerate(cases, start=1):
                title = f"[{number}/{len(cases)}] {case.strategy}, {threads_of(case.threads)}"
                self._results.append(
                    run_watched(
                        title,
                        lambda tree, stop, case=case: run_case(  # type: ignore[misc]
                            case, image, inodes=stated, compile_seconds=self._compile_seconds,
                            clock=SystemClock(), phases=tree, cancel=stop,
                        ),
                    )
                )  # fmt: skip
        except KeyboardInterrupt:
            interrupted = True
        except (TidegaugeError, OSError, MemoryError) as error:  # what was measured before it is still worth printing
            failure = TooLittleMemory("memory ran out") if isinstance(error, MemoryError) else error
        complete = not interrupted and failure is None
        where = f"{environment.cpu}, {environment.cores} cores"
        self._print(f"{_what(image, outline, is_synthetic)}; page cache warm; {where}")
        if self._json_to is not None:
            self._write_json(image, outline, strategies, is_synthetic, complete, environment)
        if failure is not None:
            return complain(types.one_line(failure), Exit.FAILED)
        if interrupted:
            return complain("interrupted; the results are of what was measured until then", Exit.INTERRUPTED)
        return Exit.DONE

    def _prepare(self, *modules: str) -> None:
        """Compile or load kernels; what that takes is a figure of its own."""
        from dashboard.cli.image_progress import run_watched

        began = time.monotonic()
        run_watched("tidegauge", lambda tree, stop: None, *modules)
        self._compile_seconds += time.monotonic() - began

    def _print(self, where: str) -> None:
        from dashboard.cli.run_image_table import results_text, seed_text

        if not self._results:
            return
        on_stderr = self._json_to == "-"
        width = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns
        click.echo(results_text(self._results, width=width, where=where), err=on_stderr)
        if self._seed_table:
            click.echo("\n" + seed_text(self._results, width=width), err=on_stderr)

    def _write_json(
        self,
        image: Path,
        outline: Outline,
        strategies: tuple[str, ...],
        is_synthetic: bool,
        complete: bool,
        environment: Any,
    ) -> None:
        import msgspec

        from dashboard.cli.image_text import phase_json
        from dashboard.cli.json_target import write_json

        assert self._json_to is not None  # the caller has looked
        write_json(
            self._json_to,
            {
                "schema": "tidegauge.run/1",
                "lane": "image",
                "complete": complete,
                "environment": environment,
                "settings": {
                    "file": None if is_synthetic else printable(str(image)),
                    "layout_version": outline.layout_version,
                    "codec": outline.codec,
                    "strategy": strategies,
                    "threads": self._threads,
                    "sample": self._sample,
                },
                "results": [
                    msgspec.to_builtins(result) | {"phases": [phase_json(phase) for phase in result.phases]}
                    for result in self._results
                ],
            },
        )


def threads_of(count: int) -> str:
    """Return a number of threads in words."""
    return f"{count} {'thread' if count == 1 else 'threads'}"


def _what(image: Path, outline: Outline, is_synthetic: bool) -> str:
    name = "a synthetic image" if is_synthetic else printable(image.name)
    size = f"{outline.counts['inodes']:,} inodes, {format_size(outline.size_bytes)}"
    return f"{name}: {size}, layout {outline.layout_version}"


def _require_memory(inodes: int) -> None:
    from engine.environment import memory_available_bytes

    available, needed = memory_available_bytes(), _BYTES_AN_INODE * inodes
    if available is not None and needed > available:
        raise TooLittleMemory(
            f"{inodes:,} inodes need {format_size(needed)} of memory, {format_size(available)} are available; "
            "use --inodes with fewer"
        )


def _cores() -> int:
    from engine.environment import usable_cores

    return usable_cores()
