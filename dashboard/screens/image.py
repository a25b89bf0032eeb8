"""The Image screen: how a load goes, phase by phase and thread by thread, and then what the image holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from textual.binding import BindingType

from dashboard.frame import Frame
from dashboard.image_verdict import image_name, image_verdict
from dashboard.image_window import (
    RUNNING,
    bytes_per_second,
    inodes_per_second,
    rate_line,
    share_done,
    thread_use,
    usable_points,
)
from dashboard.screens.lane import LaneScreen, own_bindings
from dashboard.widgets.bars import state_line
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.lines import Line, absent_lines, cut, cut_start, gauge, left, outside, right, title
from dashboard.widgets.phase_tree import phase_lines
from dashboard.widgets.plot import DOTS_PER_CELL, Plot, canvas_width, plot_lines
from engine.snapshot import Absent, ImageProgress, ImageRun, ImageSnapshot, ImageSummary, PhaseRow
from engine.units import format_count, format_duration, format_size

IMAGE_MOODS = {"making": "good", "loading": "good", "loaded": "good", "failed": "bad"}
_NAMES = ("inodes", "inodes/s", "MB/s", "elapsed", "image size", "threads")
_NARROW = 58  # of a table: from here on a directory's files fit beside its bytes

Shown = ImageSnapshot | Absent


class ImageScreen(LaneScreen):
    """The fsimage loader."""

    LANE = "image"
    BINDINGS: ClassVar[list[BindingType]] = own_bindings("image")

    def draw_text(self, frame: Frame) -> None:
        """Draw state, headline and verdict."""
        image = frame.image()
        self.put("state", lambda width, _: [image_state_line(image, frame, width)])
        self.put("headline", lambda w, h: headline_lines(image_figures(image), w, h, frame.glyphs))
        self.put("plot_left", lambda w, h: phase_lines(_phases(image), w, h, frame.glyphs))
        self.put_verdict(image_verdict(image), frame)

    def draw_plots(self, frame: Frame) -> None:
        """Draw rates over the load's time, its threads, and what the image holds."""
        image = frame.image()
        self.put("plot_right", lambda w, h: inodes_plot(image, frame, w, h))
        self.put("distribution_left", lambda w, h: bytes_plot(image, frame, w, h))
        self.put("distribution_middle", lambda w, h: image_thread_lines(image, frame, w, h))
        self.put("distribution_right", lambda w, h: namespace_lines(image, frame, w, h))

    def draw_tables(self, frame: Frame) -> None:
        """Draw the largest directories beside the events."""
        super().draw_tables(frame)
        image = frame.image()
        self.put("table_left", lambda w, h: largest_lines(image, frame, w, h))


def image_state_line(image: Shown, frame: Frame, width: int) -> Line:
    """Return the lane's state, what it loads, and what the next load takes where that differs."""
    bullet = frame.glyphs.bullet
    if isinstance(image, Absent):
        reason = image.reason.removeprefix("not running: ")
        return state_line((bullet, "dim"), ("not running", "dim-word"), [reason], "", width, frame.glyphs)
    mood = IMAGE_MOODS.get(image.state, "dim")
    is_idle = image.state == "idle" and not image.inodes
    name = image_name(image.next_image) if is_idle or image.is_synthetic else image_name(image.image)
    strategy, threads = (image.next_strategy, image.next_threads) if is_idle else (image.strategy, image.threads)
    facts = [name, outside(strategy), _threads(strategy, threads)]
    if image.layout:
        facts.append(f"layout {outside(image.layout)}")
    if image.codec:
        facts.append(outside(image.codec))
    end = ""
    if not is_idle and (image.next_strategy, image.next_threads) != (image.strategy, image.threads):
        end = f"next: {image.next_strategy}, {_threads(image.next_strategy, image.next_threads)}"
    return state_line((bullet, mood), (image.state, f"{mood}-word"), facts, end, width, frame.glyphs)


def image_figures(image: Shown) -> list[Figure]:
    """Return the headline."""
    if isinstance(image, Absent) or not image.epoch:
        return [Figure(name, "n/a", "", rank, "dim") for rank, name in enumerate(_NAMES)]
    rate, through = inodes_per_second(image), bytes_per_second(image)
    busy = sum(use.share for use in thread_use(image) if use.name.isdigit())
    done = f"{share_done(image) * 100:.0f} % done" if image.state in RUNNING else "of the load"
    summary = image.summary
    figures = [
        Figure("inodes", format_count(max(image.inodes, 0)), _of_stated(image), 0),
        Figure("inodes/s", "n/a" if rate is None else format_count(rate), "on average", 1),
        Figure("MB/s", "n/a" if through is None else f"{through / 1e6:,.0f}", "of the file", 2),
        Figure("elapsed", format_duration(max(image.elapsed_ns, 0)), done, 3),
        Figure("threads", f"{busy * 100:.0f} %", "of a core", 4),
        Figure("image size", format_size(max(image.size_bytes, 0)), "on disk", 5, short="size"),
    ]
    if isinstance(summary, ImageSummary) and image.inodes > 0:
        figures += [
            Figure("files", format_count(max(summary.files, 0)), f"{format_count(max(summary.blocks, 0))} blocks", 6),
            Figure("content", format_size(max(summary.content_bytes, 0)), "one copy", 7),
            Figure("bytes/inode", f"{summary.column_bytes / image.inodes:.1f}", "in memory", 8, short="B/inode"),
        ]
    figures.append(Figure("loads", str(max(image.lane_loads, 0)), _other_loads(image), 9))
    return figures


def inodes_plot(image: Shown, frame: Frame, width: int, height: int) -> list[Line]:
    """Plot inodes/s over the time of the load."""
    return _load_plot("inodes/s, every pass", image, lambda p: p.inodes, "water", format_count, frame, width, height)


def bytes_plot(image: Shown, frame: Frame, width: int, height: int) -> list[Line]:
    """Plot MB/s over the time of the load."""

    def megabytes(value: float) -> str:
        return format_count(value / 1e6)

    return _load_plot("MB/s, every pass", image, lambda p: p.read_bytes, "swell", megabytes, frame, width, height)


def _load_plot(
    name: str,
    image: Shown,
    pick: Callable[[ImageProgress], int],
    colours: str,
    label: Callable[[float], str],
    frame: Frame,
    width: int,
    height: int,
) -> list[Line]:
    if isinstance(image, Absent):
        return [title(name, width, frame.glyphs), *absent_lines(image, width, frame.glyphs)]
    values = rate_line(image, pick, DOTS_PER_CELL * canvas_width(width))
    finite = values[np.isfinite(values)]
    if not finite.size:
        words = "a load is plotted here, over its own time" if image.state == "idle" else "no progress to plot yet"
        return [title(name, width, frame.glyphs), ((cut(words, width, frame.glyphs), "dim"),)]
    end = usable_points(image)[-1].elapsed_ns
    note = f"peak {label(float(finite.max()))}"
    plot = Plot(name, values, note, colours, "0 s", format_duration(end / 2), format_duration(end), label)
    return plot_lines(plot, width, height, frame.glyphs)


def image_thread_lines(image: Shown, frame: Frame, width: int, height: int) -> list[Line]:
    """Return how busy each thread is, and below that the loads so far, for comparing strategies."""
    glyphs = frame.glyphs
    if isinstance(image, Absent):
        return [title("threads", width, glyphs), *absent_lines(image, width, glyphs)]
    uses = thread_use(image)
    note = "last 0.5 s" if image.state in RUNNING else "of the load"
    lines: list[Line] = [title("threads", width, glyphs, note=note if uses else "")]
    if not uses:
        lines.append((("no load yet", "dim"),))
    runs = list(image.runs)
    room = max(height - 1 - (min(len(runs), 5) + 2 if runs and height >= 8 else 0), 2)
    bar = max(width - 4 - 6 - 10 - 1, 3)
    for use in uses if len(uses) <= room else uses[: room - 1]:
        lines.append(
            (
                (left(outside(use.name), 4), "text"),
                *gauge(use.share, bar, "bar", glyphs),
                (right(f"{use.share * 100:.0f} %", 7), "bright"),
                (right(format_duration(max(use.cpu_ns, 0)), 10), "dim"),
            )
        )
    if len(uses) > room:
        lines.append(((f"{len(uses) - room + 1} more threads", "dim"),))
    if runs and height - len(lines) >= 3:
        lines += [(), title("loads", width, glyphs, note=f"{len(runs)}")]
        lines += [_run_line(run, width) for run in reversed(runs[-(height - len(lines)) :])]
    return lines[:height]


def _run_line(run: ImageRun, width: int) -> Line:
    how = f"{outside(run.strategy)} x{run.threads}" if run.strategy == "columnar" else outside(run.strategy)
    if run.outcome == "complete" and run.elapsed_ns > 0:
        what = f"{format_count(max(run.inodes, 0) * 1e9 / run.elapsed_ns)}/s"
    else:
        what = run.outcome
    role = {"complete": "bright", "cancelled": "dim", "failed": "bad-word"}[run.outcome]
    room = max(width - 10 - 9, 4)
    return (
        (left(how, room), "text"),
        (right(what, 10), role),
        (right(format_duration(max(run.elapsed_ns, 0)), 9), "dim"),
    )


def namespace_lines(image: Shown, frame: Frame, width: int, height: int) -> list[Line]:
    """Return what the loaded image holds."""
    lines: list[Line] = [title("namespace", width, frame.glyphs)]
    if isinstance(image, Absent):
        return [*lines, *absent_lines(image, width, frame.glyphs)]
    summary = image.summary
    if isinstance(summary, Absent):
        words = "it is being loaded" if image.state in RUNNING else outside(summary.reason)
        if image.state == "loaded":
            words = f"{outside(image.strategy)} is timed and keeps nothing"
        return [*lines, ((cut(words, width, frame.glyphs), "dim"),)]
    for name, value, role in _namespace_facts(image, summary)[: max(height - 1, 0)]:
        value_width = max(width - 15, 1)
        lines.append(((left(name, 15), "dim"), (cut(value, value_width, frame.glyphs), role)))
    return lines


def _namespace_facts(image: ImageSnapshot, summary: ImageSummary) -> list[tuple[str, str, str]]:
    mean = summary.content_bytes / summary.files if summary.files > 0 else 0.0
    whole = "yes" if not summary.trouble_count else f"no: {summary.trouble_count:,} contradictions"
    md5 = {"none": "no .md5 file", "checking": f"checking, {format_size(image.md5_bytes)}"}.get(image.md5, image.md5)
    return [
        ("files", f"{summary.files:,}", "bright"),
        ("directories", f"{summary.directories:,}", "bright"),
        ("blocks", f"{summary.blocks:,}", "bright"),
        ("bytes", f"{format_size(summary.content_bytes)}, {format_size(mean)} a file", "bright"),
        ("whole", whole, "warn-word" if summary.trouble_count else "text"),
        ("MD5", md5, "bad-word" if image.md5 == "mismatch" else "text"),
        ("memory", f"{format_size(summary.column_bytes)} + {format_size(summary.name_bytes)} names", "text"),
        ("symlinks", f"{summary.symlinks:,}", "text"),
        ("open files", f"{summary.open_files:,}", "text"),
        ("HDFS snapshots", f"{summary.hdfs_snapshots:,}, {summary.snapshot_only:,} inodes only there", "text"),
    ]


def largest_lines(image: Shown, frame: Frame, width: int, height: int) -> list[Line]:
    """Return the directories that hold most themselves; what is below them is not theirs."""
    glyphs = frame.glyphs
    lines: list[Line] = [title("largest directories, by their own files", width, glyphs)]
    summary = image if isinstance(image, Absent) else image.summary
    if isinstance(summary, Absent):
        return [*lines, *absent_lines(summary, width, glyphs)]
    with_files = width >= _NARROW
    room = max(width - 11 - 13 * with_files, 1)
    for directory in summary.largest[: max(height - 1, 0)]:
        files = (right(f"{format_count(max(directory.files, 0))} files", 13), "dim") if with_files else ("", "dim")
        lines.append(
            (
                (left(cut_start(outside(directory.path), room, glyphs), room), "text"),
                (right(format_size(max(directory.size_bytes, 0)), 11), "bright"),
                files,
            )
        )
    return lines


def _phases(image: Shown) -> tuple[PhaseRow, ...]:
    return () if isinstance(image, Absent) else image.phases


def _threads(strategy: str, threads: int) -> str:
    count = threads if strategy == "columnar" else 1  # the others are one thread's, as the NameNode's was
    return f"{count} {'thread' if count == 1 else 'threads'}"


def _of_stated(image: ImageSnapshot) -> str:
    total = next((row.total for row in image.phases if row.name == "Inodes" and row.total), None)
    return f"of {format_count(total)}" if total is not None and total > image.inodes else "loaded"


def _other_loads(image: ImageSnapshot) -> str:
    parts = [
        f"{count} {word}"
        for count, word in ((image.lane_failed_loads, "failed"), (image.lane_cancelled_loads, "cancelled"))
        if count > 0
    ]
    return ", ".join(parts)
