"""The picker: a folder with its images, told by their first bytes, and synthetic images that can be made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from dashboard.glyphs import Glyphs
from dashboard.screens.dialogs import ListDialog
from dashboard.widgets.event_log import date_and_time
from dashboard.widgets.lines import Line, cut, cut_start, left, outside, right
from engine.units import format_size
from engine.workloads.image_files import FolderEntry, FolderListing, FolderReader

AT_ONCE_SECONDS = 0.2  # a folder that takes longer is shown when it is there
_POLL_SECONDS = 0.1
_WIDEST = 96
_HINT = "enter opens, backspace goes up, esc closes"


@dataclass(frozen=True, slots=True)
class PickedImage:
    """What was picked: a file, or a synthetic image of a layout where there is no path."""

    path: Path | None
    layout: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    note: str
    picked: PickedImage | None = None  # what enter answers
    folder: Path | None = None  # or where it leads


class PickerDialog(ListDialog[PickedImage]):
    """A list with a cursor; answers with what was picked."""

    AROUND = 3
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "choose", "open", show=False),
        Binding("backspace,left", "leave_folder", "up a folder", show=False),
    ]

    def __init__(self, folder: Path, inodes: str, glyphs: Glyphs) -> None:
        """folder: shown first. inodes: of a synthetic image, in words."""
        self._inodes = inodes
        self._reader = FolderReader(folder)
        self._listing: FolderListing | None = None
        super().__init__("open an image", glyphs)

    def on_mount(self) -> None:
        """Show the folder, at once where it is read quickly."""
        self.set_interval(_POLL_SECONDS, self._poll)
        self._show_folder(self._reader)

    def action_choose(self) -> None:
        """Answer with the image under the cursor, or go into the folder."""
        row = self._rows()[self._cursor]
        if row.picked is not None:
            self.dismiss(row.picked)
        elif row.folder is not None:
            self._show_folder(FolderReader(row.folder))

    def action_leave_folder(self) -> None:
        """Show the folder above."""
        self._show_folder(FolderReader(self._reader.path.parent))

    def lay_out(self) -> None:
        """Draw the list, with the cursor in sight."""
        width = max(min(self.app.size.width - 6, _WIDEST), 1)
        rows = self._rows()
        self._cursor = min(max(self._cursor, 0), len(rows) - 1)
        top = self._keep_in_sight()
        path = cut_start(outside(str(self._reader.path)), width, self._glyphs)
        self._body = [((left(path, width), "accent"),)]
        for place, row in enumerate(rows[top : top + self._list_room], top):
            self._body.append(_row_line(row, width, self._glyphs, is_chosen=place == self._cursor))
        problem = "" if self._listing is None else outside(self._listing.problem)
        if problem:  # its end says what is wrong
            self._body += [(), ((cut_start(problem, width, self._glyphs), "bad"),)]
        else:
            self._body += [(), ((cut(self._said(len(rows)), width, self._glyphs), "dim"),)]
        super().lay_out()

    def _said(self, rows: int) -> str:
        listing = self._listing
        if listing is None:
            return "reading the folder"
        place = f"{self._cursor + 1} of {rows}"
        others = f"; {listing.others:,} other files" if listing.others else ""
        return f"{place}; {_HINT}{others}{'; there are more than are shown' if listing.is_cut else ''}"

    def _show_folder(self, reader: FolderReader) -> None:
        self._reader, self._listing = reader, reader.listing(AT_ONCE_SECONDS)
        self._place_cursor()
        self.lay_out()

    def _poll(self) -> None:
        if self._listing is None and (listing := self._reader.listing()) is not None:
            self._listing = listing
            self._place_cursor()
            self.lay_out()

    def _place_cursor(self) -> None:
        """Put the cursor on the newest image of the folder, if it has one."""
        rows = self._rows()
        files = (place for place, row in enumerate(rows) if row.picked is not None and row.picked.path is not None)
        self._cursor, self._top = next(files, 0), 0

    def _rows(self) -> list[_Row]:
        rows = [
            _Row(
                "synthetic image, legacy layout",
                f"{self._inodes} inodes; for every strategy",
                PickedImage(None, "legacy"),
            ),
            _Row("synthetic image, protobuf", f"{self._inodes} inodes", PickedImage(None, "protobuf")),
        ]
        if self._reader.path.parent != self._reader.path:
            rows.append(_Row("..", "the folder above", folder=self._reader.path.parent))
        return rows + [_row(entry) for entry in (self._listing.entries if self._listing is not None else ())]


def _row(entry: FolderEntry) -> _Row:
    name = outside(entry.path.name)
    if entry.kind == "folder":
        return _Row(f"{name}/", "", folder=entry.path)
    when = date_and_time(entry.modified_ns)
    return _Row(name, f"{entry.layout}  {right(format_size(entry.size_bytes), 9)}  {when}", PickedImage(entry.path))


def _row_line(row: _Row, width: int, glyphs: Glyphs, *, is_chosen: bool) -> Line:
    mark = f"{glyphs.arrow} " if is_chosen else "  "
    note = row.note if len(row.note) <= width // 2 else row.note[: max(width // 2, 0)]
    room = max(width - 2 - len(note) - 1, 1)
    name = left(cut(row.name, room, glyphs), room)
    if is_chosen:
        return ((f"{mark}{name} {note}", "tab-open"),)
    is_image = row.picked is not None and row.picked.path is not None
    return ((mark, "text"), (name, "bright" if is_image else "text"), (f" {note}", "dim"))
