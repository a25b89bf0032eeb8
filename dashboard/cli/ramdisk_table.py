"""The results of `run ramdisk` as text: a table, verdicts, and the report's figures beside ours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dashboard.cli.text_table import Column, render
from engine.units import MIB, format_duration, format_size

if TYPE_CHECKING:
    from engine.workloads.ramdisk import RamdiskResult

# HDFS-6581: mean of 3 files of 2 GB, in ms, by (policy, checksum) and block size in MB.
SEED_MS = {
    ("disk", "on"): {128: 7_235, 1024: 7_005},
    ("lazy", "on"): {128: 5_015, 1024: 4_635},
    ("lazy", "off"): {128: 4_504, 1024: 4_240},
}


def results_text(results: Sequence[RamdiskResult], *, width: int, where: str) -> str:
    """Return the table and the verdicts. where: the file systems the run used."""
    if results and results[0].rate:
        lines = [_wrapped(where, width), *render(_stream_columns(results), width), ""]
        lines += (_wrapped(_stream_verdict(result), width) for result in results)
        return "\n".join(lines)
    lines = [_wrapped(where, width), *render(_columns(results), width), ""]
    lines += (_wrapped(line, width) for line in verdicts(results))
    return "\n".join(lines)


def verdicts(results: Sequence[RamdiskResult]) -> Iterator[str]:
    """Yield a line for each lazy case that has a baseline, then what a power cut would have taken, then caveats."""
    for result in results:
        if result.policy == "lazy" and result.improvement_ratio:
            yield f"{_title(result)}: {_against(result)}"
    for policy in dict.fromkeys(result.policy for result in results if result.file_seconds):
        most = max((result.at_risk_bytes for result in results if result.policy == policy), default=0)
        yield _power_cut(policy, most, results)
    if any(result.first_use_file_seconds for result in results):
        yield (
            "Every case writes its files twice: first use on the new store (memory and disk blocks that nobody has "
            "touched), then, persisted and deleted, again (mean/file); comparisons are of the second."
        )
    if any(result.caches_dropped is False for result in results):
        yield "The page cache could not be dropped between cases (that needs root): dirty pages were written out only."
    for result in results:
        if result.state == "dirty-cache" and result.other_dirty_bytes:
            yield f"dirty-cache: {format_size(result.other_dirty_bytes)} of other dirty data came first."
            break
    if any("not tmpfs" in result.ram for result in results):
        yield f"The RAM directory is {next(r.ram for r in results if 'not tmpfs' in r.ram)}."


def seed_text(results: Sequence[RamdiskResult], *, width: int) -> str:
    """Return the report's table beside ours, state clean, with the improvement over disk in each."""
    ours: dict[tuple[str, str], dict[int, float]] = {}
    for result in results:
        if result.state == "clean" and result.mean_file_seconds:
            block = result.block_size_bytes // MIB
            ours.setdefault((result.policy, result.checksum), {}).setdefault(block, result.mean_file_seconds * 1e3)
    rows = [("disk", "on"), ("disk-sync", "on"), ("lazy", "on"), ("lazy", "deferred"), ("lazy", "off")]
    columns = [Column("setting", tuple(f"{policy}, checksums {checksum}" for policy, checksum in rows), left=True)]
    for block in (128, 1024):
        columns.append(Column(f"report {block} MB", tuple(_seed_cell(SEED_MS, row, block, "disk") for row in rows)))
        columns.append(Column(f"ours {block} MiB", tuple(_seed_cell(ours, row, block, "disk") for row in rows), rank=0))
        columns.append(Column("vs disk-sync", tuple(_versus(ours, row, block, "disk-sync") for row in rows), rank=1))
    head = "HDFS-6581, mean ms a file (improvement over disk): 3 files of 2 GB, and this run"
    sizes = {(result.files, result.file_size_bytes) for result in results}
    notes = [f"This run: {files} files of {format_size(size)}." for files, size in sorted(sizes)]
    missing = [f"{block} MiB" for block in (128, 1024) if not any(block in figures for figures in ours.values())]
    if missing:
        notes.append(f"Not measured in this run: blocks of {' and '.join(missing)}, state clean.")
    notes.append("The report's hardware was other, of 2014: the shape compares, the figures do not.")
    notes.append("Its disk baseline does not sync: disk-sync is what makes a file durable at close.")
    return "\n".join([_wrapped(head, width), *render(columns, width), *(_wrapped(note, width) for note in notes)])


def _columns(results: Sequence[RamdiskResult]) -> list[Column]:
    return [
        Column("policy", tuple(result.policy for result in results), left=True),
        Column("checksum", tuple(result.checksum for result in results), left=True),
        Column("block", tuple(format_size(result.block_size_bytes) for result in results)),
        Column("state", tuple(result.state for result in results), left=True, rank=6),
        Column("copy", tuple(result.copy or "-" for result in results), left=True, rank=7),
        Column("mean/file", tuple(_seconds(result.mean_file_seconds) for result in results)),
        Column("first use", tuple(_seconds(result.mean_first_use_file_seconds) for result in results), rank=3),
        Column("fastest", tuple(_seconds(min(result.file_seconds, default=None)) for result in results), rank=9),
        Column("slowest", tuple(_seconds(max(result.file_seconds, default=None)) for result in results), rank=8),
        Column("vs disk", tuple(_ratio(result, "disk") for result in results), rank=1),
        Column("vs disk-sync", tuple(_ratio(result, "disk-sync") for result in results), rank=2),
        Column("persist/s", tuple(_rate(result.persist_bytes_per_second) for result in results), rank=4),
        Column("at risk", tuple(format_size(result.at_risk_bytes) for result in results), rank=3),
        Column("fallback", tuple(f"{result.fallback_blocks:,}" for result in results), rank=5),
        *(
            [Column("verified", tuple(_verified(result) for result in results), rank=1)]
            if any(result.verified is not None for result in results)
            else []
        ),
    ]


def _stream_columns(results: Sequence[RamdiskResult]) -> list[Column]:
    return [
        Column("checksum", tuple(result.checksum for result in results), left=True, rank=3),
        Column("block", tuple(format_size(result.block_size_bytes) for result in results), rank=2),
        Column("asked", tuple(_rate(result.rate) for result in results)),
        Column("written/s", tuple(_rate(_written_rate(result)) for result in results)),
        Column("persist/s", tuple(_rate(result.persist_bytes_per_second) for result in results)),
        Column("backlog, most", tuple(format_size(result.backlog_bytes_max) for result in results)),
        Column("oldest, most", tuple(_seconds(result.oldest_at_risk_seconds_max) for result in results)),
        Column("drained in", tuple(_seconds(result.drain_seconds) for result in results), rank=1),
        Column("fallback", tuple(f"{result.fallback_blocks:,}" for result in results), rank=1),
        Column("stalls", tuple(f"{result.write_stalls:,}" for result in results), rank=4),
    ]


def _stream_verdict(result: RamdiskResult) -> str:
    """Say whether the lazy writer keeps up, from the backlog's slope over the second half of the stream."""
    points = result.stream[len(result.stream) // 2 :]
    if len(points) < 2 or result.policy != "lazy":
        return "too short to say whether the lazy writer keeps up"
    span = points[-1].seconds - points[0].seconds
    slope = (points[-1].backlog_bytes - points[0].backlog_bytes) / span if span else 0.0
    behind = result.oldest_at_risk_seconds_max
    if result.fallback_blocks:
        return (
            f"the lazy writer does not keep up: memory was full, {result.fallback_blocks:,} blocks went to disk; "
            f"up to {format_size(result.backlog_bytes_max)} and {behind:.1f} s at risk"
        )
    if slope > (result.rate or 0) * 0.05:
        return f"the backlog grows by {format_size(slope)}/s: the lazy writer does not keep up with this rate"
    return f"the lazy writer keeps up: at most {behind:.1f} s and {format_size(result.backlog_bytes_max)} behind"


def _against(result: RamdiskResult) -> str:
    parts = []
    for baseline, words in (("disk-sync", "a write that is durable at close"), ("disk", "a buffered write")):
        ratio = result.improvement_ratio.get(baseline)
        if ratio is not None:
            parts.append(f"{abs(ratio):.0%} {'faster' if ratio >= 0 else 'slower'} than {words}")
    text = ", ".join(parts)
    buffered = result.improvement_ratio.get("disk")
    if buffered is not None and buffered < 0.1 and result.state == "clean":
        text += f"; a clean page cache is {'about as fast as' if buffered > -0.1 else 'faster than'} a RAM disk"
    if result.fallback_blocks:
        text += f"; {result.fallback_blocks:,} blocks found no memory and went to disk"
    return text


def _power_cut(policy: str, at_risk: int, results: Sequence[RamdiskResult]) -> str:
    if policy == "disk-sync":
        return "A power cut right after the last close loses nothing of disk-sync."
    if policy == "disk":
        return (
            f"A power cut right after the last close loses up to {format_size(at_risk)} of disk: nobody syncs it, the "
            "kernel writes it out when it likes (30 s by default)."
        )
    drains = [
        result.drain_seconds for result in results if result.policy == "lazy" and result.drain_seconds is not None
    ]
    until = f", {_seconds(max(drains))} later nothing" if drains else ""
    return f"A power cut right after the last close loses up to {format_size(at_risk)} of lazy{until}."


def _title(result: RamdiskResult) -> str:
    return f"lazy, checksums {result.checksum}, blocks of {format_size(result.block_size_bytes)}, {result.state}"


def _seed_cell(
    figures: dict[tuple[str, str], dict[int, float]] | dict[tuple[str, str], dict[int, int]],
    row: tuple[str, str],
    block: int,
    baseline: str,
) -> str:
    value = figures.get(row, {}).get(block)
    if value is None:
        return "-"
    text = f"{value:,.0f}"
    return text if row[0] == baseline else f"{text} ({_versus(figures, row, block, baseline)})"


def _versus(
    figures: dict[tuple[str, str], dict[int, float]] | dict[tuple[str, str], dict[int, int]],
    row: tuple[str, str],
    block: int,
    baseline: str,
) -> str:
    value, other = figures.get(row, {}).get(block), figures.get((baseline, "on"), {}).get(block)
    return "-" if value is None or not other or row[0] == baseline else f"{1 - value / other:+.1%}"


def _ratio(result: RamdiskResult, baseline: str) -> str:
    ratio = result.improvement_ratio.get(baseline)
    return "-" if ratio is None else f"{ratio:+.1%}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_duration(value * 1e9)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{format_size(value)}/s"


def _written_rate(result: RamdiskResult) -> float | None:
    return result.written_bytes / result.elapsed_seconds if result.elapsed_seconds else None


def _verified(result: RamdiskResult) -> str:
    return "-" if result.verified is None else "yes" if result.verified else "NO"


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, max(width, 20), subsequent_indent="  ")
