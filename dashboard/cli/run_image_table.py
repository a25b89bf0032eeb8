"""The results of `run image` as text: a table, verdicts, and the report's figures beside ours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dashboard.cli.text_table import Column, render
from engine.units import format_count, format_duration

if TYPE_CHECKING:
    from engine.workloads.image import ImageResult

# HADOOP-3248: 20 million files, an image of 2.5 GB, a heap of 14 GB.
SEED_INODES = 20_000_000
SEED_ROWS = (
    ("as it was", 40 * 60, None, ""),
    ("JVM options tuned", 14 * 60, None, ""),
    ("and the four changes", 7 * 60, 4 * 60, "19,941,941"),
)
_FEWEST_WEIGHED = 100_000  # inodes: the memory of fewer is lost in what else the process holds


def results_text(results: Sequence[ImageResult], *, width: int, where: str) -> str:
    """Return the table and the verdicts. where: the image and the machine."""
    lines = [_wrapped(where, width), *render(_columns(results), width), ""]
    lines += (_wrapped(line, width) for line in verdicts(results))
    return "\n".join(lines)


def verdicts(results: Sequence[ImageResult]) -> Iterator[str]:
    """Yield what the figures say: where time goes, what a thread brings, how strategies compare."""
    for result in results:
        yield f"{_title(result)}: {_where_time_goes(result)}"
    columnar = [result for result in results if result.strategy == "columnar"]
    if len(columnar) > 1:
        few, many = min(columnar, key=lambda r: r.threads), max(columnar, key=lambda r: r.threads)
        gain = few.elapsed_seconds / many.elapsed_seconds
        yield f"{many.threads} threads are {gain:.2f}x as fast as {few.threads}."
    if columnar and len(results) > len(columnar):
        best = min(columnar, key=lambda r: r.elapsed_seconds)
        others = [result for result in results if result.strategy != "columnar"]
        ratios = ", ".join(f"{r.strategy} {_times(r.elapsed_seconds / best.elapsed_seconds)}" for r in others)
        yield (
            f"Time against columnar: {ratios}. The others are Python objects where the NameNode had Java's: compare "
            "them with each other."
        )
    if any(result.scaled for result in results):
        part = next(result for result in results if result.scaled)
        yield (
            f"Scaled: measured on the first {part.inodes_loaded:,} inodes and multiplied; a larger tree would take "
            "longer yet."
        )
    if results and results[0].compile_seconds >= 1:
        seconds = format_duration(results[0].compile_seconds * 1e9)
        yield f"Before that, kernels took {seconds}: compiled once, loaded from disk ever after. No time above has it."


def seed_text(results: Sequence[ImageResult], *, width: int) -> str:
    """Return the report's times beside ours, for 20 million inodes."""
    rows: list[tuple[str, float, float | None, str]] = [
        (f"the report: {name}", seconds, resolve, calls) for name, seconds, resolve, calls in SEED_ROWS
    ]
    for result in results:
        factor = SEED_INODES / result.inodes
        resolve = None if result.resolve_seconds is None else result.resolve_seconds * factor
        scaled = "" if result.inodes_loaded == SEED_INODES else " (scaled)"
        name = f"here: {result.strategy}, {_threads(result)}{scaled}"
        rows.append((name, result.elapsed_seconds * factor, resolve, f"{round(result.resolve_calls * factor):,}"))
    tuned = SEED_ROWS[-1][1]
    columns = [
        Column("", tuple(name for name, *_ in rows), left=True),
        Column("20 M inodes", tuple(_time(seconds) for _, seconds, _, _ in rows)),
        Column("finding parents", tuple(_time(resolve) for *_, resolve, _ in rows), rank=1),
        Column("calls", tuple(calls or "-" for *_, calls in rows), rank=2),
        Column("against 7 min", tuple(f"{tuned / seconds:,.2f}x" for _, seconds, _, _ in rows)),
    ]
    notes = [
        "The report: 20 million files, an image of 2.5 GB, a heap of 14 GB, hardware of 2008; a little over 7 minutes "
        "in the end, 4 of them in getExistingPathINode, one walk from the root for each inode.",
        "Calls of columnar are lookups in a table of directories, where the record before had another parent.",
    ]
    return "\n".join(
        [
            _wrapped("HADOOP-3248, loading 20 million inodes: the report, and this run", width),
            *render(columns, width),
            *(_wrapped(note, width) for note in notes),
        ]
    )


def _columns(results: Sequence[ImageResult]) -> list[Column]:
    return [
        Column("strategy", tuple(result.strategy for result in results), left=True),
        Column("threads", tuple(str(result.threads) for result in results)),
        Column("loaded", tuple(format_count(result.inodes_loaded) for result in results), rank=3),
        Column("time", tuple(_marked(result) for result in results)),
        Column("inodes/s", tuple(format_count(result.inodes_per_second) for result in results)),
        Column("MB/s", tuple(f"{_megabytes(result):,.0f}" for result in results), rank=4),
        Column("B/inode", tuple(_bytes(result) for result in results), rank=1),
        Column("names B/inode", tuple(_names(result) for result in results), rank=5),
        Column("parents found", tuple(f"{result.resolve_calls:,}" for result in results), rank=2),
        Column("in", tuple(_time(result.resolve_seconds) for result in results), rank=2),
    ]


def _where_time_goes(result: ImageResult) -> str:
    if result.resolve_seconds is not None:
        share = result.resolve_seconds / result.elapsed_seconds if result.elapsed_seconds else 0.0
        walks = f"{result.resolve_calls:,} walks from the root"
        return f"{share:.0%} of the time finds parents, in {walks}; the rest makes objects"
    steps = [
        (step.name, step.elapsed_ns)
        for top in result.phases
        for phase in top.children
        if phase.name == "Inodes"
        for step in phase.children
    ]
    total = sum(elapsed for _, elapsed in steps)
    if not total:
        return "too short to say where the time goes"
    largest = sorted(steps, key=lambda step: -step[1])[:4]
    return ", ".join(f"{name} {elapsed / total:.0%}" for name, elapsed in largest)


def _title(result: ImageResult) -> str:
    return f"{result.strategy}, {_threads(result)}"


def _threads(result: ImageResult) -> str:
    return f"{result.threads} {'thread' if result.threads == 1 else 'threads'}"


def _marked(result: ImageResult) -> str:
    return _time(result.elapsed_seconds) + (" scaled" if result.scaled else "")


def _megabytes(result: ImageResult) -> float:
    return result.image_bytes / 1e6 / result.elapsed_seconds if result.elapsed_seconds else 0.0


def _bytes(result: ImageResult) -> str:
    return f"{result.bytes_per_inode:,.0f}" if result.inodes_loaded >= _FEWEST_WEIGHED else "-"


def _names(result: ImageResult) -> str:
    return "among them" if result.name_bytes is None else f"{result.name_bytes / result.inodes_loaded:,.0f}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds / 60:,.1f} min" if seconds >= 100 else format_duration(seconds * 1e9)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, max(width, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
