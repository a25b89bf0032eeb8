"""The table of metrics: each row is declared once, reads its own field, and says nothing of what is absent.

Names are held to Prometheus's rules in tests/exporter/test_metric_names.py.
"""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given

from engine.measure.buckets import LADDER_BUCKETS, ladder_counts
from engine.metrics import METRICS, OPS_PER_SYNC, SECONDS, Kind, Metric, Sample
from engine.snapshot import (
    Absent,
    FineHistogram,
    Histogram,
    PeriodQuantiles,
    ProcessSnapshot,
    RamdiskSnapshot,
    Snapshot,
    WalSnapshot,
    WalStages,
)
from tests.snapshots import every, image_snapshot, ramdisk_snapshot, snapshot, wal_snapshot

ROWS = {row.name: row for row in METRICS}

# Fields of the log that no row of their own exports, and why.
NOT_EXPORTED = {
    "epoch": "a reader of totals sees the counter reset",
    "epoch_started_ns": "monotonic time means nothing on another host",
    "poison": "text",
    "path": "text of unbounded variety",
    "value_size_bytes": "a setting; payload bytes over commits say it",
    "written_txid": "between durable and appended, which are exported",
    "pending_limit_bytes": "a setting",
    "slow_sync_ns": "a setting",
    "segments": "rows of a table, unbounded in number",
}
# Fields that rows export as labels or in words.
LABELS = {"model", "device", "sync", "state"}


def samples(row: Metric, of: Snapshot) -> list[Sample]:
    return list(row.read(of))


def value_of(name: str, of: Snapshot) -> object:
    (sample,) = samples(ROWS[name], of)
    return sample.value


def test_each_name_is_declared_once() -> None:
    assert len(ROWS) == len(METRICS)


@pytest.mark.parametrize("row", METRICS, ids=lambda row: row.name)
def test_histograms_and_only_histograms_have_a_ladder(row: Metric) -> None:
    assert (row.ladder is not None) == (row.kind is Kind.HISTOGRAM)


@pytest.mark.parametrize("ladder", [SECONDS, OPS_PER_SYNC], ids=["seconds", "ops-per-sync"])
def test_the_bounds_of_a_ladder_rise(ladder: object) -> None:
    assert isinstance(ladder, type(SECONDS))
    assert list(ladder.bounds) == sorted(set(ladder.bounds))


def test_seconds_have_about_twenty_buckets_from_10_us_to_10_s() -> None:
    exported = [bound * SECONDS.scale for bound in SECONDS.bounds]

    assert exported[0] == pytest.approx(10e-6)
    assert exported[-1] == pytest.approx(10)
    assert len(exported) == 19


@given(given_snapshot=every(Snapshot))
def test_a_sample_has_a_value_for_each_label_and_the_kind_of_its_row(given_snapshot: Snapshot) -> None:
    for row in METRICS:
        for sample in row.read(given_snapshot):
            assert len(sample.labels) == len(row.labels)
            assert all(isinstance(label, str) for label in sample.labels)
            assert isinstance(sample.value, Histogram | PeriodQuantiles) == (row.kind is Kind.HISTOGRAM)


@given(given_snapshot=every(Snapshot))
def test_no_row_gives_two_samples_the_same_labels(given_snapshot: Snapshot) -> None:
    for row in METRICS:
        labels = [sample.labels for sample in row.read(given_snapshot)]
        assert len(set(labels)) == len(labels)


CAN_BE_ABSENT = [field.name for field in msgspec.structs.fields(WalSnapshot) if Absent in get_args(field.type)]


@pytest.mark.parametrize("field", [name for name in CAN_BE_ABSENT if name not in NOT_EXPORTED])
def test_an_absent_value_of_the_log_silences_its_row_and_no_other(field: str) -> None:
    whole = {row.name for row in METRICS if samples(row, snapshot())}

    without = snapshot(wal=wal_snapshot(**{field: Absent("not known here")}))
    silent = whole - {row.name for row in METRICS if samples(row, without)}

    assert len(silent) == 1, silent


@pytest.mark.parametrize("lane", ["wal", "process", "ramdisk", "image"])
def test_a_lane_that_is_absent_exports_nothing(lane: str) -> None:
    without = snapshot(**{lane: Absent("not running")})

    speaking = {row.name for row in METRICS if samples(row, without)}

    assert not {name for name in speaking if name.startswith(f"{lane}_")}
    assert "build_info" in speaking


def test_every_number_of_the_log_is_exported_or_has_a_reason_not_to_be() -> None:
    """A field counts as exported when a change of it alone changes what the rows give."""
    silent = set()
    for field in msgspec.structs.fields(WalSnapshot):
        before = [samples(row, snapshot()) for row in METRICS]
        changed = _another(field.name)
        if before == [samples(row, snapshot(wal=wal_snapshot(**{field.name: changed}))) for row in METRICS]:
            silent.add(field.name)

    assert silent == set(NOT_EXPORTED)


def _another(field: str) -> object:
    """Return a value for `field` that differs from the one of wal_snapshot()."""
    now = getattr(wal_snapshot(), field)
    histogram = Histogram((9, *[0] * 19), 9)
    if isinstance(now, str):
        return "poisoned" if field == "state" else now + "?"
    if isinstance(now, int):
        return now + 1
    if isinstance(now, FineHistogram):
        return FineHistogram((1,), (1,), 1, 1)
    if isinstance(now, WalStages):
        return WalStages(histogram, histogram, histogram, histogram)
    return histogram if isinstance(now, Histogram) else (None,)


PLAIN_VALUES = {
    "wal_commits_total": 10,
    "wal_payload_bytes_total": 10_240,
    "wal_written_bytes_total": 10_480,
    "wal_rolls_total": 15,
    "wal_slow_syncs_total": 16,
    "wal_sync_errors_total": 13,
    "wal_write_errors_total": 14,
    "wal_handlers": 5,
    "wal_waiting_handlers": 3,
    "wal_durable_txid": 10,
    "wal_appended_txid": 12,
    "wal_pending_bytes": 1_048,
    "wal_poisoned": 0,
    "wal_info": 1,
    "process_cpu_seconds_total": 1.5,
    "process_resident_memory_bytes": 1 << 20,
    "build_info": 1,
}


PLAIN_ROWS = [
    row for row in METRICS if row.kind is not Kind.HISTOGRAM and not row.name.startswith(("ramdisk_", "image_"))
]


@pytest.mark.parametrize("row", PLAIN_ROWS, ids=lambda row: row.name)
def test_a_counter_or_gauge_reads_its_own_field(row: Metric) -> None:
    assert value_of(row.name, snapshot()) == PLAIN_VALUES[row.name]


# What of the store no row exports, and what a row's name says in other words than the field.
RAMDISK_NOT_EXPORTED = {"epoch", "epoch_started_ns", "ram_dir", "disk", "chunk_bytes", "block_size_bytes", "replicas"}
RAMDISK_NAMES = {
    "ram_written_blocks": "ram_blocks_written",
    "ram_written_bytes": "ram_bytes_written",
    "disk_written_blocks": "disk_blocks_written",
    "disk_written_bytes": "disk_bytes_written",
    "persist_rate_limit_bytes": "persist_rate_bytes",
    "evicted_without_read_blocks": "evicted_without_read",
    "oldest_at_risk_seconds": "oldest_at_risk_ns",
    "persist_busy_seconds": "persist_busy_ns",
    "write_stall_seconds": "write_stall_ns",
    "ram_write_seconds": "ram_write",
    "disk_write_seconds": "disk_write",
    "persist_window_seconds": "persist_window",
    "eviction_window_seconds": "eviction_window",
}
RAMDISK_ROWS = [row for row in METRICS if row.name.startswith("ramdisk_") and row.name != "ramdisk_info"]


@pytest.mark.parametrize("row", RAMDISK_ROWS, ids=lambda row: row.name)
def test_a_row_of_the_ram_disk_reads_its_own_field(row: Metric) -> None:
    store = ramdisk_snapshot()
    name = row.name.removeprefix("ramdisk_").removesuffix("_total")
    expected = getattr(store, RAMDISK_NAMES.get(name, name))

    found = value_of(row.name, snapshot(ramdisk=store))

    assert found == (expected / 1e9 if RAMDISK_NAMES.get(name, name).endswith("_ns") else expected)


def test_every_field_of_the_ram_disk_is_exported_or_has_a_reason_not_to_be() -> None:
    silent = set()
    before = [samples(row, snapshot(ramdisk=ramdisk_snapshot())) for row in METRICS]
    for field in msgspec.structs.fields(RamdiskSnapshot):
        now = getattr(ramdisk_snapshot(), field.name)
        changed = now + 1 if isinstance(now, int) else now + "?" if isinstance(now, str) else Histogram((9,) * 20, 9)
        changed = "idle" if field.name == "state" else () if field.name == "replicas" else changed
        other = snapshot(ramdisk=ramdisk_snapshot(**{field.name: changed}))
        if before == [samples(row, other) for row in METRICS]:
            silent.add(field.name)

    assert silent == RAMDISK_NOT_EXPORTED


IMAGE_VALUES: dict[str, dict[tuple[str, ...], float]] = {
    "image_info": {("file", "-67 (NVDIMM; Hadoop 3.4 and 3.5)", "", "columnar", "loaded"): 1},
    "image_loads_total": {("complete",): 1, ("cancelled",): 2, ("failed",): 3},
    "image_loaded_inodes_total": {(): 1_000_001},
    "image_read_bytes_total": {(): 160_000_001},
    "image_size_bytes": {(): 80_000_000},
    "image_inodes": {(): 1_000_000},
    "image_load_seconds": {(): 0.5},
    "image_phase_seconds": {
        ("LoadingFsImage",): 0.5,
        ("LoadingFsImage/StringTable",): 0.0008,
        ("LoadingFsImage/Inodes",): 0.49,
        ("LoadingFsImage/Inodes/columns",): 0.3,
    },
    "image_phase_done_ratio": {
        ("LoadingFsImage",): 1,
        ("LoadingFsImage/StringTable",): 1,
        ("LoadingFsImage/Inodes",): 1,
        ("LoadingFsImage/Inodes/columns",): 1,
    },
    "image_thread_cpu_seconds_total": {("1",): 0.45, ("2",): 0.3, ("md5",): 0.11},
    "image_files": {(): 914_738},
    "image_directories": {(): 85_261},
    "image_symlinks": {(): 1},
    "image_blocks": {(): 1_200_000},
    "image_content_bytes": {(): 52_939_373_725_522},
    "image_open_files": {(): 3},
    "image_column_bytes": {(): 92_000_000},
    "image_name_bytes": {(): 14_000_000},
    "image_troubles": {(): 2},
}


@pytest.mark.parametrize("row", [row for row in METRICS if row.name.startswith("image_")], ids=lambda row: row.name)
def test_a_row_of_the_image_reads_its_own_field(row: Metric) -> None:
    image = image_snapshot(lane_inodes=1_000_001, lane_read_bytes=160_000_001)

    assert dict(samples(row, snapshot(image=image))) == pytest.approx(IMAGE_VALUES[row.name])


def test_a_poisoned_log_says_so() -> None:
    assert value_of("wal_poisoned", snapshot(wal=wal_snapshot(state="poisoned"))) == 1


def test_fine_buckets_are_exported_on_the_classic_ladder_with_count_and_sum_kept() -> None:
    value = value_of("wal_commit_seconds", snapshot())

    assert isinstance(value, Histogram)
    assert value == Histogram(ladder_counts((400, 500), (4, 6)), 900_000)
    assert (len(value.counts), sum(value.counts)) == (LADDER_BUCKETS, 10)


def test_quantiles_that_a_server_computed_pass_through_as_they_are() -> None:
    theirs = PeriodQuantiles(60, 3, ((0.5, 0.1),), 0.2)

    assert value_of("wal_sync_seconds", snapshot(wal=wal_snapshot(sync_latency=theirs))) == theirs


def test_stages_are_one_family_with_a_label() -> None:
    stages = WalStages(*[Histogram((count, *[0] * 19), count) for count in (1, 2, 3, 4)])

    found = samples(ROWS["wal_stage_seconds"], snapshot(wal=wal_snapshot(stages=stages)))

    assert {sample.labels[-1]: sample.value.total for sample in found if isinstance(sample.value, Histogram)} == {
        "queue": 1,
        "write": 2,
        "sync": 3,
        "wake": 4,
    }


def test_the_process_is_read_where_there_is_one() -> None:
    busy = snapshot(process=ProcessSnapshot(99.0, 5, 1))

    assert value_of("process_cpu_seconds_total", busy) == 99.0
