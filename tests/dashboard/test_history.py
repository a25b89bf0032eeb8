"""History makes every rate from differences, and starts again wherever totals do."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.frame import Frame
from dashboard.glyphs import RICH
from dashboard.history import EVENTS_KEPT, SECOND_NS, TIERS, History
from dashboard.verdict import wal_verdict
from dashboard.wal_window import Quantiles, WalWindow
from engine.measure.buckets import BUCKETS, UPPER_BOUNDS_NS
from engine.snapshot import (
    Absent,
    Event,
    FineHistogram,
    Histogram,
    PeriodQuantiles,
    ProcessSnapshot,
    Snapshot,
    WalStages,
)
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine
from tests.snapshots import every, snapshot, wal_snapshot

EMPTY = FineHistogram((), (), 0, 0)
NO_SYNCS = Histogram((0,) * 20, 0)


def at(
    seconds: float, *, started: int = 1, wall: float | None = None, events: tuple[Event, ...] = (), **wal: Any
) -> Snapshot:
    """A snapshot at an instant; unless said otherwise of a log whose epoch began long before."""
    plain = {
        "commits": 0,
        "epoch_started_ns": 0,
        "commit_latency": EMPTY,
        "sync_latency": EMPTY,
        "ops_per_sync": NO_SYNCS,
    }
    return snapshot(
        monotonic_ns=round((1_000 + seconds) * SECOND_NS),
        wall_ns=round((5_000 + (seconds if wall is None else wall)) * SECOND_NS),
        source_started_ns=started,
        wal=wal_snapshot(**(plain | wal)),
        events=events,
    )


def history_of(*snapshots: Snapshot) -> History:
    history = History()
    for each in snapshots:
        history.add(each)
    return history


def window(history: History, seconds: float, end_ns: int | None = None) -> WalWindow:
    found = history.window(seconds, end_ns)
    assert isinstance(found, WalWindow), found
    return found


def syncs(count: int, ops: int) -> Histogram:
    return Histogram((*[0] * 5, count, *[0] * 14), ops)


def fine(values: list[float]) -> FineHistogram:
    counts = np.bincount(np.searchsorted(UPPER_BOUNDS_NS, values), minlength=BUCKETS)
    used = np.flatnonzero(counts)
    return FineHistogram(tuple(used.tolist()), tuple(counts[used].tolist()), int(sum(values)), int(max(values)))


def test_rates_are_differences_over_time() -> None:
    history = history_of(
        at(0, commits=1_000, payload_bytes=10, ops_per_sync=syncs(100, 1_000)),
        at(2, commits=5_000, payload_bytes=4_010, ops_per_sync=syncs(300, 5_000)),
    )

    now = window(history, 2)

    assert (now.seconds, now.commits) == (2.0, 4_000)
    assert now.ops_per_second == 2_000
    assert now.payload_bytes_per_second == 2_000
    assert now.syncs_per_second == 100
    assert now.ops_per_sync == 20
    assert now.ops_per_sync_counts == syncs(200, 0).counts


def test_a_window_begins_at_the_newest_snapshot_before_its_beginning() -> None:
    history = history_of(*(at(0.25 * i, commits=100 * i) for i in range(41)))

    assert window(history, 1).seconds == 1
    assert window(history, 0.9).seconds == 1, "rather a little longer than guess between snapshots"
    assert window(history, 5).ops_per_second == 400


def test_one_snapshot_has_a_state_and_no_rates() -> None:
    history = history_of(at(0, commits=1_000))

    alone = window(history, 5)

    assert alone.last.commits == 1_000
    assert isinstance(alone.ops_per_second, Absent)
    assert isinstance(History().window(5), Absent)


def test_an_epoch_that_began_inside_the_window_is_measured_from_its_beginning() -> None:
    began = round(1_000.5 * SECOND_NS)
    history = history_of(
        at(0, commits=70_000),
        at(1, epoch=2, epoch_started_ns=began, commits=500),
        at(1.5, epoch=2, epoch_started_ns=began, commits=1_000),
    )

    now = window(history, 5)

    assert now.seconds == 1.0
    assert now.ops_per_second == 1_000
    assert window(history, 0.5).ops_per_second == 1_000


def test_a_source_seen_first_in_the_middle_of_its_epoch_is_measured_from_then() -> None:
    history = history_of(at(0, commits=1_000_000), at(1, commits=1_000_300))

    assert window(history, 5).ops_per_second == 300


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"started": 2}, "the source started again"),
        ({"epoch": 2}, "an epoch began before we looked"),
        ({}, "totals fell without a reason"),
    ],
    ids=["restart", "epoch", "fallen"],
)
def test_no_rate_is_negative_when_totals_start_again(changes: dict[str, int], why: str) -> None:
    history = history_of(
        at(0, commits=5_000), at(1, commits=6_000), at(2, commits=100, **changes), at(3, commits=300, **changes)
    )

    assert window(history, 1).ops_per_second == 200, why
    assert window(history, 60).ops_per_second == 200, why
    line = history.series("ops_per_second", seconds=3, columns=3)
    assert line[0] == 1_000
    assert math.isnan(line[1])
    assert line[2] == 200


def test_the_time_line_goes_on_over_a_restart_whatever_the_monotonic_clock_says() -> None:
    before, after = at(500, commits=9), at(3, started=2, wall=510, commits=1)

    history = history_of(before, after)

    assert history.newest_ns == 10 * SECOND_NS


def test_a_snapshot_that_is_no_newer_is_dropped() -> None:
    history = history_of(at(0), at(1, commits=10))

    history.add(at(1, commits=99))
    history.add(at(0.5, commits=99))

    assert history.added == 2
    assert window(history, 5).commits == 10


def test_what_is_absent_stays_absent_with_its_reason() -> None:
    reason = Absent("HBase does not count this")
    names = ("commits", "payload_bytes", "written_bytes", "rolls", "slow_syncs", "commit_latency", "sync_latency")
    wal = dict.fromkeys((*names, "write_latency", "ops_per_sync", "stages"), reason)
    history = history_of(at(0, **wal), at(1, **wal))

    now = window(history, 1)

    figures = {field.name for field in fields(now)} - {"last", "seconds"}
    assert {name for name in figures if getattr(now, name) is not reason} == set()
    assert np.isnan(history.series("ops_per_second", seconds=2, columns=4)).all()
    assert history_of(snapshot(wal=reason)).window(5) is reason


def test_quantiles_a_source_computed_itself_pass_through() -> None:
    own = PeriodQuantiles(60 * SECOND_NS, 1_234, ((0.5, 2e6), (0.99, 9e6)), 3e7)
    history = history_of(at(0, commit_latency=own), at(1, commit_latency=own))

    commit = window(history, 1).commit

    assert isinstance(commit, Quantiles)
    assert (commit.p50, commit.p99, commit.maximum, commit.count) == (2e6, 9e6, 3e7, 1_234)
    assert math.isnan(commit.p999)
    assert commit.own_period == 60 * SECOND_NS


@given(
    st.lists(st.floats(200, 9e10), min_size=1, max_size=200),
    st.lists(st.floats(200, 9e10), min_size=0, max_size=50),
)
def test_quantiles_of_a_window_are_those_of_its_commits_alone(values: list[float], earlier: list[float]) -> None:
    before = fine(earlier) if earlier else EMPTY
    history = history_of(at(0, commit_latency=before), at(1, commit_latency=fine(earlier + values)))

    commit = window(history, 1).commit

    assert isinstance(commit, Quantiles)
    assert commit.count == len(values)
    for quantile, shown in ((0.5, commit.p50), (0.99, commit.p99), (1.0, commit.maximum)):
        exact = float(np.quantile(values, quantile, method="inverted_cdf"))
        assert shown == pytest.approx(exact, rel=0.011)


def test_stage_shares_are_parts_of_one_commit() -> None:
    def stage(total: int) -> Histogram:
        return Histogram((10, *[0] * 19), total)

    zero = WalStages(*(Histogram((0,) * 20, 0),) * 4)
    history = history_of(
        at(0, stages=zero), at(1, stages=WalStages(stage(1_000), stage(500), stage(7_500), stage(1_000)))
    )

    stages = window(history, 1).stages

    assert not isinstance(stages, Absent)
    assert stages.shares == (0.1, 0.05, 0.75, 0.1)
    assert stages.mean_ns == (100, 50, 750, 100)


def test_syncs_are_busy_for_their_time_over_the_time() -> None:
    history = history_of(at(0), at(2, sync_latency=FineHistogram((700,), (10,), SECOND_NS, 10)))

    assert window(history, 2).sync_busy == 0.5


def test_processor_time_is_a_share_of_one_core() -> None:
    def with_cpu(seconds: float, cpu: float) -> Snapshot:
        return snapshot(monotonic_ns=round(seconds * SECOND_NS), process=ProcessSnapshot(cpu, 1, 1))

    history = history_of(with_cpu(1, 10.0), with_cpu(3, 13.0))

    assert history.cpu_share(5) == 1.5


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=300), st.integers(1, 60))
def test_a_series_holds_every_commit_once(commits: list[int], columns: int) -> None:
    totals = np.cumsum([0, *commits])
    history = history_of(*(at(0.25 * i, commits=int(total)) for i, total in enumerate(totals)))
    seconds = 0.25 * len(commits)

    line = history.series("ops_per_second", seconds=seconds, columns=columns)

    assert np.nansum(line) * seconds / columns == pytest.approx(sum(commits), rel=1e-9)


def test_a_series_of_groups_has_a_gap_where_nothing_was_synced() -> None:
    history = history_of(
        at(0), at(1, commits=30, ops_per_sync=syncs(3, 30)), at(2, commits=30, ops_per_sync=syncs(3, 30))
    )

    line = history.series("ops_per_sync", seconds=2, columns=2)

    assert line[0] == 10
    assert math.isnan(line[1])


def test_a_series_of_p99_shows_the_worst_of_each_column() -> None:
    slow, fast = [5_000_000.0] * 10, [50_000.0] * 10
    history = history_of(at(0), at(1, commit_latency=fine(fast)), at(2, commit_latency=fine(fast + slow)))

    line = history.series("commit_p99_ns", seconds=2, columns=2)

    assert line == pytest.approx([50_000, 5_000_000], rel=0.01)


def test_hours_are_kept_in_bounded_tiers_and_can_still_be_asked_about() -> None:
    history = History()
    rate = 100
    for i in range(4 * 3_600):
        history.add(at(i, commits=rate * i))

    assert [len(tier.steps) for tier in history._tiers] == [size for _, size in TIERS]
    now = history.newest_ns
    for back in (10, 800, 5_000):
        assert window(history, 60, now - back * SECOND_NS).ops_per_second == pytest.approx(rate)
    line = history.series("ops_per_second", seconds=9_000, columns=90)
    assert line == pytest.approx(np.full(90, rate)), "tiers join without gap or overlap"
    assert (now - history.oldest_ns) / SECOND_NS == pytest.approx(3 * 3_600, rel=0.01)


def test_a_look_back_does_not_know_the_future() -> None:
    early = Event(1, 7, "info", "wal", "early")
    late = Event(2, 8, "warn", "wal", "late")
    history = history_of(
        at(0, events=(early,)), at(5, commits=50, events=(early,)), at(10, commits=900, events=(early, late))
    )

    assert history.events(5 * SECOND_NS) == (early,)
    assert history.events() == (early, late)
    assert window(history, 5, 5 * SECOND_NS).ops_per_second == 10
    assert history.at(-5) is history.at(0), "before the first, the first"


def test_events_are_taken_once_bounded_and_again_after_a_restart() -> None:
    history = History()
    for i in range(EVENTS_KEPT * 2):
        history.add(at(i, events=tuple(Event(n, 0, "info", "wal", str(n)) for n in range(max(i - 8, 1), i + 1))))
    assert [event.number for event in history.events()] == list(range(EVENTS_KEPT, EVENTS_KEPT * 2))

    again = Event(1, 0, "info", "wal", "again")
    history.add(at(9_999, started=2, events=(again,)))
    assert history.events()[-1] is again


@given(st.lists(every(Snapshot), max_size=3))
def test_no_snapshot_whatever_it_says_breaks_history_or_shows_a_negative_rate(snapshots: list[Snapshot]) -> None:
    history = history_of(*snapshots)

    for end in (None, 0, history.newest_ns // 2):
        found = history.window(5, end)
        wal_verdict(found)
        history.cpu_share(5, end)
        for name in ("ops_per_second", "ops_per_sync", "commit_p99_ns"):
            line = history.series(name, seconds=60, columns=10, end_ns=end)
            assert not (line < 0).any()
        if isinstance(found, WalWindow):
            for rate in (found.ops_per_second, found.syncs_per_second, found.payload_bytes_per_second, found.sync_busy):
                assert isinstance(rate, Absent) or rate >= 0


def test_ten_minutes_of_an_engine_agree_with_its_totals() -> None:
    clock = FakeClock()
    engine, history = FakeEngine(clock=clock, device="serial:1ms"), History()
    for _ in range(4 * 60):
        clock.advance(0.25)
        history.add(engine.sample())
    newest = history.snapshot.wal

    everything = window(history, 600)

    assert everything.commits == newest.commits
    assert everything.ops_per_second == pytest.approx(newest.commits / 60, rel=0.01)
    assert Frame(history, RICH, None, 60, "local", 1).rates().seconds == pytest.approx(1, rel=0.01)
