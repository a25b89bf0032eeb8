"""Going through a loaded image's tree: one directory at a time, and of that only the rows that are in sight.

Each drawing asks the lane for what is shown now, so a directory of a million children costs no more than one of ten.
Names come from the image and may hold anything: they are made harmless before they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType

from dashboard.glyphs import Glyphs
from dashboard.screens.dialogs import ListDialog
from dashboard.sources import ImageControls
from dashboard.widgets.event_log import date_and_time
from dashboard.widgets.lines import Line, cut, cut_start, left, outside, right
from engine.snapshot import Absent
from engine.units import format_count, format_size
from engine.workloads.image_tree import TreeEntry, TreeListing

_HINT = "enter opens, backspace goes up, esc closes"
_SIZE, _FILES, _OWNER, _MODE, _DATE = 11, 9, 18, 11, 18
_KINDS = {"directory": "d", "file": "-", "link": "l"}


class BrowserDialog(ListDialog[None]):
    """A directory with a cursor, over the whole screen."""

    AROUND = 4
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "enter", "open", show=False),
        Binding("backspace,left", "go_up", "up a directory", show=False),
        Binding("b", "close", "close", show=False),
    ]

    def __init__(self, image: str, controls: ImageControls, glyphs: Glyphs) -> None:
        super().__init__(image, glyphs)
        self._controls = controls
        self._row: int | None = None  # of the directory shown; None for the root

    def action_enter(self) -> None:
        """Go into the directory under the cursor."""
        listing = self._controls.list_children(self._row, self._cursor, 1)
        if not isinstance(listing, Absent) and listing.entries and listing.entries[0].kind == "directory":
            self._row, self._cursor, self._top = listing.entries[0].row, 0, 0
            self.lay_out()

    def action_go_up(self) -> None:
        """Go to the directory above, to where this one stands in it."""
        listing = self._controls.list_children(self._row, 0, 0)
        if isinstance(listing, Absent) or listing.above is None:
            return
        self._cursor = self._top = self._controls.place_of(listing.row)
        self._row = listing.above
        self.lay_out()

    def lay_out(self) -> None:
        """Draw what is in sight."""
        width, room = max(self.app.size.width - 8, 1), self._list_room
        listing = self._controls.list_children(self._row, self._keep_in_sight(), room)
        if isinstance(listing, Absent):
            self._body = [((left(cut(outside(listing.reason), width, self._glyphs), width), "dim"),)]
        else:
            if self._cursor >= listing.total or self._cursor < 0:
                self._cursor = min(max(self._cursor, 0), max(listing.total - 1, 0))
                listing = self._again(room, listing)
            self._body = browser_lines(listing, self._cursor, width, room, self._glyphs)
        super().lay_out()

    def _again(self, room: int, listing: TreeListing) -> TreeListing:
        found = self._controls.list_children(self._row, self._keep_in_sight(), room)
        return listing if isinstance(found, Absent) else found


def browser_lines(listing: TreeListing, cursor: int, width: int, room: int, glyphs: Glyphs) -> list[Line]:
    """Lay a directory out in `width` cells and `room` rows, and lines above and below that say where one is."""
    columns = _columns(width)
    name_width = max(width - 2 - sum(size for _, size, _ in columns), 1)
    head = "  " + left("name", name_width) + "".join(right(heading, size) for heading, size, _ in columns)
    path = cut_start(outside(listing.path), width, glyphs)
    lines: list[Line] = [((left(path, width), "accent"),), ((left(head, width), "dim"),)]
    for place, entry in enumerate(listing.entries[:room], listing.first):
        name = outside(entry.name) + ("/" if entry.kind == "directory" else "")
        mark = f"{glyphs.arrow} " if place == cursor else "  "
        shown = mark + left(cut(name, name_width - 1, glyphs), name_width)
        cells = [(right(cut(value(entry), size - 1, glyphs), size), role(entry)) for _, size, (value, role) in columns]
        if place == cursor:
            lines.append(((shown + "".join(text for text, _ in cells), "tab-open"),))
        else:
            lines.append(((shown, "bright" if entry.kind == "directory" else "text"), *cells))
    lines += [()] * (room - min(len(listing.entries), room))
    if not listing.total:
        lines[2] = (("  empty", "dim"),)
    chosen = next((e for place, e in enumerate(listing.entries, listing.first) if place == cursor), listing.itself)
    lines.append(((cut(_details(chosen), width, glyphs), "text"),))
    position = f"{cursor + 1:,} of {listing.total:,}" if listing.total else "0 of 0"
    below = f"{format_size(listing.itself.size_bytes)} in {listing.itself.files:,} files below"
    lines.append(((cut(f"{position}; {below}; {_HINT}", width, glyphs), "dim"),))
    return lines


_Cell = tuple[Callable[[TreeEntry], str], Callable[[TreeEntry], str]]


def _columns(width: int) -> list[tuple[str, int, _Cell]]:
    """Return the columns that fit beside 24 cells of a name: heading, width, what stands there."""

    def dim(_: TreeEntry) -> str:
        return "dim"

    every: list[tuple[str, int, _Cell]] = [
        ("bytes", _SIZE, (lambda e: format_size(e.size_bytes), lambda _: "bright")),
        ("files", _FILES, (lambda e: format_count(e.files) if e.kind == "directory" else "", dim)),
        ("mode", _MODE, (mode_text, dim)),
        ("owner:group", _OWNER, (lambda e: outside(f"{e.owner}:{e.group}"), dim)),
        ("modified", _DATE, (lambda e: date_and_time(e.modified_ms * 1_000_000), dim)),
    ]
    room, kept = width - 26, []
    for column in every:
        if column[1] <= room:
            kept.append(column)
            room -= column[1]
    return kept


def mode_text(entry: TreeEntry) -> str:
    """Return kind and permissions as `ls` writes them."""
    bits = "".join(letter if entry.mode >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx"))
    if entry.mode & 0o1000:
        bits = bits[:8] + ("t" if bits[8] == "x" else "T")
    return _KINDS[entry.kind] + bits


def _details(entry: TreeEntry) -> str:
    parts = [f"inode at row {entry.row:,}", mode_text(entry), outside(f"{entry.owner}:{entry.group}")]
    if entry.kind == "file":
        parts += [f"{entry.size_bytes:,} bytes", f"{entry.blocks:,} blocks", f"replication {entry.replication}"]
        if entry.is_open:
            parts.append("being written")
    parts.append(date_and_time(entry.modified_ms * 1_000_000))
    return ", ".join(parts)
