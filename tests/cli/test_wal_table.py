"""The results as text: what is in the table, that it fits, and the report's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from dashboard.cli.text_table import Column, render
from dashboard.cli.wal_table import results_text, seed_text
from dashboard.cli.wal_verdict import case_verdict
from engine.workloads.wal import Latency, StageSeconds, WalResult

RESULT = WalResult(
    model="group",
    threads=50,
    device="real",
    value_size_bytes=1024,
    sync="fdatasync",
    sync_every=1,
    rate=None,
    ops=459_000,
    elapsed_seconds=5.0,
    ops_per_second=91_815.4,
    syncs=13_505,
    syncs_per_second=2_701.0,
    ops_per_sync=34.0,
    latency_seconds=Latency(0.000505, 0.0007, 0.000905, 0.00865, 0.0098),
    sync_seconds_mean=0.0003,
    stage_seconds=StageSeconds(0.0001, 0.00002, 0.0003, 0.0001),
    written_bytes=480_000_000,
    rolls=7,
    slow_syncs=0,
    verified=None,
    complete=True,
)


def changed(**changes: object) -> WalResult:
    return msgspec.structs.replace(RESULT, **changes)


def text_of(*results: WalResult, width: int = 100) -> str:
    return results_text(results, width=width, where="ext4 (vda)")


MATRIX = [
    changed(model=model, threads=threads, ops_per_second=ops)
    for model, figures in {
        "handler-recheck": (9_909.0, 15_589.0, 32_204.0),
        "pipeline:5": (7_164.0, 21_060.0, 86_614.0),
        "group": (11_691.0, 33_167.0, 91_815.0),
    }.items()
    for threads, ops in zip((1, 5, 50), figures, strict=True)
]


def test_the_table_of_a_matrix(golden: Callable[[str, str], None]) -> None:
    golden("run-wal-table-100.txt", text_of(*MATRIX) + "\n")


def test_the_table_of_a_matrix_on_a_narrow_terminal(golden: Callable[[str, str], None]) -> None:
    golden("run-wal-table-60.txt", text_of(*MATRIX, width=60) + "\n")


def test_the_seed_table(golden: Callable[[str, str], None]) -> None:
    golden("run-wal-seed-table.txt", seed_text(MATRIX, width=100) + "\n")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for line in (text_of(*MATRIX, width=width) + "\n" + seed_text(MATRIX, width=width)).splitlines():
        assert len(line) <= width, line


def test_at_100_columns_nothing_is_left_out() -> None:
    for title in ("ops/s", "syncs/s", "ops/sync", "p50", "p99", "p99.9", "max", "queue/write/sync/wake"):
        assert title in text_of(*MATRIX).splitlines()[1]


def test_a_simulated_device_is_called_so() -> None:
    assert text_of(changed(device="serial 5 ms (simulated)")).startswith(
        "device serial 5 ms (simulated), on ext4 (vda)"
    )


def test_what_is_not_durable_is_called_so() -> None:
    assert "sync none (not durable)" in text_of(changed(sync="none", syncs=0, syncs_per_second=0.0, ops_per_sync=None))
    lazy = " ".join(text_of(changed(sync_every=10)).split())
    assert "each handler waits at every 10th record; the others are acked un-synced" in lazy


def test_each_device_has_a_table_of_its_own() -> None:
    text = text_of(RESULT, changed(threads=1), changed(device="parallel 1 ms (simulated)"))

    assert text.count("model  handlers") == 2
    assert text.index("parallel") > text.index("group         1")


def test_an_interrupted_case_says_so() -> None:
    text = " ".join(text_of(changed(complete=False, elapsed_seconds=2.1)).split())

    assert "interrupted after 2.1 s: this is what was measured by then" in text


def test_a_failed_case_shows_its_error_instead_of_a_verdict() -> None:
    text = text_of(changed(error="EIO at a sync: the log stopped", complete=False))

    assert "group, 50 handlers: EIO at a sync: the log stopped" in text
    assert "sync-bound" not in text


def test_a_verified_case_says_what_was_checked() -> None:
    assert "read back: count, order and content are right" in " ".join(text_of(changed(verified=True)).split())


def test_a_case_in_which_nothing_was_measured_is_all_dashes() -> None:
    nothing = changed(
        ops=0,
        ops_per_second=0.0,
        syncs=0,
        syncs_per_second=0.0,
        ops_per_sync=None,
        elapsed_seconds=0.0,
        latency_seconds=Latency(None, None, None, None, None),
        sync_seconds_mean=None,
        stage_seconds=StageSeconds(0.0, 0.0, 0.0, 0.0),
        complete=False,
    )

    row = text_of(nothing).splitlines()[2].split()

    assert row == ["group", "50", "0", "0", "-", "-", "-", "-", "-", "-"]


def test_the_seed_table_holds_the_reports_medians_and_both_ratios() -> None:
    text = seed_text(MATRIX, width=100)

    for figure in ("1,021.125", "5,278.811", "17,078.736", "16.7x", "16.4x", "3.2x", "12.1x", "7.9x"):
        assert figure in text
    assert "the shape compares" in text


def test_the_seed_table_says_what_was_not_measured() -> None:
    text = seed_text([changed(threads=50)], width=100)

    assert "Not measured in this run: 1, 5 threads; use --threads 1,5,50." in text


def test_columns_go_by_rank_and_the_first_never() -> None:
    columns = [Column("name", ("x",), left=True), Column("aa", ("1",), rank=2), Column("bb", ("2",), rank=1)]

    assert render(columns, 12) == ["name  aa  bb", "x      1   2"]
    assert render(columns, 10) == ["name aa bb", "x     1  2"], "a narrower gap before a column goes"
    assert render(columns, 8) == ["name  bb", "x      2"]
    assert render(columns, 1) == ["name", "x"]


def test_a_rate_that_is_kept_is_not_called_bound_by_anything():
    open_loop = msgspec.structs.replace(RESULT, rate=2000, ops_per_second=1998.0)

    assert case_verdict(open_loop).startswith("keeps up: the 2k ops/s that were asked for")
    assert "keeps up" not in case_verdict(msgspec.structs.replace(open_loop, ops_per_second=1900.0))
