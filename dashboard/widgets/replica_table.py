"""The replicas: those at risk first, the newest of them on top.

replicas ──────────────────────────── 23 at risk
file              block       size state        age
stream-00000012       3      8 MiB at risk    1.2 s
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, absent_lines, cut_start, left, outside, right, title
from engine.snapshot import Absent, ReplicaRow
from engine.units import format_duration, format_size

_BLOCK, _SIZE, _STATE, _AGE, _PLACE, _READS, _LEAST_NAME = 6, 10, 13, 9, 15, 7, 17
_ROLES = {"at risk": "warn", "persisted": "good", "corrupt": "bad", "lost": "bad", "not synced": "warn"}


def replica_lines(
    rows: Sequence[ReplicaRow] | Absent, width: int, height: int, glyphs: Glyphs, *, note: str = ""
) -> list[Line]:
    """Lay replicas out in `width` by `height` cells; their place, reads and size go where it is narrow."""
    lines: list[Line] = [title("replicas", width, glyphs, note=note)]
    if isinstance(rows, Absent):
        return lines + absent_lines(rows, width, glyphs)
    if not rows:
        return [*lines, (("none yet", "dim"),)]
    with_size = width >= _LEAST_NAME + _BLOCK + _STATE + _AGE + _SIZE
    with_place = width >= _LEAST_NAME + _BLOCK + _STATE + _AGE + _SIZE + _PLACE
    with_reads = width >= _LEAST_NAME + _BLOCK + _STATE + _AGE + _SIZE + _PLACE + _READS
    name = max(width - _BLOCK - _STATE - _AGE - _SIZE * with_size - _PLACE * with_place - _READS * with_reads, 4)

    def row(file: str, block: str, size: str, place: str, state: Span, age: str, reads: str, role: str) -> Line:
        spans: list[Span] = [(left(cut_start(file, name - 1, glyphs), name), role), (right(block, _BLOCK), role)]
        if with_size:
            spans.append((right(size, _SIZE), role))
        spans.append(("  " + left(state[0], _STATE - 2), state[1]))
        if with_place:
            spans.append((left(place, _PLACE), role))
        spans.append((right(age, _AGE), role))
        if with_reads:
            spans.append((right(reads, _READS), role))
        return tuple(spans)

    lines.append(row("file", "block", "size", "in", ("state", "dim"), "age", "reads", "dim"))
    for replica in rows[: max(height - 2, 0)]:
        lines.append(
            row(
                outside(replica.file),
                f"{replica.block:,}",
                format_size(max(replica.size_bytes, 0)),
                replica.place,
                (replica.state, _ROLES.get(replica.state, "dim")),
                format_duration(max(replica.age_ns, 0)),
                f"{replica.reads:,}",
                "text" if replica.state != "persisted" else "dim",
            )
        )
    return lines[:height]
