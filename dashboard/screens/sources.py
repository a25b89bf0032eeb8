"""The Sources screen: where the snapshots come from, how fresh they are, and which quantities they have."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.frame import Frame
from dashboard.history import SECOND_NS, TIERS
from dashboard.screens.lane import LaneScreen
from dashboard.verdict import Verdict
from dashboard.widgets.bars import state_line
from dashboard.widgets.event_log import clock_time
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.lines import Line, cut, left, outside, right, title
from engine.metrics import METRICS, Kind
from engine.snapshot import Absent, Histogram, PeriodQuantiles, Snapshot
from engine.units import format_count, format_duration, format_size


class SourcesScreen(LaneScreen):
    """One source today; a table for more."""

    LANE = "sources"

    def draw_text(self, frame: Frame) -> None:
        """Draw what is known of the source."""
        glyphs, snapshot = frame.glyphs, frame.history.snapshot
        if snapshot is None:
            return
        span = (frame.history.newest_ns - frame.history.oldest_ns) / SECOND_NS
        facts = [snapshot.host, f"version {snapshot.version}", f"schema {snapshot.schema}"]
        started = f"since {clock_time(snapshot.source_started_ns)}"
        self.put(
            "state",
            lambda w, _: [
                state_line((glyphs.bullet, "good"), (snapshot.source_id, "good-word"), facts, started, w, glyphs)
            ],
        )
        self.put("headline", lambda w, h: headline_lines(_figures(frame, snapshot, span), w, h, glyphs))
        self.put("distribution_left", lambda w, h: _tier_lines(frame, w))
        self.put("distribution_middle", lambda w, h: _process_lines(frame, snapshot, w))
        self.put("distribution_right", lambda w, h: _absence_lines(snapshot, frame, w, h))
        self.put_verdict(
            Verdict(
                "good",
                f"{snapshot.source_id}: {_interval(frame)} between snapshots, {format_duration(span * 1e9)} kept",
            ),
            frame,
        )

    def draw_plots(self, frame: Frame) -> None:
        """Draw the quantities, in two columns."""
        snapshot = frame.history.snapshot
        if snapshot is None:
            return
        rows = list(_quantities(snapshot))
        self.put("plot_left", lambda w, h: _quantity_lines(rows[: h - 1], frame, w, "quantities"))
        self.put("plot_right", lambda w, h: _quantity_lines(rows[h - 1 : 2 * h - 2], frame, w, f"{len(rows)} in all"))

    def draw_tables(self, frame: Frame) -> None:
        """Draw the table of sources."""
        super().draw_tables(frame)
        snapshot = frame.history.snapshot
        if snapshot is not None:
            self.put("table_left", lambda w, h: _source_lines(snapshot, frame, w))


def _figures(frame: Frame, snapshot: Snapshot, span: float) -> list[Figure]:
    process = snapshot.process
    share = frame.history.cpu_share(5.0, frame.end_ns)
    cpu = "n/a" if isinstance(share, Absent) else f"{share * 100:.0f} %"
    memory = "n/a" if isinstance(process, Absent) else format_size(process.resident_bytes)
    threads = "" if isinstance(process, Absent) else f"{process.threads} threads"
    up = format_duration(snapshot.wall_ns - snapshot.source_started_ns)
    return [
        Figure("snapshots", format_count(frame.taken), f"{frame.history.added} taken in", 0),
        Figure("interval", _interval(frame), "of the source", 1),
        Figure("kept", format_duration(span * 1e9), "of history", 2),
        Figure("up", up, "the source", 3),
        Figure("processor", cpu, threads, 4),
        Figure("memory", memory, "resident", 5),
    ]


def _interval(frame: Frame) -> str:
    span = frame.history.newest_ns
    return format_duration(round(span / (frame.history.added - 1), -6)) if frame.history.added > 1 else "n/a"


def _source_lines(snapshot: Snapshot, frame: Frame, width: int) -> list[Line]:
    head = left("source", 10) + left("host", 18) + left("version", 12) + "newest"
    row = (
        (left(outside(snapshot.source_id), 10), "bright"),
        (left(cut(outside(snapshot.host), 17, frame.glyphs), 18), "text"),
        (left(cut(outside(snapshot.version), 11, frame.glyphs), 12), "text"),
        (clock_time(snapshot.wall_ns), "text"),
    )
    return [title("sources", width, frame.glyphs, note="1 source"), ((head, "dim"),), row]


def _tier_lines(frame: Frame, width: int) -> list[Line]:
    lines: list[Line] = [title("history kept", width, frame.glyphs)]
    for step_ns, size in TIERS:
        every = "each snapshot" if step_ns == 0 else f"one each {format_duration(step_ns)}"
        reach = "" if step_ns == 0 else format_duration(step_ns * size)
        lines.append(((left(every, 16), "text"), (right(f"{size:,}", 7), "bright"), (f"  {reach}", "dim")))
    return lines


def _process_lines(frame: Frame, snapshot: Snapshot, width: int) -> list[Line]:
    lines: list[Line] = [title("process", width, frame.glyphs)]
    if isinstance(snapshot.process, Absent):
        return [*lines, ((cut(outside(snapshot.process.reason), width, frame.glyphs), "dim"),)]
    rows = (
        ("processor", f"{snapshot.process.cpu_seconds:,.1f} s"),
        ("memory", format_size(snapshot.process.resident_bytes)),
        ("threads", str(snapshot.process.threads)),
    )
    return lines + [((left(name, 11), "dim"), (right(value, 11), "bright")) for name, value in rows]


def _absence_lines(snapshot: Snapshot, frame: Frame, width: int, height: int) -> list[Line]:
    """Return what the source does not have, and why."""
    lines: list[Line] = [title("not there, and why", width, frame.glyphs)]
    absent = [("WAL", snapshot.wal), ("RAM disk", snapshot.ramdisk), ("Image", snapshot.image)]
    if not isinstance(snapshot.wal, Absent):
        absent += [(name, getattr(snapshot.wal, name)) for name in snapshot.wal.__struct_fields__]
    for name, value in absent:
        if isinstance(value, Absent):
            lines.append(
                ((left(name, 9), "text"), (cut(outside(value.reason), max(width - 9, 0), frame.glyphs), "dim"))
            )
    return lines[:height]


def _quantities(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield each quantity of the metric table and its newest value, in words."""
    for metric in METRICS:
        samples = list(metric.read(snapshot))
        if not samples:
            yield metric.name, "n/a"
            continue
        for sample in samples:
            label = f" {sample.labels[-1]}" if len(samples) > 1 else ""
            if isinstance(sample.value, Histogram):
                shown = f"{format_count(sum(sample.value.counts))} observed"
            elif isinstance(sample.value, PeriodQuantiles):
                shown = "quantiles"
            elif metric.name.endswith("_bytes") or metric.name.endswith("_bytes_total"):
                shown = format_size(sample.value)
            elif metric.kind is Kind.COUNTER and metric.name.endswith("_seconds_total"):
                shown = f"{sample.value:,.1f} s"
            else:
                shown = f"{sample.value:,.0f}"
            yield metric.name + label, shown


def _quantity_lines(rows: list[tuple[str, str]], frame: Frame, width: int, name: str) -> list[Line]:
    lines: list[Line] = [title(name, width, frame.glyphs)]
    for quantity, value in rows:
        room = width - 16
        lines.append(((left(cut(quantity, room, frame.glyphs), room), "text"), (right(value, 16), "bright")))
    return lines
