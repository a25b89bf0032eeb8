"""The WAL screen: what the log does now, over the last minutes, and where a commit's time goes."""

from __future__ import annotations

import math

from dashboard.frame import Frame
from dashboard.screens.lane import LaneScreen
from dashboard.screens.series_plot import series_plot
from dashboard.verdict import wal_verdict
from dashboard.wal_window import NOTHING_YET, Quantiles, WalWindow
from dashboard.widgets.bars import state_line
from dashboard.widgets.distribution import distribution_lines
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.latency import latency_lines
from dashboard.widgets.lines import Line, absent_lines, title
from dashboard.widgets.segment_table import segment_lines
from dashboard.widgets.stages import stage_lines
from engine.metrics import OPS_PER_SYNC
from engine.snapshot import Absent, WalSnapshot
from engine.units import format_count, format_duration, format_size

STATE_MOODS = {"running": "good", "stopped": "dim", "closed": "dim", "poisoned": "bad"}


class WalScreen(LaneScreen):
    """The write-ahead log."""

    LANE = "wal"

    def draw_text(self, frame: Frame) -> None:
        """Draw the numbers of this second and the last few."""
        rates, window = frame.rates(), frame.statistics()
        glyphs = frame.glyphs
        self.put("state", lambda width, _: [wal_state_line(window, frame, width)])
        self.put("headline", lambda w, h: headline_lines(wal_figures(rates, window), w, h, glyphs))
        self.put("distribution_left", lambda w, h: groups_lines(window, frame, w, h))
        self.put("distribution_middle", lambda w, h: wal_latency_lines(window, frame, w, h))
        self.put("distribution_right", lambda w, h: wal_stage_lines(window, frame, w, h))
        self.put_verdict(wal_verdict(window), frame)

    def draw_plots(self, frame: Frame) -> None:
        """Draw ops/s and the size of groups over time."""
        self.put("plot_left", lambda w, h: rate_plot(frame, w, h))
        self.put("plot_right", lambda w, h: groups_plot(frame, w, h))

    def draw_tables(self, frame: Frame) -> None:
        """Draw segments and events."""
        super().draw_tables(frame)
        window = frame.statistics()
        segments = window.last.segments if isinstance(window, WalWindow) else window
        self.put("table_left", lambda w, h: segment_lines(segments, w, h, frame.glyphs))


def wal_state_line(window: WalWindow | Absent, frame: Frame, width: int) -> Line:
    """Return the log's state, and what it is made of."""
    bullet = frame.glyphs.bullet
    if isinstance(window, Absent):
        return state_line((bullet, "dim"), ("not running", "dim-word"), [window.reason], "", width, frame.glyphs)
    wal = window.last
    mood = STATE_MOODS.get(wal.state, "dim")
    handlers = f"{wal.handlers} {'handler' if wal.handlers == 1 else 'handlers'}"
    if not isinstance(wal.waiting_handlers, Absent):
        handlers += f", {wal.waiting_handlers} inside commit"
    facts = [f"{wal.model} on {wal.device}", wal.sync, handlers, f"{format_size(wal.value_size_bytes)} records"]
    return state_line((bullet, mood), (wal.state, f"{mood}-word"), facts, wal.path, width, frame.glyphs)


def wal_figures(rates: WalWindow | Absent, window: WalWindow | Absent) -> list[Figure]:
    """Return the headline: rates of this second, quantiles of the last few."""
    if isinstance(rates, Absent) or isinstance(window, Absent):
        return [
            Figure(name, "n/a", "", rank) for rank, name in enumerate(("ops/s", "syncs/s", "ops/sync", "p50", "p99"))
        ]
    wal = window.last
    commit, sync = window.commit, window.sync
    behind = wal.appended_txid - wal.durable_txid
    return [
        Figure("ops/s", _count(rates.ops_per_second), _rate(rates.payload_bytes_per_second), 0),
        Figure("syncs/s", _count(rates.syncs_per_second), f"mean {_time(sync, 'mean')}", 1),
        Figure("ops/sync", _count(rates.ops_per_sync), _of_handlers(wal), 2),
        Figure("p50", _time(commit, "p50"), f"sync {_time(sync, 'p50')}", 4),
        Figure("p99", _time(commit, "p99"), f"sync {_time(sync, 'p99')}", 3),
        Figure("p99.9", _time(commit, "p999"), f"sync {_time(sync, 'p999')}", 6),
        Figure("max", _time(commit, "maximum"), f"sync {_time(sync, 'maximum')}", 5),
        Figure("handlers", str(wal.handlers), _waiting(wal), 7),
        Figure("durable txid", f"{wal.durable_txid:,}", f"{behind:,} behind", 8),
    ]


def groups_lines(window: WalWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return the distribution of ops per sync."""
    counts: tuple[int, ...] | Absent = NOTHING_YET if isinstance(window, Absent) else window.ops_per_sync_counts
    if isinstance(counts, Absent):
        return [title("ops per sync", width, frame.glyphs), *absent_lines(counts, width, frame.glyphs)]
    syncs = sum(counts)
    return distribution_lines(
        counts,
        OPS_PER_SYNC.bounds,
        width,
        height,
        frame.glyphs,
        name="ops per sync",
        note=f"{format_count(syncs)} syncs, {frame.statistics_note}",
    )


def wal_latency_lines(window: WalWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return latency quantiles of commits and syncs."""
    if isinstance(window, Absent):
        return [title("latency", width, frame.glyphs), *absent_lines(window, width, frame.glyphs)]
    own = window.commit.own_period if isinstance(window.commit, Quantiles) else None
    note = frame.statistics_note if own is None else f"the source's own {format_duration(own)}"
    return latency_lines(window.commit, window.sync, width, height, frame.glyphs, note=note)


def wal_stage_lines(window: WalWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return where a commit's time goes."""
    stages = window if isinstance(window, Absent) else window.stages
    return stage_lines(stages, width, height, frame.glyphs, note=frame.statistics_note)


def rate_plot(frame: Frame, width: int, height: int) -> list[Line]:
    """Plot ops/s."""
    return series_plot("ops/s", "ops_per_second", "water", format_count, frame, width, height)


def groups_plot(frame: Frame, width: int, height: int) -> list[Line]:
    """Plot the mean size of a group."""
    return series_plot("ops per sync", "ops_per_sync", "swell", format_count, frame, width, height)


def _count(value: float | Absent) -> str:
    return "n/a" if isinstance(value, Absent) else format_count(value)


def _rate(value: float | Absent) -> str:
    return "" if isinstance(value, Absent) else f"{format_size(value)}/s"


def _time(quantiles: Quantiles | Absent, attribute: str) -> str:
    value = float("nan") if isinstance(quantiles, Absent) else getattr(quantiles, attribute)
    return format_duration(value) if math.isfinite(value) else "n/a"


def _of_handlers(wal: WalSnapshot) -> str:
    return f"of {wal.handlers}"


def _waiting(wal: WalSnapshot) -> str:
    return "" if isinstance(wal.waiting_handlers, Absent) else f"{wal.waiting_handlers} inside"
