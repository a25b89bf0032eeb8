"""The Overview: every lane in one line each, and the busiest figures of the one that runs."""

from __future__ import annotations

from dashboard.frame import Frame
from dashboard.image_verdict import image_verdict
from dashboard.image_window import RUNNING, inodes_per_second
from dashboard.ramdisk_verdict import ramdisk_verdict
from dashboard.ramdisk_window import RamdiskWindow
from dashboard.screens.image import IMAGE_MOODS
from dashboard.screens.lane import LaneScreen
from dashboard.screens.ramdisk import RAMDISK_MOODS, ramdisk_panel_lines, reason_of
from dashboard.screens.series_plot import series_plot
from dashboard.screens.wal import (
    STATE_MOODS,
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
from engine.snapshot import Absent, ImageSnapshot
from engine.units import format_count, format_duration, format_size


class OverviewScreen(LaneScreen):
    """All lanes of one source."""

    LANE = "overview"

    def draw_text(self, frame: Frame) -> None:
        """Draw the numbers a person asks for first."""
        rates, window = frame.rates(), frame.statistics()
        ramdisk = frame.ramdisk_statistics()
        self.put("state", lambda width, _: [_state_line(frame, window, ramdisk, width)])
        self.put("headline", lambda w, h: headline_lines(_figures(frame, rates, window, ramdisk), w, h, frame.glyphs))
        self.put_verdict(worst_verdict(window, ramdisk), frame)

    def draw_plots(self, frame: Frame) -> None:
        """Draw what commits gain and what they wait."""
        window = frame.statistics()
        ramdisk = frame.ramdisk_statistics()
        self.put("distribution_left", lambda w, h: _lane_lines(frame, window, ramdisk, w, h))
        self.put("distribution_middle", lambda w, h: wal_latency_lines(window, frame, w, h))
        self.put("distribution_right", lambda w, h: wal_stage_lines(window, frame, w, h))
        self.put("plot_left", lambda w, h: rate_plot(frame, w, h))
        self.put(
            "plot_right",
            lambda w, h: series_plot("p99 of commits", "commit_p99_ns", "swell", format_duration, frame, w, h),
        )

    def draw_tables(self, frame: Frame) -> None:
        """Draw the RAM disk beside the events."""
        super().draw_tables(frame)
        ramdisk = frame.ramdisk_statistics()
        self.put("table_left", lambda w, h: ramdisk_panel_lines(ramdisk, frame, w, h))


def worst_verdict(window: WalWindow | Absent, ramdisk: RamdiskWindow | Absent) -> Verdict:
    """Return the verdict on the log, or on the RAM disk where that has worse news."""
    wal, ram = wal_verdict(window), ramdisk_verdict(ramdisk)
    order = ("dim", "good", "warn", "bad")
    if order.index(ram.mood) > max(order.index(wal.mood), order.index("good")):
        return Verdict(ram.mood, f"RAM disk: {ram.text.removeprefix('RAM disk ')}", "press 3 to see it")
    return Verdict(wal.mood, f"WAL {wal.text}", wal.hint)


def _state_line(frame: Frame, window: WalWindow | Absent, ramdisk: RamdiskWindow | Absent, width: int) -> Line:
    running = isinstance(window, WalWindow) and window.last.state == "running"
    image = frame.image()
    lanes = running + (isinstance(ramdisk, RamdiskWindow) and ramdisk.last.state == "streaming")
    lanes += not isinstance(image, Absent) and image.state in RUNNING
    mood = STATE_MOODS.get(window.last.state, "dim") if isinstance(window, WalWindow) else "dim"
    word = f"{lanes} {'lane' if lanes == 1 else 'lanes'} of 3 {'runs' if lanes == 1 else 'run'}"
    word = word if lanes else "no lane runs"
    snapshot = frame.history.snapshot
    facts = [f"source {frame.source_name}"]
    end = ""
    if snapshot is not None:
        up = format_duration(frame.wall_ns - snapshot.source_started_ns)
        facts += [snapshot.host, f"up {up}"]
        end = f"version {snapshot.version}"
    return state_line((frame.glyphs.bullet, mood), (word, f"{mood}-word"), facts, end, width, frame.glyphs)


def _figures(
    frame: Frame, rates: WalWindow | Absent, window: WalWindow | Absent, ramdisk: RamdiskWindow | Absent
) -> list[Figure]:
    figures = [
        figure
        for figure in wal_figures(rates, window)
        if figure.name in ("ops/s", "syncs/s", "ops/sync", "p50", "p99", "max")
    ]
    if isinstance(ramdisk, Absent):
        figures.append(Figure("RAM at risk", "n/a", "not running", 7, "dim", "RAM risk"))
    else:
        behind = format_duration(max(ramdisk.last.oldest_at_risk_ns, 0))
        at_risk = format_size(max(ramdisk.last.backlog_bytes, 0))
        figures.append(Figure("RAM at risk", at_risk, f"{behind} behind", 7, short="RAM risk"))
    figures.append(_image_figure(frame.image()))
    point = frame.history.at(frame.end_ns)
    if point is not None and not isinstance(point.process, Absent):
        share = frame.history.cpu_share(5.0, frame.end_ns)
        cpu = "n/a" if isinstance(share, Absent) else f"{share * 100:.0f} %"
        figures.append(Figure("processor", cpu, f"{point.process.threads} threads", 9))
        figures.append(Figure("memory", format_size(point.process.resident_bytes), "resident", 10))
    return figures


def _image_figure(image: ImageSnapshot | Absent) -> Figure:
    if isinstance(image, Absent):
        return Figure("image", "n/a", "not running", 8, "dim")
    if not image.inodes:
        return Figure("image", "n/a", image.state, 8, "dim")
    rate = inodes_per_second(image)
    note = f"{format_count(rate)}/s" if rate is not None and image.state in RUNNING else f"{image.state}"
    return Figure("image inodes", format_count(max(image.inodes, 0)), note, 8, short="inodes")


def _lane_lines(
    frame: Frame, window: WalWindow | Absent, ramdisk: RamdiskWindow | Absent, width: int, height: int
) -> list[Line]:
    """Return one line a lane: its name, its state, and its verdict or why it does not run."""
    glyphs = frame.glyphs
    lines: list[Line] = [title("lanes", width, glyphs)]
    lanes: list[tuple[str, str, str, str]] = []
    if isinstance(window, WalWindow):
        ops = "" if isinstance(window.ops_per_second, Absent) else f"{format_count(window.ops_per_second)} ops/s, "
        mood = STATE_MOODS.get(window.last.state, "dim")
        lanes.append(("WAL", window.last.state, mood, f"{ops}{wal_verdict(window).text}"))
    else:
        lanes.append(("WAL", "not running", "dim", window.reason))
    if isinstance(ramdisk, Absent):
        lanes.append(("RAM disk", "not running", "dim", reason_of(ramdisk)))
    else:
        verdict = ramdisk_verdict(ramdisk)
        mood = verdict.mood if verdict.mood in ("warn", "bad") else RAMDISK_MOODS.get(ramdisk.last.state, "dim")
        lanes.append(("RAM disk", ramdisk.last.state, mood, verdict.text))
    image = frame.image()
    if isinstance(image, Absent):
        lanes.append(("Image", "not running", "dim", image.reason.removeprefix("not running: ")))
    else:
        lanes.append(("Image", image.state, IMAGE_MOODS.get(image.state, "dim"), image_verdict(image).text))
    for name, state, mood, text in lanes:
        lines.append(((f"{glyphs.bullet} ", mood), (left(name, 9), "bright"), (left(state, 11), f"{mood}-word")))
        if height >= 2 + 2 * len(lanes):
            lines.append((("  ", "text"), (cut(outside(text), width - 2, glyphs), "dim")))
    return lines
