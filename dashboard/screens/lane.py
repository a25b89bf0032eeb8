"""A lane's screen: panes in the places of layout.py, filled by the lane.

The app calls `draw` on the open screen alone, four times a second at most, and says which clocks have come round:
text always, plots at every second frame, tables at every fourth. A screen asks History for what it shows and hands
lines to panes; it has no clock, does no I/O and computes no rates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from dashboard.frame import Frame
from dashboard.keys import KEYS
from dashboard.screens.layout import PLACES, Box, lane_boxes
from dashboard.terminal import LEAST_HEIGHT, LEAST_WIDTH
from dashboard.verdict import Verdict
from dashboard.widgets.bars import verdict_line, words_in_a_box
from dashboard.widgets.event_log import event_lines
from dashboard.widgets.lines import Line, text_of
from dashboard.widgets.pane import Pane
from dashboard.widgets.roles import RoleScreen, role_css

_FILLS = {"header": "bar-text", "footer": "bar-text"}

Draw = Callable[[int, int], list[Line]]


class LaneScreen(RoleScreen[None]):
    """Panes by place. A lane overrides the draw_ methods; what it leaves alone stays empty."""

    LANE: ClassVar[str] = ""
    AUTO_FOCUS = ""
    DEFAULT_CSS = "LaneScreen { overflow: hidden; }\n" + role_css("LaneScreen", "$background")

    def __init__(self) -> None:
        super().__init__(name=self.LANE)
        self._panes = {place: Pane(name=place, fill=_FILLS.get(place, "text")) for place in PLACES}
        self._notice = Pane(name="notice")
        self._boxes: dict[str, Box] = {}
        self._arranged = (0, 0)

    def compose(self) -> ComposeResult:
        """Mount every pane; stand_panes() says where each stands."""
        yield from self._panes.values()
        yield self._notice

    def draw(self, frame: Frame, *, plots: bool, tables: bool) -> None:
        """Draw what the clocks ask for."""
        if not self.stand_panes():
            return
        self._notice.display = False
        self.draw_text(frame)
        if plots:
            self.draw_plots(frame)
        if tables:
            self.draw_tables(frame)

    def draw_words(self, words: list[Line], frame: Frame) -> None:
        """Show words in the middle instead of figures: before the engine runs."""
        if self.stand_panes():
            width, height = self._arranged
            self._stand(self._notice, Box(0, 1, width, height - 2))
            self._notice.show(words_in_a_box(words, width, height - 2, frame.glyphs))

    def draw_bars(self, header: Callable[[int], Line], footer: Callable[[int], Line]) -> None:
        """Draw header and footer, each a function of the width."""
        if self.stand_panes():
            self.put("header", lambda width, _: [header(width)])
            self.put("footer", lambda width, _: [footer(width)])

    def draw_text(self, frame: Frame) -> None:
        """Draw state, headline and verdict."""

    def draw_plots(self, frame: Frame) -> None:
        """Draw plots and distributions."""

    def draw_tables(self, frame: Frame) -> None:
        """Draw tables; every lane has the event log."""
        self.put("table_right", lambda w, h: event_lines(frame.history.events(frame.end_ns), w, h, frame.glyphs))

    def put(self, place: str, draw: Draw) -> None:
        """Fill a place, if it is shown at this size, by a function of its width and height."""
        box = self._boxes.get(place)
        if box is not None:
            self._panes[place].show(draw(box.width, box.height))

    def put_verdict(self, verdict: Verdict, frame: Frame) -> None:
        """Fill the verdict's place."""
        self.put("verdict", lambda width, _: [verdict_line(verdict, width, frame.glyphs)])

    def as_text(self) -> str:
        """Return what is shown as plain text, place after place."""
        shown = (
            [self._notice] if self._notice.display else [self._panes[place] for place in PLACES if place in self._boxes]
        )
        return "\n".join(text_of(pane.lines) for pane in shown if pane.lines)

    def stand_panes(self) -> bool:
        """Put every pane where it belongs at this size; return whether the terminal is large enough."""
        width, height = self.app.size
        if (width, height) != self._arranged:
            self._arranged = (width, height)
            large = width >= LEAST_WIDTH and height >= LEAST_HEIGHT
            self._boxes = lane_boxes(width, height) if large else {}
            for place, pane in self._panes.items():
                pane.display = place in self._boxes
                pane.show([])
                if place in self._boxes:
                    self._stand(pane, self._boxes[place])
            if not large:
                self._stand(self._notice, Box(0, 0, width, height))
                self._notice.show(too_small(width, height))
        return bool(self._boxes)

    def _stand(self, pane: Pane, box: Box) -> None:
        pane.display = True
        pane.styles.offset = (box.x, box.y)
        pane.styles.width, pane.styles.height = box.width, box.height


def own_bindings(lane: str) -> list[BindingType]:
    """Return the keys that a lane's screen has for itself; their actions are the app's, so the palette has them too."""
    return [Binding(key.keys, f"app.{key.action}", key.label, show=False) for key in KEYS if key.lane == lane]


def too_small(width: int, height: int) -> list[Line]:
    """Return what a terminal that is too small shows: what is needed and what was found."""
    from dashboard.glyphs import PLAIN

    words: list[Line] = [
        (("terminal too small", "warn-word"),),
        ((f"needed {LEAST_WIDTH} x {LEAST_HEIGHT}", "text"),),
        ((f"found  {width} x {height}", "text"),),
    ]
    return words_in_a_box(words, width, height, PLAIN)
