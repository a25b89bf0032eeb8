"""The flags of `tidegauge run wal`, and the matrix of cases they describe."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dashboard.cli import types
from dashboard.cli.engine_flags import DEVICE, MODEL, MODELS, SEGMENT_SIZE, SYNC, SYNCS, THREADS, VALUE_SIZE
from engine.errors import printable
from engine.units import SECOND, format_size

SEGMENT_HEADER, RECORD_HEADER = 4096, 24  # bytes: docs/reference/wal-format.md
DEFAULT_DURATION_NS = 5 * SECOND
LONGEST_NS = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class WalFlags:
    """The command's flags, read and within their bounds."""

    threads: tuple[int, ...]
    model: tuple[str, ...]
    device: tuple[str, ...]
    iterations: int | None
    duration: int | None
    warmup: int
    value_size: tuple[int, ...]
    sync: tuple[str, ...]
    sync_every: int
    roll: int | None
    segment_size: int
    rate: int | None
    path: Path | None
    keep: bool
    verify: bool
    seed_table: bool
    json_to: str | None

    def cases(self) -> Iterator[dict[str, Any]]:
        """Yield the fields of each case of the matrix."""
        for device, sync, value_size, model, threads in itertools.product(
            self.device, self.sync, self.value_size, self.model, self.threads
        ):
            yield {
                "model": model,
                "threads": threads,
                "device": device,
                "value_size_bytes": value_size,
                "sync": sync,
                "sync_every": self.sync_every,
                "rate": self.rate,
                "iterations": self.iterations,
                "duration_ns": self.duration,
                "warmup_ns": self.warmup,
                "roll": self.roll,
                "segment_size": self.segment_size,
                "verify": self.verify,
            }

    def settings(self, log_folder: Path) -> dict[str, Any]:
        """Return the `settings` of the JSON, in base units."""
        return {
            "threads": self.threads,
            "model": self.model,
            "device": self.device,
            "iterations": self.iterations,
            "duration_seconds": self.duration / SECOND if self.duration is not None else None,
            "warmup_seconds": self.warmup / SECOND,
            "value_size_bytes": self.value_size,
            "sync": self.sync,
            "sync_every": self.sync_every,
            "roll": self.roll,
            "segment_size_bytes": self.segment_size,
            "rate": self.rate,
            "path": printable(str(log_folder)),
            "verify": self.verify,
        }


def wal_flags(command: Callable[[WalFlags], int]) -> Callable[..., int]:
    """Add the flags to a command, which receives them as a WalFlags."""

    @functools.wraps(command)
    def with_flags(**given: Any) -> int:
        if given["iterations"] is not None and given["duration"] is not None:
            raise click.UsageError("--iterations and --duration cannot be given together: one says when a case ends")
        room = given["segment_size"] - SEGMENT_HEADER - RECORD_HEADER
        if max(given["value_size"]) > room:
            largest, segment = format_size(max(given["value_size"])), format_size(given["segment_size"])
            raise click.UsageError(
                f"--value-size {largest} does not fit a segment of {segment}: allowed is up to {room:,} bytes, "
                "or a larger --segment-size"
            )
        if given["iterations"] is None and given["duration"] is None:
            given["duration"] = DEFAULT_DURATION_NS
        return command(WalFlags(**given))

    for option in reversed(_OPTIONS):
        with_flags = option(with_flags)
    return with_flags


_OPTIONS: tuple[Callable[[Callable[..., int]], Callable[..., int]], ...] = (
    click.option(
        "--threads", type=types.ListOf(THREADS), default="1,5,50", show_default=True, metavar="LIST", help="Handlers."
    ),
    click.option(
        "--model",
        type=types.ListOf(MODEL),
        default="group",
        show_default=True,
        metavar="LIST",
        help=f"Write-thread models: {', '.join(MODELS)}.",
    ),
    click.option(
        "--device",
        type=types.ListOf(DEVICE),
        default="real",
        show_default=True,
        metavar="LIST",
        help="real, or a simulated latency added to each sync: serial:5ms (one at a time), parallel:1ms.",
    ),
    click.option(
        "--iterations",
        type=types.count("iterations", minimum=1, maximum=10**9),
        metavar="N",
        help="Records per handler, instead of --duration.",
    ),
    click.option(
        "--duration",
        type=types.duration("duration", minimum=SECOND // 10, maximum=LONGEST_NS),
        metavar="TIME",
        help="Measured time per case.  [default: 5s]",
    ),
    click.option(
        "--warmup",
        type=types.duration("warmup", minimum=0, maximum=LONGEST_NS),
        default="1s",
        show_default=True,
        metavar="TIME",
        help="Time before each case that is not counted.",
    ),
    click.option(
        "--value-size",
        type=types.ListOf(VALUE_SIZE),
        default="1KiB",
        show_default=True,
        metavar="LIST",
        help="Payload bytes of a record.",
    ),
    click.option(
        "--sync",
        type=types.ListOf(SYNC),
        default="fdatasync",
        show_default=True,
        metavar="LIST",
        help=f"{', '.join(SYNCS)} (none is not durable).",
    ),
    click.option(
        "--sync-every",
        type=types.count("sync-every", minimum=1, maximum=10**6),
        default="1",
        show_default=True,
        metavar="N",
        help="A handler waits for durability at each Nth of its records; the others are acked un-synced.",
    ),
    click.option(
        "--roll",
        type=types.count("roll", minimum=1, maximum=10**9),
        metavar="N",
        help="Start a new segment after N records, besides by size.",
    ),
    click.option(
        "--segment-size",
        type=SEGMENT_SIZE,
        default="64MiB",
        show_default=True,
        metavar="SIZE",
        help="Size of a segment file.",
    ),
    click.option(
        "--rate",
        type=types.operations_per_second("rate", minimum=1, maximum=10**7),
        metavar="OPS/S",
        help="Open loop: records a second over all handlers, each timed from when it was due.",
    ),
    click.option(
        "--path",
        type=types.Folder(),
        metavar="DIR",
        help="Folder for the log; made if missing, its parent must exist.  [default: a temporary folder on a disk]",
    ),
    click.option(
        "--keep",
        is_flag=True,
        help="Keep the log: its last segments, or all with --verify. Otherwise what the run made is removed.",
    ),
    click.option("--verify", is_flag=True, help="Read the log back: count, order, content."),
    click.option("--seed-table", is_flag=True, help="Print HBASE-8755's figures for 1, 5 and 50 threads beside ours."),
    click.option(
        "--json",
        "json_to",
        metavar="FILE",
        help="Write the results as JSON; - is stdout, and the table then goes to stderr.",
    ),
)
