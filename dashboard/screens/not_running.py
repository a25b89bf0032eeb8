"""A lane that the source does not run: it says so, and why, in the places where its figures would stand."""

from __future__ import annotations

from dashboard.frame import Frame
from dashboard.keys import SCREEN_TITLES
from dashboard.screens.lane import LaneScreen
from dashboard.verdict import Verdict
from dashboard.widgets.bars import state_line
from dashboard.widgets.headline import Figure, headline_lines
from dashboard.widgets.lines import Line, cut, outside, title
from engine.snapshot import Absent

# What each place will hold: its name, and the headline's.
_PLACES = {
    "ramdisk": {
        "plot_left": "backlog: bytes at risk",
        "plot_right": "persisted bytes/s",
        "distribution_left": "age of the backlog",
        "distribution_middle": "write latency",
        "distribution_right": "where blocks are",
        "table_left": "replicas",
    },
    "image": {
        "plot_left": "inodes/s",
        "plot_right": "bytes/s",
        "distribution_left": "phases",
        "distribution_middle": "sections",
        "distribution_right": "inodes by kind",
        "table_left": "images",
    },
}
_FIGURES = {
    "ramdisk": ("backlog", "at risk", "oldest", "time to drain", "RAM used", "fallbacks"),
    "image": ("inodes", "inodes/s", "image size", "phase", "elapsed", "bytes/inode"),
}


class _NotRunningScreen(LaneScreen):
    def draw_text(self, frame: Frame) -> None:
        """Say that nothing runs."""
        glyphs, reason = frame.glyphs, _reason(self.LANE, frame)
        self.put(
            "state",
            lambda width, _: [
                state_line((glyphs.bullet, "dim"), ("not running", "dim-word"), [reason], "", width, glyphs)
            ],
        )
        figures = [Figure(name, "n/a", "", rank, "dim") for rank, name in enumerate(_FIGURES[self.LANE])]
        self.put("headline", lambda w, h: headline_lines(figures, w, h, glyphs))
        for place in ("distribution_left", "distribution_middle", "distribution_right"):
            self._put_reason(place, frame)
        self.put_verdict(Verdict("dim", f"{SCREEN_TITLES[self.LANE]} is not running: {reason}"), frame)

    def draw_plots(self, frame: Frame) -> None:
        """Say so where plots would be."""
        self._put_reason("plot_left", frame)
        self._put_reason("plot_right", frame)

    def draw_tables(self, frame: Frame) -> None:
        """Say so where its table would be; the events are everyone's."""
        super().draw_tables(frame)
        self._put_reason("table_left", frame)

    def _put_reason(self, place: str, frame: Frame) -> None:
        def lines(width: int, height: int) -> list[Line]:
            name = _PLACES[self.LANE][place]
            text = cut("not running", width, frame.glyphs)
            return [title(name, width, frame.glyphs), *[()] * ((height - 2) // 2), ((text.center(width), "dim"),)]

        self.put(place, lines)


class RamDiskScreen(_NotRunningScreen):
    """The RAM disk."""

    LANE = "ramdisk"


class ImageScreen(_NotRunningScreen):
    """The fsimage loader."""

    LANE = "image"


def _reason(lane: str, frame: Frame) -> str:
    snapshot = frame.history.snapshot
    absent = (
        Absent("no snapshot yet") if snapshot is None else snapshot.ramdisk if lane == "ramdisk" else snapshot.image
    )
    # The screen says "not running" itself.
    return outside(absent.reason.removeprefix("not running: "))
