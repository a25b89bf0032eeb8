"""Snapshots: frozen totals of one instant, the only thing that crosses from engines to whoever shows them.

A snapshot never holds a rate or a quantile we computed: History makes those from differences, so live,
paused, remote and replayed views cannot disagree. A value a source does not have is `Absent`, with the
reason; what a server publishes as quantiles of its own period is `PeriodQuantiles`.

Totals restart when `source_started_ns` or a lane's `epoch` changes; a reader then starts again from zero and
never shows a negative rate.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import msgspec

from engine.measure.buckets import BUCKETS
from engine.units import Bytes, Nanoseconds, Txid

SCHEMA: Literal["tidegauge.snapshot/1"] = "tidegauge.snapshot/1"


class Absent(msgspec.Struct, frozen=True, tag="absent"):
    """A value that this source does not have, and why, in words for the screen."""

    reason: str


class Histogram(msgspec.Struct, frozen=True, tag="histogram"):
    """Counts per bucket of a ladder that engine.metrics declares for the quantity; not cumulative.

    counts: one more than the ladder has bounds; the last is above the highest bound.
    total: the sum of what was observed, in the ladder's unit (ns, records).
    """

    counts: tuple[int, ...]
    total: int


class FineHistogram(msgspec.Struct, frozen=True, tag="fine"):
    """Counts of the fine buckets of engine.measure.histogram that are not zero.

    indexes: bucket numbers, ascending; counts: as many. total: the sum of what was observed, ns.
    maximum: the largest observed, ns (since the totals began). Raises ValueError where the buckets are not so, which
    decoding turns into msgspec.ValidationError: readers index arrays with what another host sent.
    """

    indexes: tuple[int, ...]
    counts: tuple[int, ...]
    total: int
    maximum: int

    def __post_init__(self) -> None:
        """Check the buckets."""
        if len(self.indexes) != len(self.counts):
            raise ValueError(f"{len(self.indexes)} bucket numbers and {len(self.counts)} counts, allowed is as many")
        if self.indexes and not (self.indexes[0] >= 0 and self.indexes[-1] < BUCKETS):
            raise ValueError(f"bucket numbers to {max(self.indexes, key=abs)}, allowed is 0 to {BUCKETS - 1}")
        if any(first >= second for first, second in pairwise(self.indexes)):
            raise ValueError("bucket numbers that do not ascend")


class PeriodQuantiles(msgspec.Struct, frozen=True, tag="quantiles"):
    """Quantiles a server computed itself, over a period of its own; never averaged or added."""

    period_ns: Nanoseconds
    count: int
    quantiles: tuple[tuple[float, float], ...]  # (0.99, value), value in the quantity's unit
    maximum: float


class Event(msgspec.Struct, frozen=True):
    """Something worth a line in the event log. number grows by one, so a reader shows each once."""

    number: int
    wall_ns: Nanoseconds
    severity: Literal["info", "warn", "error"]
    lane: str
    text: str


class SegmentRow(msgspec.Struct, frozen=True):
    """One segment file of the log. state: closed, active, or prepared (pre-zeroed, waiting for a roll)."""

    number: int
    first_txid: Txid  # 0 while prepared
    used_bytes: Bytes
    size_bytes: Bytes
    state: Literal["closed", "active", "prepared"]


class WalStages(msgspec.Struct, frozen=True, tag="stages"):
    """Where the time of commits goes; the four sum to the commit latency. Each on the STAGE ladder."""

    queue: Histogram  # from the call until its bytes began to be written, and from written until its sync began
    write: Histogram
    sync: Histogram
    wake: Histogram  # from the end of the sync until the handler ran again


class WalSnapshot(msgspec.Struct, frozen=True, kw_only=True, tag="wal"):
    """The log's totals since `epoch` began (an epoch is one model, device and sync mode)."""

    epoch: int
    epoch_started_ns: Nanoseconds  # monotonic
    state: Literal["running", "stopped", "poisoned", "closed"]
    poison: str  # "" or the error in words, with its errno name
    model: str  # group, pipeline:1, ...
    device: str  # shown as it stands: "real", "serial 5 ms (simulated)"
    sync: str  # fdatasync, fsync, dsync, "none (not durable)"
    path: str
    handlers: int
    value_size_bytes: Bytes
    waiting_handlers: int | Absent  # inside commit at this instant
    durable_txid: Txid  # read before written and appended, so never above them
    written_txid: Txid
    appended_txid: Txid
    commits: int | Absent  # records acked in this epoch
    payload_bytes: int | Absent
    written_bytes: int | Absent
    pending_bytes: Bytes | Absent  # appended, not yet written
    pending_limit_bytes: Bytes | Absent
    sync_errors: int
    write_errors: int
    rolls: int | Absent
    slow_syncs: int | Absent  # syncs at or above slow_sync_ns
    slow_sync_ns: Nanoseconds
    commit_latency: FineHistogram | PeriodQuantiles | Absent
    sync_latency: FineHistogram | PeriodQuantiles | Absent
    write_latency: Histogram | PeriodQuantiles | Absent  # STAGE ladder, one per write call
    ops_per_sync: Histogram | Absent  # OPS_PER_SYNC ladder, one per sync
    stages: WalStages | Absent
    segments: tuple[SegmentRow, ...] | Absent


class ReplicaRow(msgspec.Struct, frozen=True):
    """One replica for the table: those at risk first, the newest of them on top."""

    file: str
    block: int
    size_bytes: Bytes
    place: Literal["memory", "memory + disk", "disk", "lost"]
    state: Literal["at risk", "corrupt", "persisted", "not synced", "lost"]
    age_ns: Nanoseconds  # since it was finalised
    reads: int


class RamdiskSnapshot(msgspec.Struct, frozen=True, kw_only=True, tag="ramdisk"):
    """The RAM-disk store's totals since `epoch` began (an epoch is one opening of the store)."""

    epoch: int
    epoch_started_ns: Nanoseconds  # monotonic
    state: Literal["streaming", "idle", "closed"]
    ram_dir: str
    ram_label: str  # "tmpfs", or what it is instead, with a warning
    disk: str  # the volumes' directories
    policy: str  # lazy, disk, disk-sync
    checksum: str  # on, deferred, off
    copy_mode: str  # buffered, sendfile, direct, fadvise
    chunk_bytes: Bytes
    block_size_bytes: Bytes
    persist_rate_bytes: Bytes  # the limit per second, a simulated slow disk; 0 is none
    stream_rate_bytes: Bytes  # asked for, per second; 0 is as fast as it goes
    capacity_bytes: Bytes
    used_bytes: Bytes
    reserved_bytes: Bytes
    spare_bytes: Bytes  # kept for reuse; given up when needed
    backlog_blocks: int  # finalised, not durable: what a power cut loses
    backlog_bytes: Bytes
    oldest_at_risk_ns: Nanoseconds  # age of the oldest of them; 0 where there is none
    failing_blocks: int  # of the backlog, those whose last attempt failed
    ram_blocks_written: int
    ram_bytes_written: int
    disk_blocks_written: int
    disk_bytes_written: int
    fallback_blocks: int
    fallback_bytes: int
    moved_blocks: int  # begun in memory, finished on disk: memory refused them half way
    recycled_files: int
    ram_reads: int
    disk_reads: int
    persisted_blocks: int
    persisted_bytes: int
    persist_busy_ns: Nanoseconds  # summed over volumes: bytes over this is the lazy writer's own bandwidth
    persist_errors: int
    evicted_blocks: int
    evicted_bytes: int
    evicted_without_read: int
    deleted_before_persist_blocks: int
    deleted_before_persist_bytes: int
    deleted_files: int
    corrupt_blocks: int
    lost_blocks: int
    write_stalls: int  # reservations that had to evict, or got nothing
    write_stall_ns: Nanoseconds
    files: int
    lost_files: int
    ram_write: Histogram  # SECONDS ladder, one per block
    disk_write: Histogram
    persist_window: Histogram  # from finalised to durable
    eviction_window: Histogram  # from finalised to evicted
    replicas: tuple[ReplicaRow, ...]


class PhaseRow(msgspec.Struct, frozen=True):
    """One phase of a start-up; a phase's children follow it, one deeper. Named as the NameNode names them."""

    depth: int
    name: str
    state: Literal["pending", "running", "complete", "failed"]
    count: int
    total: int | None  # None while nobody knows
    read_bytes: Bytes
    size_bytes: Bytes | None
    elapsed_ns: Nanoseconds  # so far, while it runs
    cpu_ns: Nanoseconds | None  # of the thread that ran it; None until it has ended
    done: float  # 0 to 1: count over total, of itself and what is inside it


class ImageThread(msgspec.Struct, frozen=True):
    """One thread of a load, by its place: the operating system's may come and go."""

    name: str  # "1" runs the load, "2" and on help it, "md5" hashes beside it
    cpu_ns: Nanoseconds  # since the load began


class ImageProgress(msgspec.Struct, frozen=True):
    """Totals at one instant of a load, so that a load of a second can be plotted too."""

    elapsed_ns: Nanoseconds  # since the load began
    inodes: int  # passed, in every pass over them
    read_bytes: int  # likewise
    cpu_ns: tuple[int, ...]  # by thread, as ImageSnapshot.cpu names them


class LargeDirectory(msgspec.Struct, frozen=True):
    """A directory by what is directly inside it, so that no byte counts twice."""

    path: str
    files: int
    size_bytes: int


class ImageSummary(msgspec.Struct, frozen=True, kw_only=True, tag="summary"):
    """What a loaded image holds."""

    files: int
    directories: int
    symlinks: int
    blocks: int
    content_bytes: int
    open_files: int
    hdfs_snapshots: int
    snapshot_only: int  # inodes that only HDFS snapshots hold
    name_bytes: Bytes  # memory that names take
    column_bytes: Bytes  # memory that everything else takes
    troubles: tuple[str, ...]  # what the image contradicts itself about, the most frequent kinds
    trouble_count: int
    largest: tuple[LargeDirectory, ...]


class ImageRun(msgspec.Struct, frozen=True):
    """One load that has ended, for comparing strategies."""

    number: int
    image: str
    strategy: str
    threads: int
    outcome: Literal["complete", "cancelled", "failed"]
    inodes: int
    elapsed_ns: Nanoseconds
    resolve_calls: int  # searches for a parent: walks from the root, or lookups; 0 where nobody counted
    resolve_ns: Nanoseconds | None  # None where they are too short to time


class ImageSnapshot(msgspec.Struct, frozen=True, kw_only=True, tag="image"):
    """The image lane: what it loads or has loaded. An epoch is one load; totals named `lane_` go on over them."""

    epoch: int
    epoch_started_ns: Nanoseconds  # monotonic
    state: Literal["idle", "making", "loading", "loaded", "cancelled", "failed", "closed"]
    error: str  # one line; "" where nothing failed
    image: str  # path of the load's image
    is_synthetic: bool
    layout: str  # "-67 (NVDIMM; Hadoop 3.4 and 3.5)"; "" before it is known
    codec: str
    size_bytes: Bytes
    strategy: str
    threads: int
    next_image: str  # what the next load takes
    next_strategy: str
    next_threads: int
    md5: Literal["none", "checking", "match", "mismatch"]
    md5_bytes: Bytes  # hashed so far
    inodes: int  # loaded so far
    read_bytes: int  # by every pass
    elapsed_ns: Nanoseconds  # of the load, so far
    phases: tuple[PhaseRow, ...]
    cpu: tuple[ImageThread, ...]
    progress: tuple[ImageProgress, ...]  # oldest first; evenly apart
    summary: ImageSummary | Absent
    runs: tuple[ImageRun, ...]  # the newest last
    lane_inodes: int  # loaded since the lane began, by every load
    lane_read_bytes: int
    lane_loads: int
    lane_cancelled_loads: int
    lane_failed_loads: int


class ProcessSnapshot(msgspec.Struct, frozen=True, tag="process"):
    """This process, so that a meter which disturbs what it measures can be seen doing so."""

    cpu_seconds: float
    resident_bytes: Bytes
    threads: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one source knew at one instant."""

    schema: Literal["tidegauge.snapshot/1"] = SCHEMA
    source_id: str  # "local", a URL, a recording's name
    source_started_ns: Nanoseconds  # wall clock
    wall_ns: Nanoseconds
    monotonic_ns: Nanoseconds  # only differences within one source mean anything
    version: str
    host: str
    wal: WalSnapshot | Absent
    ramdisk: RamdiskSnapshot | Absent
    image: ImageSnapshot | Absent
    process: ProcessSnapshot | Absent
    events: tuple[Event, ...]  # the newest, oldest first


class _Envelope(msgspec.Struct):
    """What is read first: of another schema, its name is the news, not the first field that differs."""

    schema: Literal["tidegauge.snapshot/1"]


def to_msgpack(snapshot: Snapshot) -> bytes:
    """Encode for a recording or the wire."""
    return msgspec.msgpack.encode(snapshot)


def from_msgpack(data: bytes) -> Snapshot:
    """Decode; raises msgspec.DecodeError where the bytes are not a snapshot of this schema."""
    msgspec.msgpack.decode(data, type=_Envelope)
    return msgspec.msgpack.decode(data, type=Snapshot)


def to_json(snapshot: Snapshot) -> bytes:
    """Encode for /snapshot."""
    return msgspec.json.encode(snapshot)


def from_json(data: bytes) -> Snapshot:
    """Decode what /snapshot serves; raises as from_msgpack does."""
    msgspec.json.decode(data, type=_Envelope)
    return msgspec.json.decode(data, type=Snapshot)
