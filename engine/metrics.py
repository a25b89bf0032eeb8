"""The one table of quantities: exporter, recordings, reference page and dashboards follow it.

A row names a quantity, its kind, help and labels, and reads it from a snapshot. Names take the Prometheus form
without the program's prefix: base units at the end, `_total` on what only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from engine.measure.buckets import LADDER_NS, ladder_counts
from engine.snapshot import (
    Absent,
    FineHistogram,
    Histogram,
    PeriodQuantiles,
    RamdiskSnapshot,
    Snapshot,
    WalSnapshot,
)

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


def _ramdisk(pick: Callable[[RamdiskSnapshot], float | Histogram]) -> Callable[[Snapshot], Iterator[Sample]]:
    def read(snapshot: Snapshot) -> Iterator[Sample]:
        if isinstance(snapshot.ramdisk, RamdiskSnapshot):
            yield Sample((), pick(snapshot.ramdisk))

    return read


def _ramdisk_info(snapshot: Snapshot) -> Iterator[Sample]:
    ram = snapshot.ramdisk
    if isinstance(ram, RamdiskSnapshot):
        yield Sample((ram.ram_label, ram.policy, ram.checksum, ram.copy_mode, ram.state), 1)


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
        "ramdisk_info",
        _G,
        "Always 1 while the store is there; what it is and does.",
        ("ram", "policy", "checksum", "copy", "state"),
        _ramdisk_info,
    ),
    Metric("ramdisk_capacity_bytes", _G, "Memory that the store may use.", (), _ramdisk(lambda r: r.capacity_bytes)),
    Metric("ramdisk_used_bytes", _G, "Memory that finalised replicas take.", (), _ramdisk(lambda r: r.used_bytes)),
    Metric(
        "ramdisk_reserved_bytes",
        _G,
        "Memory set aside for blocks being written.",
        (),
        _ramdisk(lambda r: r.reserved_bytes),
    ),
    Metric("ramdisk_spare_bytes", _G, "Memory of files kept for reuse.", (), _ramdisk(lambda r: r.spare_bytes)),
    Metric(
        "ramdisk_persist_rate_limit_bytes",
        _G,
        "The limit of the lazy writers, bytes a second; 0 is none.",
        (),
        _ramdisk(lambda r: r.persist_rate_bytes),
    ),
    Metric(
        "ramdisk_stream_rate_bytes",
        _G,
        "The stream's rate as asked for, bytes a second; 0 is as fast as it goes.",
        (),
        _ramdisk(lambda r: r.stream_rate_bytes),
    ),
    Metric(
        "ramdisk_backlog_blocks", _G, "Blocks that a power cut would lose.", (), _ramdisk(lambda r: r.backlog_blocks)
    ),
    Metric("ramdisk_backlog_bytes", _G, "Bytes that a power cut would lose.", (), _ramdisk(lambda r: r.backlog_bytes)),
    Metric(
        "ramdisk_oldest_at_risk_seconds",
        _G,
        "Age of the oldest block that a power cut would lose; 0 where there is none.",
        (),
        _ramdisk(lambda r: r.oldest_at_risk_ns / 1e9),
    ),
    Metric(
        "ramdisk_failing_blocks",
        _G,
        "Blocks at risk whose last attempt to persist failed.",
        (),
        _ramdisk(lambda r: r.failing_blocks),
    ),
    Metric("ramdisk_files", _G, "Files in the store.", (), _ramdisk(lambda r: r.files)),
    Metric(
        "ramdisk_lost_files",
        _G,
        "Files with blocks that were in memory only and are lost.",
        (),
        _ramdisk(lambda r: r.lost_files),
    ),
    Metric(
        "ramdisk_ram_written_blocks_total",
        _C,
        "Blocks written to memory.",
        (),
        _ramdisk(lambda r: r.ram_blocks_written),
    ),
    Metric(
        "ramdisk_ram_written_bytes_total", _C, "Bytes written to memory.", (), _ramdisk(lambda r: r.ram_bytes_written)
    ),
    Metric(
        "ramdisk_disk_written_blocks_total",
        _C,
        "Blocks written to disk directly.",
        (),
        _ramdisk(lambda r: r.disk_blocks_written),
    ),
    Metric(
        "ramdisk_disk_written_bytes_total",
        _C,
        "Bytes written to disk directly.",
        (),
        _ramdisk(lambda r: r.disk_bytes_written),
    ),
    Metric(
        "ramdisk_fallback_blocks_total",
        _C,
        "Blocks meant for memory that went to disk.",
        (),
        _ramdisk(lambda r: r.fallback_blocks),
    ),
    Metric(
        "ramdisk_fallback_bytes_total",
        _C,
        "Bytes meant for memory that went to disk.",
        (),
        _ramdisk(lambda r: r.fallback_bytes),
    ),
    Metric(
        "ramdisk_moved_blocks_total",
        _C,
        "Blocks begun in memory and finished on disk.",
        (),
        _ramdisk(lambda r: r.moved_blocks),
    ),
    Metric(
        "ramdisk_recycled_files_total",
        _C,
        "Replica files that were written over instead of made.",
        (),
        _ramdisk(lambda r: r.recycled_files),
    ),
    Metric("ramdisk_ram_reads_total", _C, "Blocks opened for reading in memory.", (), _ramdisk(lambda r: r.ram_reads)),
    Metric("ramdisk_disk_reads_total", _C, "Blocks opened for reading on disk.", (), _ramdisk(lambda r: r.disk_reads)),
    Metric(
        "ramdisk_persisted_blocks_total",
        _C,
        "Blocks that the lazy writers made durable.",
        (),
        _ramdisk(lambda r: r.persisted_blocks),
    ),
    Metric(
        "ramdisk_persisted_bytes_total",
        _C,
        "Bytes that the lazy writers made durable.",
        (),
        _ramdisk(lambda r: r.persisted_bytes),
    ),
    Metric(
        "ramdisk_persist_errors_total",
        _C,
        "Attempts to persist a block that failed and are tried again.",
        (),
        _ramdisk(lambda r: r.persist_errors),
    ),
    Metric(
        "ramdisk_evicted_blocks_total", _C, "Blocks whose memory was freed.", (), _ramdisk(lambda r: r.evicted_blocks)
    ),
    Metric("ramdisk_evicted_bytes_total", _C, "Bytes whose memory was freed.", (), _ramdisk(lambda r: r.evicted_bytes)),
    Metric(
        "ramdisk_evicted_without_read_blocks_total",
        _C,
        "Evicted blocks that nobody had read.",
        (),
        _ramdisk(lambda r: r.evicted_without_read),
    ),
    Metric(
        "ramdisk_deleted_before_persist_blocks_total",
        _C,
        "Blocks deleted before they were copied.",
        (),
        _ramdisk(lambda r: r.deleted_before_persist_blocks),
    ),
    Metric(
        "ramdisk_deleted_before_persist_bytes_total",
        _C,
        "Bytes deleted before they were copied: disk writes saved.",
        (),
        _ramdisk(lambda r: r.deleted_before_persist_bytes),
    ),
    Metric("ramdisk_deleted_files_total", _C, "Files deleted.", (), _ramdisk(lambda r: r.deleted_files)),
    Metric(
        "ramdisk_corrupt_blocks_total",
        _C,
        "Replicas whose bytes did not match their checksums.",
        (),
        _ramdisk(lambda r: r.corrupt_blocks),
    ),
    Metric(
        "ramdisk_lost_blocks_total",
        _C,
        "Blocks that were in memory only and are lost.",
        (),
        _ramdisk(lambda r: r.lost_blocks),
    ),
    Metric(
        "ramdisk_write_stalls_total",
        _C,
        "Reservations that had to evict or got no memory.",
        (),
        _ramdisk(lambda r: r.write_stalls),
    ),
    Metric(
        "ramdisk_persist_busy_seconds_total",
        _C,
        "Time the lazy writers spent copying and syncing, over all volumes.",
        (),
        _ramdisk(lambda r: r.persist_busy_ns / 1e9),
    ),
    Metric(
        "ramdisk_write_stall_seconds_total",
        _C,
        "Time writers spent evicting for a reservation.",
        (),
        _ramdisk(lambda r: r.write_stall_ns / 1e9),
    ),
    Metric(
        "ramdisk_ram_write_seconds",
        _H,
        "Time to write one block to memory.",
        (),
        _ramdisk(lambda r: r.ram_write),
        SECONDS,
    ),
    Metric(
        "ramdisk_disk_write_seconds",
        _H,
        "Time to write one block to disk.",
        (),
        _ramdisk(lambda r: r.disk_write),
        SECONDS,
    ),
    Metric(
        "ramdisk_persist_window_seconds",
        _H,
        "From a block's last byte until it was durable.",
        (),
        _ramdisk(lambda r: r.persist_window),
        SECONDS,
    ),
    Metric(
        "ramdisk_eviction_window_seconds",
        _H,
        "From a block's last byte until its memory was freed.",
        (),
        _ramdisk(lambda r: r.eviction_window),
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
