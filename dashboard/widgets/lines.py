"""Lines of text with roles: what every pane is made of, before any terminal is involved.

A span is text and the role it is drawn in; a line is spans. Functions that lay figures out return lines, so they are
pure and tests read them as text. Widths are counted in cells, since a path or a message from outside may be wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from dashboard.glyphs import Glyphs
from engine.errors import printable
from engine.snapshot import Absent

Span = tuple[str, str]  # text, role
Line = tuple[Span, ...]

BLANK: Line = ()


def width_of(line: Line) -> int:
    """Return the cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


def text_of(lines: Iterable[Line]) -> str:
    """Return lines as plain text, without trailing blanks."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def outside(text: str) -> str:
    """Return text from outside made safe to draw: no control characters."""
    return printable(text)


def cut(text: str, width: int, glyphs: Glyphs) -> str:
    """Return text cut to `width` cells, with an ellipsis where something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + glyphs.ellipsis if width > 0 else ""


def cut_start(text: str, width: int, glyphs: Glyphs) -> str:
    """Return the end of a text that is too long: of a path, the end tells most."""
    if cell_len(text) <= width:
        return text
    kept = text
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return glyphs.ellipsis + kept if width > 0 else ""


def left(text: str, width: int) -> str:
    """Return text padded or cut on its right to `width` cells."""
    return set_cell_size(text, max(width, 0))


def right(text: str, width: int) -> str:
    """Return text padded on its left to `width` cells, cut on its right if longer."""
    missing = width - cell_len(text)
    return " " * missing + text if missing >= 0 else set_cell_size(text, max(width, 0))


def spread(start: Line, end: Line, width: int) -> Line:
    """Return a line with `start` at its left and `end` at its right edge; `end` is left out where both do not fit."""
    gap = width - width_of(start) - width_of(end)
    return (*start, (" " * gap, "text"), *end) if gap >= 1 else start


def beside(columns: Sequence[tuple[Sequence[Line], int]], height: int, *, gap: int = 2) -> list[Line]:
    """Return blocks of lines side by side; each block has its width, short blocks are filled with blanks."""
    rows: list[Line] = []
    for y in range(height):
        row: list[Span] = []
        for lines, width in columns:
            line = fitted(lines[y] if y < len(lines) else BLANK, width)
            row += [*line, (" " * gap, "text")]
        rows.append(tuple(row[:-1]))
    return rows


def fitted(line: Line, width: int) -> Line:
    """Return a line of exactly `width` cells."""
    spans: list[Span] = []
    room = width
    for text, role in line:
        size = cell_len(text)
        if size > room:
            spans.append((set_cell_size(text, room), role))
            room = 0
            break
        spans.append((text, role))
        room -= size
    if room > 0:
        spans.append((" " * room, "text"))
    return tuple(spans)


def title(text: str, width: int, glyphs: Glyphs, *, note: str = "") -> Line:
    """Return a pane's first line: its name, a rule, and a note at its right end where it fits."""
    name = cut(text, width, glyphs)
    room = width - cell_len(name) - 1
    end = f" {note}" if note and cell_len(note) + 4 <= room else ""
    rule = glyphs.rule * max(room - cell_len(end), 0)
    return ((name, "title"), (" ", "text"), (rule, "rule"), (end, "dim"))


def absent_lines(absent: Absent, width: int, glyphs: Glyphs) -> list[Line]:
    """Return what stands in place of figures a source does not have."""
    return [((cut(outside(absent.reason), width, glyphs), "dim"),)]
