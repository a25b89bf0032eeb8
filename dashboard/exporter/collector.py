"""Prometheus families of one snapshot, as engine.metrics declares them.

One snapshot is taken per scrape, so all values of a scrape belong together. A scrape never fails: a row that
cannot be read is left out, the other rows are served, and `tidegauge_scrape_errors_total` counts it.

A server's own quantiles (PeriodQuantiles) are no histogram and cannot be made one. They are served as a gauge
beside it, `..._quantile_seconds{quantile="0.99"}` for the row `..._seconds`, with quantile="1" for the maximum,
so that a family never changes its type with the source.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from engine.metrics import METRICS, PREFIX, Kind, Ladder, Metric, Sample
from engine.snapshot import Histogram, PeriodQuantiles, Snapshot

SCRAPE_ERRORS = "scrape_errors_total"
SCRAPE_ERRORS_HELP = "Rows left out of a scrape because they could not be read."


class BadRow(Exception):
    """A row whose samples are not what its declaration says."""


class SnapshotCollector(Collector):
    """Families of whatever `latest` returns at the moment of a scrape.

    latest: called once per scrape, from the scraping thread; None is "no snapshot yet". rows: the table, which
    tests replace. `errors` counts what was left out, over the collector's life.
    """

    def __init__(self, latest: Callable[[], Snapshot | None], rows: Iterable[Metric] = METRICS) -> None:
        self._latest, self._rows = latest, tuple(rows)
        self._counting = threading.Lock()  # guards errors: scrapes can overlap
        self.errors = 0

    def registry(self) -> CollectorRegistry:
        """Return a registry that holds this collector alone."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def describe(self) -> Iterable[Family]:
        """Describe nothing: the default would scrape once to learn the names."""
        return ()

    def collect(self) -> Iterator[Family]:
        """Yield a family per row that has samples, and the count of errors last, this scrape's included."""
        snapshot = None
        try:
            snapshot = self._latest()
        except Exception:  # noqa: BLE001 - whatever a source does, a scrape still answers
            self._count_error()
        if snapshot is not None:
            for row in self._rows:
                try:
                    yield from families_of(row, snapshot)
                except Exception:  # noqa: BLE001 - one row's failure must not lose the others
                    self._count_error()
        yield CounterMetricFamily(PREFIX + SCRAPE_ERRORS, SCRAPE_ERRORS_HELP, value=self.errors)

    def _count_error(self) -> None:
        with self._counting:
            self.errors += 1


class Shape(NamedTuple):
    """What a family of a row is called and is."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]


def shapes_of(row: Metric) -> tuple[Shape, ...]:
    """Return the families a row can become: its own and, for a histogram, that of a source's own quantiles."""
    own = Shape(PREFIX + row.name, row.kind, row.help, row.labels)
    if row.kind is not Kind.HISTOGRAM:
        return (own,)
    base, _, unit = row.name.rpartition("_")
    name = f"{base}_quantile_{unit}" if unit in ("seconds", "bytes") else f"{row.name}_quantile"
    text = f"{row.help} Quantiles that the source computed over a period of its own; never add or average them."
    return own, Shape(PREFIX + name, Kind.GAUGE, text, (*row.labels, "quantile"))


def families_of(row: Metric, snapshot: Snapshot) -> list[Family]:
    """Return the row's families for one snapshot: none where it is absent. Raises BadRow, or what `read` raised."""
    plain: list[tuple[list[str], float | Histogram]] = []
    quantiles: list[tuple[list[str], float]] = []
    seen: set[tuple[str, ...]] = set()
    for labels, value in row.read(snapshot):
        if len(labels) != len(row.labels) or labels in seen:
            raise BadRow(f"{row.name}: labels {labels!r}")  # twice the same series fails the whole scrape
        seen.add(labels)
        texts = [_encodable(label) for label in labels]
        if isinstance(value, PeriodQuantiles):
            quantiles += [([*texts, _float_text(q)], v) for q, v in (*value.quantiles, (1.0, value.maximum))]
        else:
            plain.append((texts, value))
    shapes = shapes_of(row)
    families = []
    if plain:
        families.append(_family(shapes[0], row.ladder, plain))
    if quantiles:
        gauge = GaugeMetricFamily(shapes[-1].name, shapes[-1].help, labels=shapes[-1].labels)
        for texts, number in quantiles:
            gauge.add_metric(texts, number)
        families.append(gauge)
    return families


def cumulative(histogram: Histogram, ladder: Ladder) -> list[tuple[str, float]]:
    """Return Prometheus's buckets: upper bound as text, count of all at or below it, +Inf last."""
    if len(histogram.counts) != len(ladder.bounds) + 1:
        raise BadRow(f"{len(histogram.counts)} buckets for {len(ladder.bounds)} bounds")
    bounds = [*(_float_text(bound * ladder.scale) for bound in ladder.bounds), "+Inf"]
    total, buckets = 0, []
    for bound, count in zip(bounds, histogram.counts, strict=True):
        if count < 0:
            raise BadRow(f"bucket {bound} counts {count}")
        total += count
        buckets.append((bound, float(total)))
    return buckets


def _family(shape: Shape, ladder: Ladder | None, samples: list[tuple[list[str], float | Histogram]]) -> Family:
    if shape.kind is Kind.HISTOGRAM:
        if ladder is None:
            raise BadRow(f"{shape.name} is a histogram without a ladder")
        histograms = HistogramMetricFamily(shape.name, shape.help, labels=shape.labels)
        for texts, value in samples:
            if not isinstance(value, Histogram):
                raise BadRow(f"{shape.name}: {type(value).__name__} for a histogram")
            histograms.add_metric(texts, cumulative(value, ladder), value.total * ladder.scale)
        return histograms
    numbers: CounterMetricFamily | GaugeMetricFamily
    if shape.kind is Kind.COUNTER:
        numbers = CounterMetricFamily(shape.name, shape.help, labels=shape.labels)
    else:
        numbers = GaugeMetricFamily(shape.name, shape.help, labels=shape.labels)
    for texts, value in samples:
        if isinstance(value, Histogram):
            raise BadRow(f"{shape.name}: a histogram for a number")
        numbers.add_metric(texts, float(value))
    return numbers


def _float_text(value: float) -> str:
    return repr(float(f"{value:.12g}"))  # 1e-05, not 1.0000000000000001e-05: label text must not change with rounding


def _encodable(text: str) -> str:
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


__all__ = ["SCRAPE_ERRORS", "BadRow", "Sample", "Shape", "SnapshotCollector", "cumulative", "families_of", "shapes_of"]
