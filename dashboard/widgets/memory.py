"""What the RAM disk's memory holds: one bar of its whole capacity, and a line for each part.

memory ────────── 412 MiB used + 24 MiB reserved of 1 GiB
██████████▒▒▒▒▒▒▒▒▒▒▒▒▒░··──────────────────────────────
█ at risk     180 MiB   18 %
▒ persisted   232 MiB   23 %
░ reserved     24 MiB    2 %

Each part has a mark of its own, so that the bar says the same without colour.
"""

from __future__ import annotations

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, left, right, title
from engine.snapshot import RamdiskSnapshot
from engine.units import format_size

_NAME, _SIZE, _SHARE = 11, 9, 7
_ROLES = {"at risk": "warn", "persisted": "good", "reserved": "accent", "spare": "dim", "free": "rule"}
_MARKS = {"at risk": "█", "persisted": "▒", "reserved": "░", "spare": "·", "free": "─"}
_PLAIN_MARKS = {"at risk": "#", "persisted": "+", "reserved": "=", "spare": ".", "free": "-"}


def memory_parts(ram: RamdiskSnapshot) -> dict[str, int]:
    """Return bytes by part; they add up to the capacity where the snapshot agrees with itself."""
    used, reserved = max(ram.used_bytes, 0), max(ram.reserved_bytes, 0)
    # The backlog also counts blocks that fell back to disk and are not synced yet: no memory is theirs.
    at_risk = min(max(ram.backlog_bytes, 0), used)
    spare = max(ram.spare_bytes, 0)
    free = max(ram.capacity_bytes - used - reserved - spare, 0)
    return {"at risk": at_risk, "persisted": used - at_risk, "reserved": reserved, "spare": spare, "free": free}


def memory_lines(ram: RamdiskSnapshot, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Lay the bar and as many parts as fit out in `width` by `height` cells."""
    used = format_size(max(ram.used_bytes, 0))
    capacity = format_size(max(ram.capacity_bytes, 0))
    note = f"{used} used + {format_size(max(ram.reserved_bytes, 0))} reserved of {capacity}"
    if len(note) + 12 > width:
        note = f"{used} of {capacity}"
    parts = memory_parts(ram)
    whole = sum(parts.values()) or 1
    lines: list[Line] = [title("memory", width, glyphs, note=note), memory_bar(ram, width, glyphs)]
    marks = _PLAIN_MARKS if glyphs.plain else _MARKS
    for name, size in parts.items():
        lines.append(
            (
                (f"{marks[name]} ", _ROLES[name]),
                (left(name, _NAME), "text"),
                (right(format_size(size), _SIZE), "bright"),
                (right(f"{100 * size / whole:.0f} %", _SHARE), "dim"),
                (f"  {_HELP[name]}" if width >= _NAME + _SIZE + _SHARE + 30 else "", "dim"),
            )
        )
    return lines[:height]


def memory_bar(ram: RamdiskSnapshot, width: int, glyphs: Glyphs) -> Line:
    """Return one bar of the whole capacity; a part that is there shows at least one cell, where all of them fit."""
    parts = memory_parts(ram)
    marks = _PLAIN_MARKS if glyphs.plain else _MARKS
    whole = sum(parts.values()) or 1
    spans: list[Span] = []
    room, to_come = width, sum(size > 0 for name, size in parts.items() if name != "free")
    for name, size in parts.items():
        to_come -= size > 0 and name != "free"
        cells = min(max(round(width * size / whole), int(size > 0)), max(room - to_come, 0))
        if name == "free":
            cells = room
        spans.append((marks[name] * cells, _ROLES[name]))
        room -= cells
    return tuple(spans)


_HELP = {
    "at risk": "not on disk yet",
    "persisted": "evicted when needed",
    "reserved": "being written",
    "spare": "kept for reuse",
    "free": "",
}
