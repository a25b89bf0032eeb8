"""`tidegauge serve`: the engine without a screen, for Prometheus and remote screens, until it is told to end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click

from dashboard.cli.engine_flags import EngineFlags, engine_flags, exporter_flags
from dashboard.cli.exits import Exit
from dashboard.cli.interrupt import stop_on_signals
from dashboard.cli.progress import Progress
from engine.errors import printable
from engine.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from dashboard.exporter.server import Exporter
    from engine.engine import Engine
    from engine.snapshot import Snapshot

STATUS_SECONDS = 10.0
RETRY_SECONDS = 5.0
_TICK_SECONDS = 0.25


@click.command("serve", short_help="Run the engine without a screen and serve /metrics.")
@engine_flags
@exporter_flags
def serve(flags: EngineFlags, port: int, bind: str) -> int:
    """Run the engine without a screen and serve /metrics, /snapshot and /healthz until Ctrl+C, SIGTERM or SIGHUP.

    A port that is in use is tried again every few seconds. The log in --path stays; without --path it is removed.
    """
    from dashboard.cli.local_engine import local_engine
    from dashboard.exporter.server import Exporter

    progress = Progress()
    with stop_on_signals() as stop, local_engine(flags, progress, stop) as engine:
        exporter = Exporter(engine.sample, bind=bind, port=port)
        try:
            _serve(engine, exporter, progress, stop)
        finally:
            exporter.stop()
    progress.note("stopped")
    return Exit.DONE


def _serve(engine: Engine, exporter: Exporter, progress: Progress, stop: threading.Event) -> None:
    """Keep the exporter listening and say now and then how the log does, until stop is set."""
    listening, told_busy = False, False
    retry_at, status_at = 0.0, time.monotonic() + STATUS_SECONDS
    before, seen = engine.sample(), 0
    while True:
        now = time.monotonic()
        if not listening and now >= retry_at:
            listening, told_busy = _try_to_listen(exporter, progress, told_busy)
            retry_at = now + RETRY_SECONDS
        if stop.wait(_TICK_SECONDS):
            return
        sample = engine.sample()
        for event in sample.events:
            if event.number > seen and event.severity != "info":
                progress.note(f"{event.severity}: {printable(event.text)}")
        seen = max((event.number for event in sample.events), default=seen)
        if now >= status_at:
            progress.note(status_line(before, sample))
            if (line := ramdisk_status_line(before, sample)) is not None:
                progress.note(line)
            before, status_at = sample, now + STATUS_SECONDS


def _try_to_listen(exporter: Exporter, progress: Progress, told_busy: bool) -> tuple[bool, bool]:
    """Return (listening, the busy port has been named). Raises CannotListen where trying again cannot help."""
    from dashboard.exporter.server import CannotListen

    try:
        exporter.start()
    except CannotListen as error:
        if not error.in_use:
            raise
        if not told_busy:
            progress.note(f"tidegauge: {error}; running without it and trying again every {RETRY_SECONDS:.0f} s")
        return False, True
    click.echo(exporter.url)
    return True, told_busy


def status_line(before: Snapshot, after: Snapshot) -> str:
    """Return how the log did between two snapshots of one engine, in one line."""
    from engine.snapshot import Absent

    old, new = before.wal, after.wal
    if isinstance(new, Absent):
        return f"wal: {printable(new.reason)}"
    head = f"wal: {new.state}, {new.model} on {new.device}, sync {new.sync}, {new.handlers} handlers"
    if (
        isinstance(old, Absent)
        or old.epoch != new.epoch
        or isinstance(old.commits, Absent)
        or isinstance(new.commits, Absent)
    ):
        return head
    seconds = (after.monotonic_ns - before.monotonic_ns) / 1e9
    if seconds <= 0:
        return head
    rate = format_count(max(new.commits - old.commits, 0) / seconds)
    return f"{head}, {rate} ops/s over {format_duration(seconds * 1e9)}, durable txid {new.durable_txid:,}"


def ramdisk_status_line(before: Snapshot, after: Snapshot) -> str | None:
    """Return how the RAM disk did between two snapshots; None where nothing is written and nothing at risk."""
    from engine.snapshot import Absent

    old, new = before.ramdisk, after.ramdisk
    if isinstance(new, Absent) or (new.state != "streaming" and not new.backlog_bytes):
        return None
    head = f"ramdisk: {new.state}, {format_size(new.backlog_bytes)} at risk, {new.fallback_blocks:,} fallbacks"
    seconds = (after.monotonic_ns - before.monotonic_ns) / 1e9
    if isinstance(old, Absent) or old.epoch != new.epoch or seconds <= 0:
        return head
    written = (
        new.ram_bytes_written - old.ram_bytes_written + new.disk_bytes_written - old.disk_bytes_written
    ) / seconds
    persisted = (new.persisted_bytes - old.persisted_bytes) / seconds
    return f"{head}, {format_size(written)}/s written, {format_size(persisted)}/s persisted"
