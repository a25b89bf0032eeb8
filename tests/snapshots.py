"""Snapshots for tests: every one that the types allow, by hypothesis; and a plain one to start from."""

from __future__ import annotations

import types
import typing
from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

from engine.measure.buckets import BUCKETS
from engine.snapshot import (
    Absent,
    FineHistogram,
    Histogram,
    ImageProgress,
    ImageRun,
    ImageSnapshot,
    ImageSummary,
    ImageThread,
    LargeDirectory,
    PhaseRow,
    ProcessSnapshot,
    RamdiskSnapshot,
    Snapshot,
    WalSnapshot,
    WalStages,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
FINE_HISTOGRAMS = st.builds(
    lambda counts, total, maximum: FineHistogram(tuple(sorted(counts)), tuple(counts.values()), total, maximum),
    st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 2**40), max_size=5),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
)


def every(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for all values of a snapshot type: structs, unions, tuples, literals, units, numbers, text."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, typing.NewType):
        return every(annotation.__supertype__)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*[every(argument) for argument in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(every(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[every(argument) for argument in arguments])
    if annotation is FineHistogram:
        return FINE_HISTOGRAMS
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return st.builds(annotation, **{name: every(hint) for name, hint in typing.get_type_hints(annotation).items()})
    plain = {
        int: INT64,
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: st.text(max_size=20),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return plain[annotation]


def wal_snapshot(**changes: Any) -> WalSnapshot:
    """Return a log at rest after ten commits in two syncs, with `changes`."""
    once = Histogram((1, *[0] * 19), 5_000)
    plain: dict[str, Any] = {
        "epoch": 1,
        "epoch_started_ns": 5,
        "state": "running",
        "poison": "",
        "model": "group",
        "device": "real",
        "sync": "fdatasync",
        "path": "/var/tmp/log",
        "handlers": 5,
        "value_size_bytes": 1024,
        "waiting_handlers": 3,
        "durable_txid": 10,
        "written_txid": 11,
        "appended_txid": 12,
        "commits": 10,
        "payload_bytes": 10_240,
        "written_bytes": 10_480,
        "pending_bytes": 1_048,
        "pending_limit_bytes": 64 << 20,
        "sync_errors": 13,
        "write_errors": 14,
        "rolls": 15,
        "slow_syncs": 16,
        "slow_sync_ns": 100_000_000,
        "commit_latency": FineHistogram((400, 500), (4, 6), 900_000, 200_000),
        "sync_latency": FineHistogram((450,), (2,), 300_000, 160_000),
        "write_latency": Histogram((2, *[0] * 19), 12_000),
        "ops_per_sync": Histogram((0, 0, 0, 0, 2, *[0] * 15), 10),
        "stages": WalStages(once, once, once, once),
        "segments": (),
    }
    return WalSnapshot(**(plain | changes))


def ramdisk_snapshot(**changes: Any) -> RamdiskSnapshot:
    """Return a store at work, each number of it another one, with `changes`."""
    plain: dict[str, Any] = {}
    for number, field in enumerate(msgspec.structs.fields(RamdiskSnapshot), start=100):
        plain[field.name] = Histogram((number, *[0] * 19), number) if field.type is Histogram else number
    plain |= {
        "state": "streaming",
        "ram_dir": "/dev/shm",
        "ram_label": "tmpfs",
        "disk": "/var/tmp/store",
        "policy": "lazy",
        "checksum": "on",
        "copy_mode": "direct",
        "replicas": (),
    }
    return RamdiskSnapshot(**(plain | changes))


def image_snapshot(**changes: Any) -> ImageSnapshot:
    """Return an image of a million inodes, loaded in half a second by two threads, with `changes`."""
    plain: dict[str, Any] = {
        "epoch": 1,
        "epoch_started_ns": 5,
        "state": "loaded",
        "error": "",
        "image": "/var/tmp/fsimage_0000000000000000042",
        "is_synthetic": False,
        "layout": "-67 (NVDIMM; Hadoop 3.4 and 3.5)",
        "codec": "",
        "size_bytes": 80_000_000,
        "strategy": "columnar",
        "threads": 2,
        "next_image": "/var/tmp/fsimage_0000000000000000042",
        "next_strategy": "columnar",
        "next_threads": 2,
        "md5": "match",
        "md5_bytes": 80_000_000,
        "inodes": 1_000_000,
        "read_bytes": 160_000_000,
        "elapsed_ns": 500_000_000,
        "phases": (
            PhaseRow(0, "LoadingFsImage", "complete", 0, None, 0, 80_000_000, 500_000_000, 450_000_000, 1.0),
            PhaseRow(1, "StringTable", "complete", 107, 107, 0, None, 800_000, 700_000, 1.0),
            PhaseRow(1, "Inodes", "complete", 1_000_000, 1_000_000, 78_000_000, None, 490_000_000, 440_000_000, 1.0),
            PhaseRow(2, "columns", "complete", 0, None, 0, None, 300_000_000, 290_000_000, 1.0),
        ),
        "cpu": (ImageThread("1", 450_000_000), ImageThread("2", 300_000_000), ImageThread("md5", 110_000_000)),
        "progress": tuple(
            ImageProgress(50_000_000 * n, 200_000 * n, 16_000_000 * n, (45_000_000 * n, 30_000_000 * n, 11_000_000 * n))
            for n in range(11)
        ),
        "summary": ImageSummary(
            files=914_738,
            directories=85_261,
            symlinks=1,
            blocks=1_200_000,
            content_bytes=52_939_373_725_522,
            open_files=3,
            hdfs_snapshots=5,
            snapshot_only=7,
            name_bytes=14_000_000,
            column_bytes=92_000_000,
            troubles=("2 inodes with the name of a sibling",),
            trouble_count=2,
            largest=(
                LargeDirectory("/user/u000001/data", 2_000, 148_327_765_159),
                LargeDirectory("/tmp/x", 5, 140_000),
            ),
        ),
        "runs": (ImageRun(1, "fsimage_42", "columnar", 2, "complete", 1_000_000, 500_000_000, 0, None),),
        "lane_inodes": 1_000_000,
        "lane_read_bytes": 160_000_000,
        "lane_loads": 1,
        "lane_cancelled_loads": 2,
        "lane_failed_loads": 3,
    }
    return ImageSnapshot(**(plain | changes))


def snapshot(**changes: Any) -> Snapshot:
    """Return a snapshot of a local engine with that log, with `changes`."""
    plain: dict[str, Any] = {
        "source_id": "local",
        "source_started_ns": 1,
        "wall_ns": 2,
        "monotonic_ns": 3,
        "version": "0.1.0",
        "host": "here",
        "wal": wal_snapshot(),
        "ramdisk": Absent("not running"),
        "image": Absent("not running"),
        "process": ProcessSnapshot(1.5, 1 << 20, 7),
        "events": (),
    }
    return Snapshot(**(plain | changes))
