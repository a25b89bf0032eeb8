"""The reference page of metrics, as `tidegauge metrics` prints it and docs/reference/metrics.md holds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dashboard.exporter.collector import SCRAPE_ERRORS, SCRAPE_ERRORS_HELP, Shape, shapes_of
from engine.metrics import METRICS, PREFIX, Kind, Metric

_INTRODUCTION = """\
# Metrics

What `GET /metrics` serves, one table row per family. This page is the output of `tidegauge metrics`; a test fails
where they differ. All values of one scrape come from one snapshot. A family whose value the source does not have
is left out. Totals start again from 0 when the source starts again or another model or device is chosen: `rate()`
sees that as a counter reset.

A source that publishes quantiles of its own instead of buckets (HBase does) appears in the gauges with `quantile` in
their name, label `quantile`, where 1.0 is the maximum; the histogram beside them is then absent. Such quantiles cannot
be averaged or added.

`device` says "simulated" where the latency is.
"""


def metrics_reference(rows: Iterable[Metric] = METRICS) -> str:
    """Return the page as Markdown, ending in one newline."""
    rows = tuple(rows)
    return _INTRODUCTION + "\n" + "\n".join(_table(rows)) + "\n\n" + "\n".join(_ladders(rows)) + "\n"


def _table(rows: tuple[Metric, ...]) -> Iterator[str]:
    yield "| family | type | labels | meaning |"
    yield "|---|---|---|---|"
    own = Shape(PREFIX + SCRAPE_ERRORS, Kind.COUNTER, SCRAPE_ERRORS_HELP, ())
    for shape in (*(shape for row in rows for shape in shapes_of(row)), own):
        labels = ", ".join(f"`{label}`" for label in shape.labels) or "-"
        yield f"| `{shape.name}` | {shape.kind.value} | {labels} | {_cell(shape.help)} |"


def _ladders(rows: tuple[Metric, ...]) -> Iterator[str]:
    yield "Buckets of the histograms (`le`, inclusive; then `+Inf`):"
    yield ""
    ladders = dict.fromkeys(row.ladder for row in rows if row.ladder is not None)
    for ladder in ladders:
        names = ", ".join(f"`{PREFIX}{row.name}`" for row in rows if row.ladder == ladder)
        bounds = " ".join(f"{bound * ladder.scale:.12g}" for bound in ladder.bounds)
        yield f"- {names}: {bounds}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
