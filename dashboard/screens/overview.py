"""The Overview: every lane in one line each, and the busiest figures of the one that runs."""

from __future__ import annotations

from dashboard.frame import Frame
from dashboard.screens.lane import LaneScreen
from dashboard.screens.series_plot import series_plot
from dashboard.screens.wal import (
    STATE_MOODS,
    groups_lines,
    rate_plot,
    wal_figures,
    wal_latency_lines,
    wal_stage_lines,
)
from dashboard.verdict import Verdict, wal_verdict
from dashboard.wal_window import WalWindow
from dashboard.widgets.bars import state_line
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.lines import Line, cut, left, outside, title
from engine.snapshot import Absent
from engine.units import format_count, format_duration, format_size


class OverviewScreen(LaneScreen):
    """All lanes of one source."""

    LANE = "overview"

    def draw_text(self, frame: Frame) -> None:
        """Draw the numbers a person asks for first."""
        rates, window = frame.rates(), frame.statistics()
        verdict = wal_verdict(window)
        self.put("state", lambda width, _: [_state_line(frame, window, width)])
        self.put("headline", lambda w, h: headline_lines(_figures(frame, rates, window), w, h, frame.glyphs))
        self.put("distribution_left", lambda w, h: _lane_lines(frame, window, verdict, w, h))
        self.put("distribution_middle", lambda w, h: wal_latency_lines(window, frame, w, h))
        self.put("distribution_right", lambda w, h: wal_stage_lines(window, frame, w, h))
        self.put_verdict(Verdict(verdict.mood, f"WAL {verdict.text}", verdict.hint), frame)

    def draw_plots(self, frame: Frame) -> None:
        """Draw what commits gain and what they wait."""
        self.put("plot_left", lambda w, h: rate_plot(frame, w, h))
        self.put(
            "plot_right",
            lambda w, h: series_plot("p99 of commits", "commit_p99_ns", "swell", format_duration, frame, w, h),
        )

    def draw_tables(self, frame: Frame) -> None:
        """Draw groups beside the events."""
        super().draw_tables(frame)
        window = frame.statistics()
        self.put("table_left", lambda w, h: groups_lines(window, frame, w, h))


def _state_line(frame: Frame, window: WalWindow | Absent, width: int) -> Line:
    running = isinstance(window, WalWindow) and window.last.state == "running"
    mood = STATE_MOODS.get(window.last.state, "dim") if isinstance(window, WalWindow) else "dim"
    word = "1 lane of 3 runs" if running else "no lane runs"
    snapshot = frame.history.snapshot
    facts = [f"source {frame.source_name}"]
    end = ""
    if snapshot is not None:
        up = format_duration(snapshot.wall_ns - snapshot.source_started_ns)
        facts += [snapshot.host, f"up {up}"]
        end = f"version {snapshot.version}"
    return state_line((frame.glyphs.bullet, mood), (word, f"{mood}-word"), facts, end, width, frame.glyphs)


def _figures(frame: Frame, rates: WalWindow | Absent, window: WalWindow | Absent) -> list[Figure]:
    figures = [
        figure
        for figure in wal_figures(rates, window)
        if figure.name in ("ops/s", "syncs/s", "ops/sync", "p50", "p99", "max")
    ]
    figures += [Figure("RAM disk", "n/a", "not running", 7, "dim"), Figure("image", "n/a", "not running", 8, "dim")]
    point = frame.history.at(frame.end_ns)
    if point is not None and not isinstance(point.process, Absent):
        share = frame.history.cpu_share(5.0, frame.end_ns)
        cpu = "n/a" if isinstance(share, Absent) else f"{share * 100:.0f} %"
        figures.append(Figure("processor", cpu, f"{point.process.threads} threads", 9))
        figures.append(Figure("memory", format_size(point.process.resident_bytes), "resident", 10))
    return figures


def _lane_lines(frame: Frame, window: WalWindow | Absent, verdict: Verdict, width: int, height: int) -> list[Line]:
    """Return one line a lane: its name, its state, and its verdict or why it does not run."""
    glyphs = frame.glyphs
    snapshot = frame.history.snapshot
    lines: list[Line] = [title("lanes", width, glyphs)]
    lanes: list[tuple[str, str, str, str]] = []
    if isinstance(window, WalWindow):
        ops = "" if isinstance(window.ops_per_second, Absent) else f"{format_count(window.ops_per_second)} ops/s, "
        mood = STATE_MOODS.get(window.last.state, "dim")
        lanes.append(("WAL", window.last.state, mood, f"{ops}{verdict.text}"))
    else:
        lanes.append(("WAL", "not running", "dim", window.reason))
    if snapshot is not None:
        lanes += [
            ("RAM disk", "not running", "dim", snapshot.ramdisk.reason),
            ("Image", "not running", "dim", snapshot.image.reason),
        ]
    for name, state, mood, text in lanes:
        lines.append(((f"{glyphs.bullet} ", mood), (left(name, 10), "bright"), (left(state, 12), f"{mood}-word")))
        if height >= 2 + 2 * len(lanes):
            lines.append((("  ", "text"), (cut(outside(text), width - 2, glyphs), "dim")))
    return lines
