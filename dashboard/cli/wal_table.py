"""The results of `run wal` as text: a table per device and durability, verdicts, and the report's figures beside ours.

Fits 100 columns; a narrower terminal loses the stage shares first, then the middle quantiles, never ops/s.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dashboard.cli.text_table import Column, render
from dashboard.cli.wal_verdict import case_verdict
from engine.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from engine.workloads.wal import WalResult

STAGES = ("queue", "write", "sync", "wake")

# HBASE-8755: HLogPerformanceEvaluation, patched, 1,000,000 records a thread, median of three runs, in ops/s.
SEED_OPS_PER_SECOND = {1: 1_021.125, 5: 5_278.811, 50: 17_078.736}
SEED_RATIO_OF_MEANS = 16.4


def results_text(results: Sequence[WalResult], *, width: int, where: str) -> str:
    """Return tables and verdicts for stdout. where: the file system and disk the log was on."""
    lines: list[str] = []
    for _, group in groupby(results, key=_setting):
        cases = list(group)
        lines += [
            *([""] if lines else []),
            _wrapped(setting_line(cases[0], where), width),
            *render(_columns(cases), width),
            "",
        ]
        lines += (_wrapped(f"{case_title(case)}: {_remark(case)}", width) for case in cases)
    return "\n".join(lines)


def setting_line(result: WalResult, where: str) -> str:
    """Say what a table's cases have in common: device and durability, never silent about what is simulated or lost."""
    durability = "sync none (not durable)" if result.sync == "none" else f"sync {result.sync}"
    if result.sync_every > 1 and result.sync != "none":
        durability += f", each handler waits at every {_nth(result.sync_every)} record; the others are acked un-synced"
    loop = f"open loop at {format_count(result.rate)} ops/s" if result.rate else "closed loop"
    return f"device {result.device}, on {where}; {durability}; {format_size(result.value_size_bytes)} values; {loop}"


def case_title(result: WalResult) -> str:
    """Name a case within its table."""
    return f"{result.model}, {result.threads} {'handler' if result.threads == 1 else 'handlers'}"


def seed_text(results: Iterable[WalResult], *, width: int) -> str:
    """Return the report's figures beside ours, with the ratio of 50 threads to 1 in each."""
    ours: dict[tuple[str, str], dict[int, float]] = {}
    for result in results:
        ours.setdefault((result.model, result.device), {})[result.threads] = result.ops_per_second
    columns = [
        Column("threads", ("1", "5", "50", "50 : 1")),
        Column("the report", _seed_cells(SEED_OPS_PER_SECOND, decimals=3)),
        *(
            Column(model if device == "real" else f"{model} on {device}", _seed_cells(figures, decimals=0))
            for (model, device), figures in ours.items()
        ),
    ]
    head = "HBASE-8755, ops/s: HLogPerformanceEvaluation with the patch (median of three runs), and this run"
    notes = [
        "The report's hardware was other, an HDFS of 2013: the shape compares, the figures do not.",
        f"Its 50 : 1 is {_ratio(SEED_OPS_PER_SECOND)} by these medians, {SEED_RATIO_OF_MEANS}x by its means.",
    ]
    missing = [str(n) for n in SEED_OPS_PER_SECOND if not any(n in figures for figures in ours.values())]
    if missing:
        notes.append(f"Not measured in this run: {', '.join(missing)} threads; use --threads 1,5,50.")
    notes = [_wrapped(note, width) for note in notes]
    return "\n".join([_wrapped(head, width), *_blocks(columns, width), *notes])


def _blocks(columns: Sequence[Column], width: int) -> Iterator[str]:
    """Render columns beside the first two, in as many blocks as the width needs."""
    fixed, rest = columns[:2], list(columns[2:])
    first = True
    while rest or first:
        taken = [*fixed]
        while rest and (len(taken) == 2 or sum(c.width + 2 for c in [*taken, rest[0]]) - 2 <= width):
            taken.append(rest.pop(0))
        if not first:
            yield ""
        yield from render(taken, width)
        first = False


def _seed_cells(figures: dict[int, float], *, decimals: int) -> tuple[str, ...]:
    cells = (f"{figures[n]:,.{decimals}f}" if n in figures else "-" for n in SEED_OPS_PER_SECOND)
    return (*cells, _ratio(figures))


def _ratio(figures: dict[int, float]) -> str:
    return f"{figures[50] / figures[1]:.1f}x" if figures.get(1) and 50 in figures else "-"


def _setting(result: WalResult) -> tuple[object, ...]:
    return (result.device, result.sync, result.sync_every, result.value_size_bytes, result.rate)


def _columns(cases: Sequence[WalResult]) -> list[Column]:
    latency = [case.latency_seconds for case in cases]
    return [
        Column("model", tuple(case.model for case in cases), left=True),
        Column("handlers", tuple(str(case.threads) for case in cases)),
        Column("ops/s", tuple(_whole(case.ops_per_second) for case in cases)),
        Column("syncs/s", tuple(_whole(case.syncs_per_second) for case in cases), rank=3),
        Column("ops/sync", tuple(_two_digits(case.ops_per_sync) for case in cases), rank=1),
        Column("p50", tuple(_seconds(each.p50) for each in latency), rank=2),
        Column("p99", tuple(_seconds(each.p99) for each in latency), rank=2),
        Column("p99.9", tuple(_seconds(each.p999) for each in latency), rank=4),
        Column("max", tuple(_seconds(each.max) for each in latency), rank=5),
        Column("queue/write/sync/wake", tuple(_shares(case) for case in cases), rank=6),
    ]


def _shares(case: WalResult) -> str:
    """Return where the time of a commit goes, in percent of it."""
    parts = [getattr(case.stage_seconds, stage) or 0.0 for stage in STAGES]
    spent = sum(parts)
    if not spent > 0:
        return "-"
    return " ".join(f"{part / spent * 100:3.0f}" for part in parts) + " %"


def _remark(case: WalResult) -> str:
    remarks = [case.error] if case.error else [case_verdict(case)]
    if not case.complete and not case.error:
        remarks.append(
            f"interrupted after {format_duration(case.elapsed_seconds * 1e9)}: this is what was measured by then"
        )
    if case.verified:
        remarks.append("read back: count, order and content are right")
    return "; ".join(remarks)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, max(width, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _nth(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _whole(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:,.0f}"


def _two_digits(value: float | None) -> str:
    return "-" if not value or math.isnan(value) else f"{value:,.2f}" if value < 10 else f"{value:,.1f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else format_duration(value * 1e9).replace(" ", "")
