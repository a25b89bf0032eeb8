"""The RAM disk screen: what memory holds, what of it is at risk, and whether the lazy writer keeps up."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from textual.binding import BindingType

from dashboard.frame import Frame
from dashboard.ramdisk_history import Floats
from dashboard.ramdisk_keys import shown_rate
from dashboard.ramdisk_verdict import ramdisk_verdict
from dashboard.ramdisk_window import RamdiskWindow, Waits, waits_between
from dashboard.screens.lane import LaneScreen, own_bindings
from dashboard.verdict import Verdict
from dashboard.widgets.bars import state_line
from dashboard.widgets.counter_table import Counter, counter_lines
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.ladder_table import WaitRow, wait_lines
from dashboard.widgets.lines import Line, cut, outside, title
from dashboard.widgets.memory import memory_bar, memory_lines
from dashboard.widgets.plot import DOTS_PER_CELL, Plot, canvas_width, plot_lines
from dashboard.widgets.replica_table import replica_lines
from engine.snapshot import Absent, RamdiskSnapshot
from engine.units import MIB, SECOND, format_count, format_duration, format_size

RAMDISK_MOODS = {"streaming": "good", "idle": "dim", "closed": "dim"}
STACKED_HEIGHT = 12  # from here on backlog and age are a plot each
_NAMES = ("at risk", "oldest", "drained in", "written/s", "persisted/s", "RAM used")


class RamDiskScreen(LaneScreen):
    """The RAM disk."""

    LANE = "ramdisk"
    BINDINGS: ClassVar[list[BindingType]] = own_bindings("ramdisk")

    def draw_text(self, frame: Frame) -> None:
        """Draw the numbers of this second and the last few."""
        rates, window = frame.ramdisk_rates(), frame.ramdisk_statistics()
        self.put("state", lambda width, _: [ramdisk_state_line(window, frame, width)])
        self.put("headline", lambda w, h: headline_lines(ramdisk_figures(rates, window), w, h, frame.glyphs))
        verdict = ramdisk_verdict(window)
        if isinstance(window, Absent):
            verdict = Verdict("dim", f"no RAM disk: {reason_of(window)}")
        self.put_verdict(verdict, frame)

    def draw_plots(self, frame: Frame) -> None:
        """Draw backlog and bandwidth over time, memory, waits and counters."""
        window = frame.ramdisk_statistics()
        self.put("plot_left", lambda w, h: backlog_lines(window, frame, w, h))
        self.put("plot_right", lambda w, h: bandwidth_lines(window, frame, w, h))
        self.put("distribution_left", lambda w, h: ramdisk_memory_lines(window, frame, w, h))
        self.put("distribution_middle", lambda w, h: ramdisk_wait_lines(window, frame, w, h))
        self.put("distribution_right", lambda w, h: ramdisk_block_lines(window, frame, w, h))

    def draw_tables(self, frame: Frame) -> None:
        """Draw replicas and events."""
        super().draw_tables(frame)
        window = frame.ramdisk_statistics()
        rows = Absent("not running") if isinstance(window, Absent) else frame.history.ramdisk.replicas(frame.end_ns)
        note = "" if isinstance(window, Absent) else f"{window.last.backlog_blocks:,} at risk"
        self.put("table_left", lambda w, h: replica_lines(rows, w, h, frame.glyphs, note=note))


def ramdisk_state_line(window: RamdiskWindow | Absent, frame: Frame, width: int) -> Line:
    """Return the store's state, and what it is made of."""
    bullet = frame.glyphs.bullet
    if isinstance(window, Absent):
        return state_line((bullet, "dim"), ("not running", "dim-word"), [reason_of(window)], "", width, frame.glyphs)
    ram = window.last
    mood = RAMDISK_MOODS.get(ram.state, "dim")
    disk = f"disk {format_size(ram.persist_rate_bytes)}/s (simulated)" if ram.persist_rate_bytes > 0 else "disk real"
    facts = [
        shown_rate(ram.stream_rate_bytes),
        disk,
        f"copy {ram.copy_mode}",
        f"checksums {ram.checksum}",
        f"{format_size(max(ram.block_size_bytes, 0))} blocks",
        ram.ram_label,
    ]
    return state_line((bullet, mood), (ram.state, f"{mood}-word"), facts, ram.disk, width, frame.glyphs)


def ramdisk_figures(rates: RamdiskWindow | Absent, window: RamdiskWindow | Absent) -> list[Figure]:
    """Return the headline: rates of this second, waits of the last few."""
    if isinstance(rates, Absent) or isinstance(window, Absent):
        return [Figure(name, "n/a", "", rank, "dim") for rank, name in enumerate(_NAMES)]
    ram = window.last
    at_risk, capacity = max(ram.backlog_bytes, 0), max(ram.capacity_bytes, 0)
    share = 100 * max(ram.used_bytes + ram.reserved_bytes, 0) / capacity if capacity else 0.0
    limit = f"limit {format_size(ram.persist_rate_bytes)}" if ram.persist_rate_bytes > 0 else "no limit"
    stalls = window.grown("write_stalls")
    return [
        Figure("at risk", format_size(at_risk), f"{format_count(max(ram.backlog_blocks, 0))} blocks", 0),
        Figure("oldest", format_duration(max(ram.oldest_at_risk_ns, 0)), "at risk", 1),
        Figure("drained in", _drain(window), _drain_rate(window), 3, short="drain in"),
        Figure("written/s", _rate(rates.written_per_second), f"asked {_asked(ram)}", 4, short="write/s"),
        Figure("persisted/s", _rate(rates.persisted_per_second), limit, 5, short="persist"),
        Figure("RAM used", f"{share:.0f} %", f"of {format_size(capacity)}", 2),
        Figure("p99 memory", _p99(window, "ram_write"), "per block", 6, short="p99 mem"),
        Figure("p99 disk", _p99(window, "disk_write"), "per block", 8),
        Figure("fallbacks", format_count(max(ram.fallback_blocks, 0)), f"{stalls} stalls", 7, short="fallback"),
        Figure("evicted", format_count(max(ram.evicted_blocks, 0)), f"{max(ram.evicted_without_read, 0):,} unread", 9),
    ]


def backlog_lines(window: RamdiskWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Plot the backlog, and the age of its oldest block below where there is room."""
    if isinstance(window, Absent):
        return _absent_pane("backlog: bytes at risk", frame, width)
    age = f"oldest {format_duration(max(window.last.oldest_at_risk_ns, 0))}"
    above = height if height < STACKED_HEIGHT else (height + 1) // 2
    backlog = _levels(lambda ram: ram.backlog_bytes / MIB, frame, width)
    note = age if above == height else _peak(backlog, lambda value: format_size(value * MIB))
    lines = _plot("backlog at risk, MiB", backlog, note, "water", format_count, frame, width, above)
    if above < height:
        ages = _levels(lambda ram: ram.oldest_at_risk_ns / SECOND, frame, width)
        note = _peak(ages, _seconds)
        lines += _plot("age of the oldest at risk", ages, note, "swell", _seconds, frame, width, height - above)
    return lines


def bandwidth_lines(window: RamdiskWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Plot what is written and, as a line over it, what is persisted."""
    if isinstance(window, Absent):
        return _absent_pane("written and persisted", frame, width)
    written = _rates(lambda ram: ram.ram_bytes_written + ram.disk_bytes_written, frame, width)
    persisted = _rates(lambda ram: ram.persisted_bytes, frame, width)
    name, note = "MiB/s: area written, line persisted", _bandwidth(window)
    if width < len(name) + len(note) + 6:
        name = "MiB/s: written, line persisted"
    return _plot(name, written, note, "swell", format_count, frame, width, height, persisted)


def ramdisk_memory_lines(window: RamdiskWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return what memory holds."""
    if isinstance(window, Absent):
        return _absent_pane("memory", frame, width)
    return memory_lines(window.last, width, height, frame.glyphs)


def ramdisk_wait_lines(window: RamdiskWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return how long blocks took."""
    if isinstance(window, Absent):
        return _absent_pane("latency of blocks", frame, width)
    rows = (
        ("to memory", "ram_write"),
        ("to disk", "disk_write"),
        ("persisted", "persist_window"),
        ("evicted", "eviction_window"),
    )
    waits = [WaitRow(name, window.waits(what), waits_between(None, getattr(window.last, what))) for name, what in rows]
    return wait_lines(waits, width, height, frame.glyphs, note=frame.statistics_note)


def ramdisk_block_lines(window: RamdiskWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return what became of blocks, most telling first."""
    if isinstance(window, Absent):
        return _absent_pane("blocks", frame, width)

    def counter(name: str, total: str, alarm: str = "bright", note: str = "") -> Counter:
        return Counter(name, window.rate(total), getattr(window.last, total), alarm, note)

    saved = format_size(max(window.last.deleted_before_persist_bytes, 0))
    counters = (
        counter("to memory", "ram_blocks_written"),
        counter("persisted", "persisted_blocks"),
        counter("fallbacks", "fallback_blocks", "warn", "to disk for want of memory"),
        counter("evicted", "evicted_blocks"),
        counter("evicted unread", "evicted_without_read"),
        counter("deleted early", "deleted_before_persist_blocks", note=f"saved {saved} of I/O"),
        counter("persist errors", "persist_errors", "bad"),
        counter("moved to disk", "moved_blocks", "warn", "memory refused them half way"),
        counter("lost", "lost_blocks", "bad"),
        counter("corrupt", "corrupt_blocks", "bad"),
    )
    return counter_lines("blocks", counters, width, height, frame.glyphs, note=frame.statistics_note)


def ramdisk_panel_lines(window: RamdiskWindow | Absent, frame: Frame, width: int, height: int) -> list[Line]:
    """Return the RAM disk in a few lines, for the Overview."""
    glyphs = frame.glyphs
    if isinstance(window, Absent):
        return _absent_pane("RAM disk", frame, width)
    ram, verdict = window.last, ramdisk_verdict(window)
    used, capacity = max(ram.used_bytes + ram.reserved_bytes, 0), max(ram.capacity_bytes, 0)
    backlog = format_size(max(ram.backlog_bytes, 0))
    age = format_duration(max(ram.oldest_at_risk_ns, 0))
    lines: list[Line] = [
        title("RAM disk", width, glyphs, note=f"{ram.state}, {format_size(used)} of {format_size(capacity)}"),
        memory_bar(ram, width, glyphs),
        (
            ("at risk ", "dim"),
            (f"{backlog}  ", "bright"),
            ("oldest ", "dim"),
            (f"{age}  ", "bright"),
            ("drain ", "dim"),
            (_drain(window), "bright"),
        ),
        (
            ("written ", "dim"),
            (f"{_rate(window.written_per_second)}/s  ", "bright"),
            ("persisted ", "dim"),
            (f"{_rate(window.persisted_per_second)}/s", "bright"),
        ),
        (
            ("fallbacks ", "dim"),
            (f"{max(ram.fallback_blocks, 0):,}  ", "bright"),
            ("evicted ", "dim"),
            (f"{max(ram.evicted_blocks, 0):,}", "bright"),
        ),
        ((cut(verdict.text, width, glyphs), f"{verdict.mood}-word"),),
    ]
    return lines[:height]


def reason_of(absent: Absent) -> str:
    """Return why there is no RAM disk; the screen says "not running" itself."""
    return outside(absent.reason.removeprefix("not running: "))


def _absent_pane(name: str, frame: Frame, width: int) -> list[Line]:
    """Return a pane without figures; why there are none stands once, in the state and the verdict."""
    return [title(name, width, frame.glyphs), ((cut("not running", width, frame.glyphs), "dim"),)]


def _levels(pick: Callable[[RamdiskSnapshot], float], frame: Frame, width: int) -> Floats:
    columns = DOTS_PER_CELL * canvas_width(width)
    return frame.history.ramdisk.levels(pick, seconds=frame.span_seconds, columns=columns, end_ns=frame.end_ns)


def _rates(pick: Callable[[RamdiskSnapshot], int], frame: Frame, width: int) -> Floats:
    columns = DOTS_PER_CELL * canvas_width(width)
    line = frame.history.ramdisk.rates(pick, seconds=frame.span_seconds, columns=columns, end_ns=frame.end_ns)
    mebibytes: Floats = line / MIB
    return mebibytes


def _plot(
    name: str,
    values: Floats,
    note: str,
    colours: str,
    label: Callable[[float], str],
    frame: Frame,
    width: int,
    height: int,
    line: Floats | None = None,
) -> list[Line]:
    starts, middle, ends = frame.time_labels()
    return plot_lines(Plot(name, values, note, colours, starts, middle, ends, label, line), width, height, frame.glyphs)


def _peak(values: Floats, label: Callable[[float], str]) -> str:
    finite = values[np.isfinite(values)]
    return f"peak {label(float(finite.max()))}" if finite.size else ""


def _drain(window: RamdiskWindow) -> str:
    seconds = window.drain_seconds
    return "n/a" if isinstance(seconds, Absent) else format_duration(seconds * 1e9)


def _bandwidth(window: RamdiskWindow) -> str:
    bandwidth = window.lazy_bandwidth
    return "" if isinstance(bandwidth, Absent) else f"lazy writer {format_size(bandwidth)}/s"


def _drain_rate(window: RamdiskWindow) -> str:
    bandwidth = window.lazy_bandwidth
    return "" if isinstance(bandwidth, Absent) else f"{format_size(bandwidth)}/s"


def _rate(value: float | Absent) -> str:
    return "n/a" if isinstance(value, Absent) else format_size(value)


def _asked(ram: RamdiskSnapshot) -> str:
    return format_size(ram.stream_rate_bytes) if ram.stream_rate_bytes > 0 else "all"


def _p99(window: RamdiskWindow, what: str) -> str:
    waits = window.waits(what)
    return format_duration(waits.p99) if isinstance(waits, Waits) else "n/a"


def _seconds(value: float) -> str:
    return format_duration(value * SECOND)
