"""One scrape is one snapshot, whole where it can be, never an error."""

from __future__ import annotations

import math

import msgspec
import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from dashboard.exporter.collector import SnapshotCollector, shapes_of
from engine.metrics import METRICS, OPS_PER_SYNC, PREFIX, SECONDS, Kind, Metric, Sample
from engine.snapshot import Absent, Histogram, PeriodQuantiles, Snapshot, WalSnapshot
from engine.units import SECOND, Nanoseconds
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine
from tests.snapshots import image_snapshot, ramdisk_snapshot


@pytest.fixture
def snapshot() -> Snapshot:
    clock = FakeClock()
    engine = FakeEngine(clock=clock)
    engine.sample()
    clock.advance(2)
    return msgspec.structs.replace(engine.sample(), ramdisk=ramdisk_snapshot(), image=image_snapshot())


def with_wal(snapshot: Snapshot, **changes: object) -> Snapshot:
    return msgspec.structs.replace(snapshot, wal=msgspec.structs.replace(snapshot.wal, **changes))


def scrape(
    snapshot: Snapshot | None, rows: tuple[Metric, ...] = METRICS
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return what a Prometheus server would store: {(series, labels): value}."""
    text = generate_latest(SnapshotCollector(lambda: snapshot, rows).registry()).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


def values_of(series: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str) -> list[float]:
    return [value for (found, _), value in series.items() if found == PREFIX + name]


def test_every_row_of_the_table_is_served(snapshot: Snapshot) -> None:
    names = {name for name, _ in scrape(snapshot)}

    for row in METRICS:
        expected = PREFIX + row.name + ("_bucket" if row.kind is Kind.HISTOGRAM else "")
        assert expected in names, row.name


def test_numbers_are_the_snapshots_own(snapshot: Snapshot) -> None:
    wal = snapshot.wal
    assert isinstance(wal, WalSnapshot)

    series = scrape(snapshot)

    assert values_of(series, "wal_commits_total") == [wal.commits]
    assert values_of(series, "wal_durable_txid") == [wal.durable_txid]
    assert values_of(series, "wal_handlers") == [50]
    assert (PREFIX + "wal_handlers", (("device", "real"), ("model", "group"))) in series


def test_buckets_are_cumulative_and_end_with_the_count(snapshot: Snapshot) -> None:
    wal = snapshot.wal
    assert isinstance(wal, WalSnapshot)
    histogram = wal.ops_per_sync
    assert isinstance(histogram, Histogram)

    series = scrape(snapshot)

    buckets = {
        float(dict(labels)["le"]): value
        for (name, labels), value in series.items()
        if name == PREFIX + "wal_ops_per_sync_bucket"
    }
    assert sorted(buckets) == [*map(float, OPS_PER_SYNC.bounds), math.inf]
    for position, bound in enumerate(sorted(buckets)):
        assert buckets[bound] == sum(histogram.counts[: position + 1])
    assert values_of(series, "wal_ops_per_sync_count") == [sum(histogram.counts)]
    assert values_of(series, "wal_ops_per_sync_sum") == [histogram.total]


def test_durations_are_served_in_seconds_with_round_bounds(snapshot: Snapshot) -> None:
    series = scrape(snapshot)

    bounds = [dict(labels)["le"] for (name, labels) in series if name == PREFIX + "wal_sync_seconds_bucket"]
    assert bounds[:4] == ["1e-05", "2e-05", "5e-05", "0.0001"]
    assert bounds[-2:] == ["10.0", "+Inf"]
    wal = snapshot.wal
    assert isinstance(wal, WalSnapshot)
    assert not isinstance(wal.sync_latency, Absent)
    assert values_of(series, "wal_sync_seconds_sum") == [pytest.approx(wal.sync_latency.total / SECOND)]


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_both_formats_parse_to_the_same_families(snapshot: Snapshot, openmetrics: bool) -> None:
    registry = SnapshotCollector(lambda: snapshot).registry()

    if openmetrics:
        text = generate_openmetrics(registry).decode()
        families = list(parse_openmetrics(text))
        assert text.endswith("# EOF\n")
    else:
        families = list(parse_text(generate_latest(registry).decode()))

    served = {(f.name + ("_total" if f.type == "counter" else ""), f.type) for f in families}
    assert served == {(PREFIX + row.name, row.kind.value) for row in METRICS} | {
        (PREFIX + "scrape_errors_total", "counter")
    }


def test_absent_values_are_left_out(snapshot: Snapshot) -> None:
    gone = with_wal(snapshot, commits=Absent("not published"), stages=Absent("not published"))

    names = {name for name, _ in scrape(gone)}

    assert PREFIX + "wal_commits_total" not in names
    assert PREFIX + "wal_stage_seconds_bucket" not in names
    assert PREFIX + "wal_handlers" in names


def test_a_sources_own_quantiles_are_a_gauge_beside_the_histogram(snapshot: Snapshot) -> None:
    own = PeriodQuantiles(Nanoseconds(10 * SECOND), 100, ((0.5, 0.002), (0.99, 0.009)), 0.5)

    series = scrape(with_wal(snapshot, sync_latency=own))

    found = {
        dict(labels)["quantile"]: value
        for (name, labels), value in series.items()
        if name == PREFIX + "wal_sync_quantile_seconds"
    }
    assert found == {"0.5": 0.002, "0.99": 0.009, "1.0": 0.5}
    assert not values_of(series, "wal_sync_seconds_bucket")


def test_before_the_first_snapshot_only_the_error_count_is_served() -> None:
    assert scrape(None) == {(PREFIX + "scrape_errors_total", ()): 0.0}


def _raising(_: Snapshot):
    raise RuntimeError("no")
    yield


def _late_raising(_: Snapshot):
    yield Sample(("a",), 1.0)
    raise RuntimeError("no")


BAD_ROWS = {
    "raises": Metric("bad_row", Kind.GAUGE, "Help.", (), _raising),
    "raises-after-a-sample": Metric("bad_row", Kind.GAUGE, "Help.", ("x",), _late_raising),
    "histogram-without-a-ladder": Metric(
        "bad_row", Kind.HISTOGRAM, "Help.", (), lambda s: iter([Sample((), Histogram((1,), 1))])
    ),
    "too-few-buckets": Metric(
        "bad_row", Kind.HISTOGRAM, "Help.", (), lambda s: iter([Sample((), Histogram((1,), 1))]), SECONDS
    ),
    "number-for-a-histogram": Metric(
        "bad_row", Kind.HISTOGRAM, "Help.", (), lambda s: iter([Sample((), 1.0)]), SECONDS
    ),
    "histogram-for-a-number": Metric(
        "bad_row", Kind.GAUGE, "Help.", (), lambda s: iter([Sample((), Histogram((1,), 1))])
    ),
    "a-label-too-few": Metric("bad_row", Kind.GAUGE, "Help.", ("x",), lambda s: iter([Sample((), 1.0)])),
    "the-same-series-twice": Metric("bad_row", Kind.GAUGE, "Help.", ("x",), lambda s: iter([Sample(("a",), 1.0)] * 2)),
    "text-for-a-number": Metric("bad_row", Kind.GAUGE, "Help.", (), lambda s: iter([Sample((), "many")])),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_row_that_fails_is_counted_and_loses_no_other(snapshot: Snapshot, bad: Metric) -> None:
    series = scrape(snapshot, (METRICS[0], bad, METRICS[2]))

    assert values_of(series, "scrape_errors_total") == [1]
    assert values_of(series, "build_info") == [1]
    assert values_of(series, "wal_commits_total")
    assert not values_of(series, "bad_row")


def test_a_source_that_raises_is_counted() -> None:
    def gone() -> Snapshot:
        raise OSError("gone")

    collector = SnapshotCollector(gone)

    text = generate_latest(collector.registry()).decode()

    assert "tidegauge_scrape_errors_total 1.0" in text
    assert collector.errors == 1


def test_labels_that_cannot_be_encoded_do_not_fail_the_scrape(snapshot: Snapshot) -> None:
    odd = msgspec.structs.replace(snapshot, source_id='a"b\\c\nd\udc80')

    series = scrape(odd)

    label = next(dict(labels)["source"] for name, labels in series if name == PREFIX + "build_info")
    assert label == 'a"b\\c\nd\\udc80'


def test_no_family_has_two_meanings() -> None:
    names = [shape.name for row in METRICS for shape in shapes_of(row)]

    assert len(names) == len(set(names))
