"""The RAM disk's history: rates from differences, levels as they stood, and a wipe that begins again from zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.frame import Frame
from dashboard.glyphs import PLAIN, RICH
from dashboard.history import SECOND_NS, History
from dashboard.ramdisk_verdict import ramdisk_verdict
from dashboard.ramdisk_window import RamdiskWindow, Waits, waits_between
from dashboard.screens import ramdisk as screen
from dashboard.widgets.lines import text_of, width_of
from dashboard.widgets.memory import memory_bar, memory_lines, memory_parts
from dashboard.widgets.replica_table import replica_lines
from engine.measure.buckets import LADDER_NS
from engine.snapshot import Absent, Histogram, ReplicaRow, Snapshot
from engine.units import MIB, Bytes, Nanoseconds
from tests.snapshots import every, ramdisk_snapshot, snapshot


def at(seconds: float, **ramdisk: object) -> Snapshot:
    """A snapshot at an instant; unless said otherwise of a store opened long before."""
    now = round((1_000 + seconds) * SECOND_NS)
    zeros = {"ram_bytes_written": 0, "disk_bytes_written": 0, "persisted_bytes": 0, "epoch": 1, "epoch_started_ns": 5}
    store = ramdisk_snapshot(**(zeros | {"backlog_bytes": 0} | ramdisk))
    return snapshot(monotonic_ns=now, wall_ns=now, ramdisk=store)


def history_of(*snapshots: Snapshot) -> History:
    history = History()
    for each in snapshots:
        history.add(each)
    return history


def test_rates_are_differences_over_time() -> None:
    first = at(0, ram_bytes_written=100 * MIB, disk_bytes_written=MIB, backlog_bytes=10 * MIB)
    last = at(2, ram_bytes_written=300 * MIB, disk_bytes_written=5 * MIB, persisted_bytes=20 * MIB, backlog_bytes=0)

    window = history_of(first, last).ramdisk.window(1)

    assert isinstance(window, RamdiskWindow)
    assert window.written_per_second == 102 * MIB
    assert window.persisted_per_second == 10 * MIB
    assert window.backlog_growth == -5 * MIB


def test_a_wipe_inside_the_window_is_measured_from_its_beginning() -> None:
    wiped = {"epoch": 2, "epoch_started_ns": 1_002 * SECOND_NS}
    history = history_of(
        at(0, ram_bytes_written=900 * MIB),
        at(1, ram_bytes_written=999 * MIB),
        at(4, ram_bytes_written=50 * MIB, **wiped),
    )

    window = history.ramdisk.window(5)

    assert isinstance(window, RamdiskWindow)
    assert (window.before, window.seconds) == (None, 2.0)
    assert window.written_per_second == 25 * MIB


def test_a_line_of_rates_holds_what_was_written_and_no_more() -> None:
    history = history_of(*(at(second, persisted_bytes=second * 10 * MIB) for second in range(31)))

    line = history.ramdisk.rates(lambda ram: ram.persisted_bytes, seconds=60, columns=60)

    assert np.isnan(line[:28]).all(), "nothing is known of the time before the first snapshot"
    assert line[33:] == pytest.approx(10 * MIB)


def test_a_line_of_levels_shows_the_highest_of_each_column() -> None:
    peaks = {7: 500, 20: 900}
    history = history_of(*(at(second, backlog_bytes=peaks.get(second, 10)) for second in range(31)))

    line = history.ramdisk.levels(lambda ram: ram.backlog_bytes, seconds=30, columns=6)

    assert sorted(line.tolist())[-2:] == [500, 900]
    assert line[0] == 10


def test_replicas_of_a_paused_view_are_those_of_its_instant() -> None:
    rows = [(ReplicaRow("a", block, Bytes(1), "memory", "at risk", Nanoseconds(1), 0),) for block in range(3)]
    history = history_of(*(at(second, replicas=rows[second]) for second in range(3)))

    assert history.ramdisk.replicas() == rows[2]
    assert history.ramdisk.replicas(SECOND_NS) == rows[1]
    assert isinstance(history.ramdisk.replicas(-1), Absent)


@given(st.lists(st.integers(1, 9 * 10**9), min_size=1, max_size=200))
def test_waits_are_within_a_bucket_of_the_truth(values: list[int]) -> None:
    counts = np.bincount(np.searchsorted(LADDER_NS, values), minlength=len(LADDER_NS) + 1)

    waits = waits_between(None, Histogram(tuple(counts.tolist()), sum(values)))

    assert isinstance(waits, Waits)
    truth = sorted(values)[-(-len(values) // 2) - 1]
    index = int(np.searchsorted(LADDER_NS, truth))
    assert (LADDER_NS[index - 1] if index else 0) <= waits.p50 <= LADDER_NS[index]
    assert waits.p99 >= waits.p50
    assert waits.mean == pytest.approx(sum(values) / len(values))


@settings(max_examples=30)
@given(st.lists(every(Snapshot), max_size=3), st.integers(1, 160), st.integers(1, 20), st.booleans())
def test_no_snapshot_whatever_it_says_breaks_the_screen_or_its_width(
    snapshots: list[Snapshot], width: int, height: int, plain: bool
) -> None:
    history = history_of(*snapshots)
    frame = Frame(history, PLAIN if plain else RICH, None, 60, "local", 1)
    rates, window = frame.ramdisk_rates(), frame.ramdisk_statistics()

    lines = [screen.ramdisk_state_line(window, frame, width), ((ramdisk_verdict(window).text, "text"),)]
    for draw in (
        screen.backlog_lines,
        screen.bandwidth_lines,
        screen.ramdisk_memory_lines,
        screen.ramdisk_wait_lines,
        screen.ramdisk_block_lines,
        screen.ramdisk_panel_lines,
    ):
        drawn = draw(window, frame, width, height)
        assert len(drawn) <= height or height < 3, draw
        lines += drawn
    rows = history.ramdisk.replicas()
    assert len(replica_lines(rows, width, height, frame.glyphs)) <= max(height, 2)
    for figure in screen.ramdisk_figures(rates, window):
        assert "-" not in figure.value, "no rate and no size is negative"
    assert not any(c in text_of(lines) for c in "\x1b\x07\x9b")


@given(st.integers(0, 900), st.integers(0, 100), st.integers(0, 900), st.integers(0, 24), st.integers(10, 160))
def test_the_bar_of_memory_fills_its_width_and_hides_no_part(
    used: int, reserved: int, backlog: int, spare: int, width: int
) -> None:
    ram = ramdisk_snapshot(
        capacity_bytes=1024, used_bytes=used, reserved_bytes=reserved, backlog_bytes=backlog, spare_bytes=spare
    )

    bar = memory_bar(ram, width, RICH)

    assert width_of(bar) == width
    assert sum(memory_parts(ram).values()) == 1024
    assert all(text for (text, _), size in zip(bar[:4], memory_parts(ram).values(), strict=False) if size)
    assert width_of(memory_lines(ram, width, 4, RICH)[0]) <= width
