"""What the app hands the open screen, frame by frame: everything a screen may know."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.glyphs import Glyphs
from dashboard.history import History
from dashboard.ramdisk_window import RamdiskWindow
from dashboard.wal_window import WalWindow
from engine.snapshot import Absent, ImageSnapshot
from engine.units import format_duration

RATE_SECONDS = 1.0  # headline rates follow a key press
STATISTICS_SECONDS = 5.0  # quantiles, distributions and shares want more


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame's view. end_ns: the instant looked at on History's time line, None for now."""

    history: History
    glyphs: Glyphs
    end_ns: int | None
    span_seconds: int
    source_name: str
    taken: int

    @property
    def wall_ns(self) -> int:
        """The time of day of the instant looked at; 0 before the first snapshot."""
        point = self.history.at(self.end_ns)
        return point.wall_ns if point is not None else 0

    def rates(self) -> WalWindow | Absent:
        """Return the log over the last second."""
        return self.history.window(RATE_SECONDS, self.end_ns)

    def statistics(self) -> WalWindow | Absent:
        """Return the log over the last seconds, for what needs many commits."""
        return self.history.window(STATISTICS_SECONDS, self.end_ns)

    def ramdisk_rates(self) -> RamdiskWindow | Absent:
        """Return the RAM disk over the last second."""
        return self.history.ramdisk.window(RATE_SECONDS, self.end_ns)

    def ramdisk_statistics(self) -> RamdiskWindow | Absent:
        """Return the RAM disk over the last seconds."""
        return self.history.ramdisk.window(STATISTICS_SECONDS, self.end_ns)

    def image(self) -> ImageSnapshot | Absent:
        """Return the image lane at the instant looked at; it holds the progress of its own load."""
        return self.history.image.at(self.end_ns)

    @property
    def statistics_note(self) -> str:
        """How long that is, for titles."""
        return f"last {STATISTICS_SECONDS:.0f} s"

    def time_labels(self) -> tuple[str, str, str]:
        """Return the labels of a plot's time axis: its start, its middle, its end."""
        minus = self.glyphs.minus
        start, middle = (format_duration(part * 1e9) for part in (self.span_seconds, self.span_seconds / 2))
        return f"{minus}{start}", f"{minus}{middle}", "now" if self.end_ns is None else "here"
