"""Dialogs over a lane's screen: the keys, faults to inject, and a question before one that stops the log."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from dashboard.glyphs import Glyphs
from dashboard.keys import KEYS
from dashboard.widgets.lines import Line, fitted, left, width_of
from dashboard.widgets.pane import Pane
from dashboard.widgets.roles import RoleScreen, role_css
from engine.units import Nanoseconds

Answer = TypeVar("Answer")

STALL_NS = Nanoseconds(500_000_000)


class Dialog(RoleScreen[Answer], ModalScreen[Answer], Generic[Answer]):
    """Lines in a frame, in the middle of the screen; escape closes it."""

    DEFAULT_CSS = """
        Dialog { background: $background 60%; overflow: hidden; }
        Dialog:ansi { background: transparent; }
        Dialog > Pane { background: $tide-raised; }
        """ + role_css("Dialog", "$tide-raised")
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "close", show=False),
        Binding("up,pageup,k", "scroll(-1)", "up", show=False),
        Binding("down,pagedown,j,space", "scroll(1)", "down", show=False),
    ]

    def __init__(self, heading: str, lines: list[Line], glyphs: Glyphs) -> None:
        super().__init__()
        self._heading, self._body, self._glyphs = heading, lines, glyphs
        self._first = 0
        self._pane = Pane(name="dialog")

    def compose(self) -> ComposeResult:
        """One pane holds it all."""
        yield self._pane

    def on_mount(self) -> None:
        """Draw for the first time."""
        self.lay_out()

    def on_resize(self) -> None:
        """Stay in the middle."""
        self.lay_out()

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def action_scroll(self, pages: int) -> None:
        """Show what did not fit."""
        self._first += pages * max(self._room - 1, 1)
        self.lay_out()

    @property
    def _room(self) -> int:
        return max(self.app.size.height - 4, 1)

    def lay_out(self) -> None:
        """Draw the frame and as many lines as fit, from where the reader is."""
        width, height = self.app.size
        room = min(self._room, len(self._body))
        self._first = min(max(self._first, 0), len(self._body) - room)
        inner = min(max((width_of(line) for line in self._body), default=0), max(width - 6, 1))
        rest = len(self._body) - room - self._first
        foot = (
            f" {rest} more: {self._glyphs.up_down} " if rest > 0 else f" {self._glyphs.up_down} " if self._first else ""
        )
        lines = framed(self._heading, self._body[self._first : self._first + room], inner, foot, self._glyphs)
        self._pane.styles.width, self._pane.styles.height = inner + 6, len(lines)
        self._pane.styles.offset = (max((width - inner - 6) // 2, 0), max((height - len(lines)) // 2, 0))
        self._pane.show(lines)


class ListDialog(Dialog[Answer]):
    """A list with a cursor. Whoever draws it brings the cursor between the first row and the last."""

    AROUND = 0  # lines of the body beside the list
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home", "move(-4000000000)", "first", show=False),
        Binding("end", "move(4000000000)", "last", show=False),
    ]

    def __init__(self, heading: str, glyphs: Glyphs) -> None:
        super().__init__(heading, [], glyphs)
        self._cursor = self._top = 0

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._cursor += rows
        self.lay_out()

    def action_page(self, pages: int) -> None:
        """Move the cursor by what fits."""
        self.action_move(pages * max(self._list_room - 1, 1))

    @property
    def _list_room(self) -> int:
        return max(self._room - self.AROUND, 1)

    def _keep_in_sight(self) -> int:
        """Return the first row in sight, so that the cursor is too."""
        self._top = max(min(max(self._top, self._cursor - self._list_room + 1), self._cursor), 0)
        return self._top


class HelpDialog(Dialog[None]):
    """The keys, from their table."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "close", "close", show=False)]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__("keys", help_lines(), glyphs)


class FaultDialog(Dialog[str]):
    """Which fault to inject; answers "stall" or "fail"."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "choose('stall')", "stall", show=False),
        Binding("2", "choose('fail')", "fail", show=False),
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        lines: list[Line] = [
            (("1", "accent"), ("  stall the next sync for 500 ms", "text")),
            (("2", "accent"), ("  fail the next sync with an I/O error; it poisons the log", "text")),
            (),
            (("esc", "accent"), ("  none", "dim")),
        ]
        super().__init__("inject a fault", lines, glyphs)

    def action_choose(self, fault: str) -> None:
        """Answer."""
        self.dismiss(fault)


class ConfirmDialog(Dialog[bool]):
    """A question; answers True for y, and None otherwise."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "yes", show=False),
        Binding("n", "close", "no", show=False),
    ]

    def __init__(self, heading: str, words: list[str], glyphs: Glyphs) -> None:
        lines: list[Line] = [((text, "text"),) for text in words]
        lines += [(), (("y", "accent"), (" yes   ", "text"), ("n", "accent"), (" no", "text"))]
        super().__init__(heading, lines, glyphs)

    def action_agree(self) -> None:
        """Answer yes."""
        self.dismiss(True)


def help_lines() -> list[Line]:
    """Return the table of keys as lines, group by group."""
    lines: list[Line] = []
    for group in dict.fromkeys(key.group for key in KEYS):
        lines += [(), ((group, "title"),)] if lines else [((group, "title"),)]
        lines += [((left(key.shown, 9), "accent"), (key.help, "text")) for key in KEYS if key.group == group]
    return lines


def framed(heading: str, body: list[Line], inner: int, foot: str, glyphs: Glyphs) -> list[Line]:
    """Return lines of `inner` cells in a frame with a heading, six cells wider and two lines higher."""
    top_left, top_right, bottom_left, bottom_right, side = "++++|" if glyphs.plain else "╭╮╰╯│"
    rule = glyphs.rule
    top = f"{rule} {heading} "[: inner + 4]
    return [
        ((top_left, "rule"), (top, "title"), (rule * (inner + 4 - len(top)) + top_right, "rule")),
        *(((side + "  ", "rule"), *fitted(line, inner), ("  " + side, "rule")) for line in body),
        ((bottom_left + rule * (inner + 4 - len(foot)), "rule"), (foot, "dim"), (bottom_right, "rule")),
    ]
