"""Lines are what their figures say, at any width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.glyphs import PLAIN, RICH, Glyphs, bar, cell
from dashboard.screens.dialogs import framed, help_lines
from dashboard.screens.layout import lane_boxes
from dashboard.verdict import Verdict
from dashboard.wal_window import Quantiles, Stages
from dashboard.widgets.bars import Readings, footer_line, header_line, state_line, verdict_line, words_in_a_box
from dashboard.widgets.distribution import distribution_lines
from dashboard.widgets.event_log import clock_time, event_lines
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.latency import latency_lines, log_level
from dashboard.widgets.lines import Line, cut, cut_start, fitted, gauge, text_of, width_of
from dashboard.widgets.plot import Plot, canvas, canvas_width, filled, nice_top, plot_lines
from dashboard.widgets.segment_table import segment_lines
from dashboard.widgets.stages import stage_lines
from engine.metrics import OPS_PER_SYNC
from engine.snapshot import Event, SegmentRow

GLYPHS = st.sampled_from([RICH, PLAIN])


@pytest.mark.parametrize(
    ("level", "glyphs"),
    [
        (0.0, "    "),
        (1.0, "████"),
        (0.5, "██  "),
        (0.25, "█   "),
        (0.3125, "█▂  "),
        (-3.0, "    "),
        (9.0, "████"),
        (float("nan"), "    "),
    ],
)
def test_cells_of_a_bar_fill_from_its_start(level: float, glyphs: str) -> None:
    assert "".join(cell(level, place=i, places=4, steps=RICH.columns) for i in range(4)) == glyphs


@given(st.floats(0, 1), st.integers(1, 60), GLYPHS)
def test_a_bar_is_as_long_as_its_level_and_never_hides_a_little(level: float, width: int, glyphs: Glyphs) -> None:
    drawn = bar(level, width, glyphs.bars)

    assert len(drawn) == width
    assert (drawn[0] == glyphs.bars[0]) == (level == 0)
    assert abs(len(drawn.rstrip(glyphs.bars[0])) - level * width) <= 1
    assert width_of(gauge(level, width, "bar", glyphs)) == width


@given(st.lists(st.one_of(st.floats(0, 1e6), st.just(float("nan"))), min_size=2, max_size=120), st.integers(1, 12))
def test_the_area_of_a_plot_stands_for_its_values(values: list[float], height: int) -> None:
    line = np.array(values[: len(values) // 2 * 2])
    width, top = line.size // 2, 1e6

    rows = canvas(line, top=top, width=width, height=height, glyphs=RICH)

    assert [len(row) for row in rows] == [width] * height
    for x, value in enumerate(line):
        dots = sum(_dots(rows[y][x // 2], x % 2) for y in range(height))
        if np.isnan(value):
            assert dots == 0
        else:  # a value of 0 is a dot on the floor: known, and nothing
            assert abs(dots - value / top * height * 4) <= 1.01


def _dots(char: str, column: int) -> int:
    bits = max(ord(char) - 0x2800, 0)
    return (bits & (0x47, 0xB8)[column]).bit_count()


def test_filling_sets_every_dot_below_another() -> None:
    assert filled(["⡀⠈", "⠀ ", "  "]) == ["⡀⢸", "⡇⢸", "⡇⢸"]


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (0.9, 1), (1, 1.2), (81_300, 100_000), (99, 120), (7.9e6, 1e7), (float("nan"), 1)]
)
def test_an_axis_ends_at_a_round_number_above_its_values(highest: float, top: float) -> None:
    assert nice_top(highest) == pytest.approx(top)


@given(st.floats(1e-6, 1e12))
def test_an_axis_is_never_much_higher_than_its_values(highest: float) -> None:
    assert highest * 1.02 <= nice_top(highest) <= highest * 1.45


@given(st.integers(60, 220), st.integers(16, 70), GLYPHS)
def test_figures_fit_their_places_at_every_size(width: int, height: int, glyphs: Glyphs) -> None:
    quantiles = Quantiles(1e5, 2e5, 3e6, float("nan"), 9e9, 1e5, 10)
    stages = Stages((1e5, 1e3, 1e6, 0.0), (0.1, 0.0, 0.9, 0.0))
    segments = [SegmentRow(n, n, 4_096, 1 << 26, "closed") for n in range(1, 40)]
    events = [Event(n, n, "error", "wal", "x" * n * 9) for n in range(1, 40)]
    figures = [Figure(f"figure {n}", "1.25 ms", "a note", n) for n in range(9)]
    counts, bounds = [0, 3, *[7] * 18], OPS_PER_SYNC.bounds

    def plot(width: int, height: int) -> list[Line]:
        values = np.linspace(0, 1e5, 2 * canvas_width(width))
        return plot_lines(Plot("ops/s", values, "peak 100k", "water", "-60 s", "-30 s", "now"), width, height, glyphs)

    draws = {
        "headline": lambda w, h: headline_lines(figures, w, h, glyphs),
        "plot_left": plot,
        "distribution_left": lambda w, h: distribution_lines(counts, bounds, w, h, glyphs, name="a name", note="5 s"),
        "distribution_middle": lambda w, h: latency_lines(quantiles, quantiles, w, h, glyphs, note="last 5 s"),
        "distribution_right": lambda w, h: stage_lines(stages, w, h, glyphs, note="last 5 s"),
        "table_left": lambda w, h: segment_lines(segments, w, h, glyphs),
        "table_right": lambda w, h: event_lines(events, w, h, glyphs),
    }
    for place, box in lane_boxes(width, height).items():
        lines = draws[place](box.width, box.height) if place in draws else []
        assert len(lines) <= box.height, text_of(lines)
        for line in lines:
            assert width_of(line) <= box.width, text_of([line])


@given(st.integers(1, 200), st.integers(1, 40), GLYPHS)
def test_words_in_a_box_fit_any_terminal(width: int, height: int, glyphs: Glyphs) -> None:
    lines = words_in_a_box(help_lines()[:3], width, height, glyphs)

    assert all(width_of(line) <= width for line in lines)


@given(st.integers(60, 300), GLYPHS, st.text(max_size=80))
def test_bars_fill_their_width_whatever_they_say(width: int, glyphs: Glyphs, words: str) -> None:
    readings = Readings(0.031, 1.43, 2.9)
    badge = (" PAUSED -12 s ", "badge-paused")

    assert width_of(header_line("wal", width, glyphs, source=words)) <= width
    assert width_of(footer_line(badge, readings, "", width, glyphs)) == width
    assert width_of(footer_line(badge, readings, words, width, glyphs)) == width
    assert width_of(verdict_line(Verdict("good", "sync-bound: " + "x" * 70), width, glyphs)) <= width
    assert width_of(state_line(("*", "good"), ("running", "good-word"), [words] * 5, words, width, glyphs)) <= width


def test_a_long_verdict_is_cut_before_its_hint() -> None:
    line = verdict_line(Verdict("bad", "poisoned: " + "x" * 90, "press s to reopen"), 58, RICH)

    assert text_of([line]).endswith("x…; press s to reopen")
    assert width_of(line) == 58


def test_a_narrow_headline_keeps_what_ranks_first_in_its_order() -> None:
    figures = [
        Figure("ops/s", "1", "", 0),
        Figure("p50", "2", "", 2),
        Figure("p99", "3", "", 1),
        Figure("txid", "4", "", 3),
    ]

    assert text_of(headline_lines(figures, 27, 2, RICH)).split() == ["ops/s", "p50", "p99", "1", "2", "3"]
    assert text_of(headline_lines(figures, 18, 2, RICH)).split() == ["ops/s", "p99", "1", "3"]


@pytest.mark.parametrize(
    ("nanoseconds", "level"), [(1, 0), (10_000, 0), (1e7, 0.5), (1e10, 1), (1e12, 1), (float("nan"), 0)]
)
def test_latencies_stand_by_their_logarithm(nanoseconds: float, level: float) -> None:
    assert log_level(nanoseconds) == pytest.approx(level)


@given(st.integers(60, 300), st.integers(16, 120))
def test_places_lie_inside_the_screen_and_over_no_other(width: int, height: int) -> None:
    taken = np.zeros((height, width), int)

    for place, (x, y, box_width, box_height) in lane_boxes(width, height).items():
        assert box_width > 0, place
        assert box_height > 0, place
        assert x >= 0, place
        assert y >= 0, place
        assert x + box_width <= width, place
        assert y + box_height <= height, place
        taken[y : y + box_height, x : x + box_width] += 1

    assert taken.max() == 1


@pytest.mark.parametrize(
    ("size", "missing"),
    [((160, 45), set()), ((80, 24), set()), ((60, 16), {"distribution_middle", "table_left", "table_right"})],
    ids=str,
)
def test_small_screens_leave_tables_out_first(size: tuple[int, int], missing: set[str]) -> None:
    assert set(lane_boxes(160, 45)) - set(lane_boxes(*size)) == missing


@given(st.text(max_size=60), st.integers(0, 40), GLYPHS)
def test_cut_text_fits_and_whole_text_is_left_alone(text: str, width: int, glyphs: Glyphs) -> None:
    for shorten in (cut, cut_start):
        short = shorten(text, width, glyphs)
        line = ((short, "text"),)
        assert width_of(line) <= width
        assert width_of(fitted(line, width)) == width
        if width_of(((text, "text"),)) <= width:
            assert short == text


@pytest.mark.parametrize("wall", [2**63 - 1, -(2**63), 0])
def test_a_time_of_day_is_shown_for_any_clock(wall: int) -> None:
    assert len(clock_time(wall)) == 8


def test_a_frame_is_six_cells_wider_than_what_it_frames() -> None:
    lines = framed("keys", [(("one", "text"),)], 12, " more ", PLAIN)

    assert {width_of(line) for line in lines} == {18}
