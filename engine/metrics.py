"""The one table of quantities: exporter, recordings, reference page and dashboards follow it.

A row names a quantity, its kind, help and labels, and reads it from a snapshot. Names take the Prometheus form
without the program's prefix: base units at the end, `_total` on what only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from engine.measure.buckets import LADDER_NS, ladder_counts
from engine.snapshot import Absent, FineHistogram, Histogram, PeriodQuantiles, Snapshot, WalSnapshot

PREFIX = "tidegauge_"


class Kind(Enum):
    """What a Prometheus family of this row is."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Ladder(NamedTuple):
    """Upper bounds of buckets, inclusive; `scale` turns the stored integer unit into the exported one."""

    bounds: tuple[int, ...]
    scale: float


SECONDS = Ladder(LADDER_NS, 1e-9)
OPS_PER_SYNC = Ladder((1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 4096), 1.0)


class Sample(NamedTuple):
    """One value of a row: label values in the row's order, and a number or a histogram on the row's ladder."""

    labels: tuple[str, ...]
    value: float | Histogram | PeriodQuantiles


class Metric(NamedTuple):
    """One quantity. `read` yields what the snapshot holds of it; nothing where the value is absent."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[Snapshot], Iterator[Sample]]
    ladder: Ladder | None = None


def _wal_number(pick: Callable[[WalSnapshot], float | Absent]) -> Callable[[Snapshot], Iterator[Sample]]:
    def read(snapshot: Snapshot) -> Iterator[Sample]:
        if isinstance(snapshot.wal, WalSnapshot):
            value = pick(snapshot.wal)
            if not isinstance(value, Absent):
                yield Sample((snapshot.wal.model, snapshot.wal.device), value)

    return read


def _wal_histogram(
    pick: Callable[[WalSnapshot], FineHistogram | Histogram | PeriodQuantiles | Absent],
) -> Callable[[Snapshot], Iterator[Sample]]:
    def read(snapshot: Snapshot) -> Iterator[Sample]:
        if isinstance(snapshot.wal, WalSnapshot):
            value = pick(snapshot.wal)
            if isinstance(value, FineHistogram):
                value = Histogram(ladder_counts(value.indexes, value.counts), value.total)
            if not isinstance(value, Absent):
                yield Sample((snapshot.wal.model, snapshot.wal.device), value)

    return read


def _wal_stages(snapshot: Snapshot) -> Iterator[Sample]:
    wal = snapshot.wal
    if isinstance(wal, WalSnapshot) and not isinstance(wal.stages, Absent):
        for stage in ("queue", "write", "sync", "wake"):
            yield Sample((wal.model, wal.device, stage), getattr(wal.stages, stage))


def _wal_info(snapshot: Snapshot) -> Iterator[Sample]:
    wal = snapshot.wal
    if isinstance(wal, WalSnapshot):
        yield Sample((wal.model, wal.device, wal.sync, wal.state), 1)


def _process(pick: Callable[[Snapshot], float | Absent]) -> Callable[[Snapshot], Iterator[Sample]]:
    def read(snapshot: Snapshot) -> Iterator[Sample]:
        value = pick(snapshot)
        if not isinstance(value, Absent):
            yield Sample((), value)

    return read


def _build_info(snapshot: Snapshot) -> Iterator[Sample]:
    yield Sample((snapshot.version, snapshot.source_id), 1)


_CASE = ("model", "device")
_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

METRICS: tuple[Metric, ...] = (
    Metric(
        "build_info",
        _G,
        "Always 1; the version and the source the snapshot came from.",
        ("version", "source"),
        _build_info,
    ),
    Metric(
        "wal_info", _G, "Always 1 while the log is there; what it is and does.", (*_CASE, "sync", "state"), _wal_info
    ),
    Metric("wal_commits_total", _C, "Records whose commit returned.", _CASE, _wal_number(lambda w: w.commits)),
    Metric(
        "wal_payload_bytes_total", _C, "Payload bytes of those records.", _CASE, _wal_number(lambda w: w.payload_bytes)
    ),
    Metric(
        "wal_written_bytes_total",
        _C,
        "Bytes written to segments, framing included.",
        _CASE,
        _wal_number(lambda w: w.written_bytes),
    ),
    Metric("wal_rolls_total", _C, "Segments closed and followed by a next one.", _CASE, _wal_number(lambda w: w.rolls)),
    Metric(
        "wal_slow_syncs_total",
        _C,
        "Syncs at or above the slow-sync threshold.",
        _CASE,
        _wal_number(lambda w: w.slow_syncs),
    ),
    Metric(
        "wal_sync_errors_total",
        _C,
        "Syncs that failed; the first stops the log.",
        _CASE,
        _wal_number(lambda w: w.sync_errors),
    ),
    Metric(
        "wal_write_errors_total",
        _C,
        "Writes that failed; the first stops the log.",
        _CASE,
        _wal_number(lambda w: w.write_errors),
    ),
    Metric("wal_handlers", _G, "Handler threads running.", _CASE, _wal_number(lambda w: w.handlers)),
    Metric("wal_waiting_handlers", _G, "Handlers inside commit.", _CASE, _wal_number(lambda w: w.waiting_handlers)),
    Metric("wal_durable_txid", _G, "Highest txid known durable.", _CASE, _wal_number(lambda w: w.durable_txid)),
    Metric("wal_appended_txid", _G, "Highest txid appended.", _CASE, _wal_number(lambda w: w.appended_txid)),
    Metric(
        "wal_pending_bytes", _G, "Bytes appended and not yet written.", _CASE, _wal_number(lambda w: w.pending_bytes)
    ),
    Metric(
        "wal_poisoned",
        _G,
        "1 after an I/O error stopped the log, else 0.",
        _CASE,
        _wal_number(lambda w: float(w.state == "poisoned")),
    ),
    Metric(
        "wal_commit_seconds",
        _H,
        "From the call of commit until its record was durable.",
        _CASE,
        _wal_histogram(lambda w: w.commit_latency),
        SECONDS,
    ),
    Metric("wal_sync_seconds", _H, "Time in one sync.", _CASE, _wal_histogram(lambda w: w.sync_latency), SECONDS),
    Metric("wal_write_seconds", _H, "Time in one write.", _CASE, _wal_histogram(lambda w: w.write_latency), SECONDS),
    Metric(
        "wal_ops_per_sync",
        _H,
        "Records that one sync made durable.",
        _CASE,
        _wal_histogram(lambda w: w.ops_per_sync),
        OPS_PER_SYNC,
    ),
    Metric(
        "wal_stage_seconds",
        _H,
        "Commit latency by stage: queue, write, sync, wake.",
        (*_CASE, "stage"),
        _wal_stages,
        SECONDS,
    ),
    Metric(
        "process_cpu_seconds_total",
        _C,
        "Processor time of this process.",
        (),
        _process(lambda s: s.process.cpu_seconds if not isinstance(s.process, Absent) else s.process),
    ),
    Metric(
        "process_resident_memory_bytes",
        _G,
        "Resident memory of this process.",
        (),
        _process(lambda s: s.process.resident_bytes if not isinstance(s.process, Absent) else s.process),
    ),
)
