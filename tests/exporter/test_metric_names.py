"""The names of all families follow Prometheus's naming rules; promtool agrees where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from prometheus_client.exposition import generate_latest

from dashboard.exporter.collector import SCRAPE_ERRORS, SCRAPE_ERRORS_HELP, Shape, SnapshotCollector, shapes_of
from engine.metrics import METRICS, PREFIX, Kind
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine

SHAPES = [
    *(shape for row in METRICS for shape in shapes_of(row)),
    Shape(PREFIX + SCRAPE_ERRORS, Kind.COUNTER, SCRAPE_ERRORS_HELP, ()),
]
NOT_BASE_UNITS = {
    *("ns", "us", "ms", "milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "sec", "secs"),
    *("kb", "mb", "gb", "kib", "mib", "gib", "kilobytes", "megabytes", "gigabytes", "bits", "percent"),
}
TYPE_WORDS = {"counter", "gauge", "histogram", "summary"}
RESERVED_ENDS = ("_bucket", "_count", "_sum", "_created")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
class TestNames:
    def test_is_lower_case_with_our_prefix(self, shape: Shape) -> None:
        assert re.fullmatch(r"tidegauge(_[a-z][a-z0-9]*)+", shape.name)

    def test_counters_and_only_counters_end_in_total(self, shape: Shape) -> None:
        assert shape.name.endswith("_total") == (shape.kind is Kind.COUNTER)

    def test_has_base_units_last(self, shape: Shape) -> None:
        words = shape.name.removesuffix("_total").split("_")

        assert not set(words) & NOT_BASE_UNITS
        for unit in ("seconds", "bytes", "ratio"):
            assert unit not in words[:-1], f"{unit} is the unit and belongs at the end"

    def test_does_not_carry_its_type_or_a_reserved_end(self, shape: Shape) -> None:
        assert not set(shape.name.split("_")) & TYPE_WORDS
        assert not shape.name.endswith(RESERVED_ENDS)

    def test_labels_are_named_once_and_not_in_the_name(self, shape: Shape) -> None:
        for label in shape.labels:
            assert re.fullmatch(r"[a-z][a-z0-9_]*", label)
            assert label not in ("le", "instance", "job", "hostname")
            if label != "quantile":
                assert f"_by_{label}" not in shape.name
        assert len(set(shape.labels)) == len(shape.labels)

    def test_help_is_a_sentence(self, shape: Shape) -> None:
        assert shape.help[0].isupper() or shape.help[0].isdigit()
        assert shape.help.endswith(".")
        assert "\n" not in shape.help


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_a_scrape() -> None:
    clock = FakeClock()
    engine = FakeEngine(clock=clock)
    engine.sample()
    clock.advance(1)
    text = generate_latest(SnapshotCollector(engine.sample).registry())

    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr
