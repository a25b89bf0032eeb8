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
    ImageSnapshot,
    ImageSummary,
    PeriodQuantiles,
    PhaseRow,
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


def _image(pick: Callable[[ImageSnapshot], float]) -> Callable[[Snapshot], Iterator[Sample]]:
    def read(snapshot: Snapshot) -> Iterator[Sample]:
        if isinstance(snapshot.image, ImageSnapshot):
            yield Sample((), pick(snapshot.image))

    return read


def _image_summary(pick: Callable[[ImageSummary], float]) -> Callable[[Snapshot], Iterator[Sample]]:
    def read(snapshot: Snapshot) -> Iterator[Sample]:
        image = snapshot.image
        if isinstance(image, ImageSnapshot) and isinstance(image.summary, ImageSummary):
            yield Sample((), pick(image.summary))

    return read


def _image_info(snapshot: Snapshot) -> Iterator[Sample]:
    image = snapshot.image
    if isinstance(image, ImageSnapshot):
        made = "synthetic" if image.is_synthetic else "file"
        yield Sample((made, image.layout, image.codec, image.strategy, image.state), 1)


def _image_loads(snapshot: Snapshot) -> Iterator[Sample]:
    image = snapshot.image
    if isinstance(image, ImageSnapshot):
        yield Sample(("complete",), image.lane_loads)
        yield Sample(("cancelled",), image.lane_cancelled_loads)
        yield Sample(("failed",), image.lane_failed_loads)


def _image_phases(pick: Callable[[PhaseRow], float]) -> Callable[[Snapshot], Iterator[Sample]]:
    """Read each phase, by its path: LoadingFsImage, LoadingFsImage/Inodes. One that comes again is told once."""

    def read(snapshot: Snapshot) -> Iterator[Sample]:
        image = snapshot.image
        if isinstance(image, ImageSnapshot):
            path: list[str] = []
            found: dict[str, float] = {}
            for phase in image.phases:
                path = [*path[: max(phase.depth, 0)], phase.name]
                found.setdefault("/".join(path), pick(phase))
            for name, value in found.items():
                yield Sample((name,), value)

    return read


def _image_threads(snapshot: Snapshot) -> Iterator[Sample]:
    image = snapshot.image
    if isinstance(image, ImageSnapshot):
        for name, cpu_ns in {thread.name: thread.cpu_ns for thread in image.cpu}.items():
            yield Sample((name,), cpu_ns / 1e9)


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
        "image_info",
        _G,
        "Always 1 while the lane is there; what it loads or has loaded.",
        ("image", "layout", "codec", "strategy", "state"),
        _image_info,
    ),
    Metric("image_loads_total", _C, "Loads that have ended, by how.", ("outcome",), _image_loads),
    Metric("image_loaded_inodes_total", _C, "Inodes loaded, by every load.", (), _image(lambda i: i.lane_inodes)),
    Metric(
        "image_read_bytes_total",
        _C,
        "Bytes of images passed over, by every pass of every load.",
        (),
        _image(lambda i: i.lane_read_bytes),
    ),
    Metric("image_size_bytes", _G, "Size of the image.", (), _image(lambda i: i.size_bytes)),
    Metric("image_inodes", _G, "Inodes loaded so far by the newest load.", (), _image(lambda i: i.inodes)),
    Metric(
        "image_load_seconds",
        _G,
        "Time the newest load has taken so far.",
        (),
        _image(lambda i: i.elapsed_ns / 1e9),
    ),
    Metric(
        "image_phase_seconds",
        _G,
        "Time in each phase of the newest load.",
        ("phase",),
        _image_phases(lambda p: p.elapsed_ns / 1e9),
    ),
    Metric(
        "image_phase_done_ratio",
        _G,
        "How much of each phase of the newest load is done.",
        ("phase",),
        _image_phases(lambda p: p.done),
    ),
    Metric(
        "image_thread_cpu_seconds_total",
        _C,
        "Processor time of each thread of the newest load.",
        ("thread",),
        _image_threads,
    ),
    Metric("image_files", _G, "Files in the loaded image.", (), _image_summary(lambda s: s.files)),
    Metric("image_directories", _G, "Directories in the loaded image.", (), _image_summary(lambda s: s.directories)),
    Metric("image_symlinks", _G, "Symbolic links in the loaded image.", (), _image_summary(lambda s: s.symlinks)),
    Metric("image_blocks", _G, "Blocks in the loaded image.", (), _image_summary(lambda s: s.blocks)),
    Metric(
        "image_content_bytes",
        _G,
        "Bytes of the files in the loaded image, one copy of each.",
        (),
        _image_summary(lambda s: s.content_bytes),
    ),
    Metric(
        "image_open_files",
        _G,
        "Files in the loaded image that were being written.",
        (),
        _image_summary(lambda s: s.open_files),
    ),
    Metric(
        "image_column_bytes",
        _G,
        "Memory of the loaded image, names apart.",
        (),
        _image_summary(lambda s: s.column_bytes),
    ),
    Metric("image_name_bytes", _G, "Memory of its names.", (), _image_summary(lambda s: s.name_bytes)),
    Metric(
        "image_troubles",
        _G,
        "What the loaded image contradicts itself about.",
        (),
        _image_summary(lambda s: s.trouble_count),
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
