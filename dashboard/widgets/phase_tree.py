"""The phases of a load as a tree with bars: how far each is, and how long it took.

phases ──────────────────────────── 14 of 19
→ LoadingFsImage  ━━━━━━━━━━╸───  62 %  310 ms
→   Inodes        ━━━━━━━━━━╸───  62 %  309 ms
      scan        ━━━━━━━━━━━━━━ 100 %  129 ms
→     columns     ━━━━━━╸───────  44 %  180 ms
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.glyphs import Glyphs
from dashboard.widgets.lines import Line, Span, cut, gauge, left, outside, right, title
from engine.snapshot import PhaseRow
from engine.units import format_count, format_duration

COMPILING = "CompilingKernels"
_HIDDEN_NS = 50_000_000  # loading compiled kernels is no news; compiling them is, and takes seconds
_PERCENT, _TIME, _RATE, _LEAST_BAR = 6, 9, 10, 5
_ROLES = {"pending": "dim", "running": "bar", "complete": "good", "failed": "bad"}


def phase_lines(rows: Sequence[PhaseRow], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Lay phases out in `width` by `height` cells; where there are too many, those that say least go."""
    shown = shown_phases(rows, max(height - 1, 0))
    note = "" if len(shown) == len(rows) else f"{len(shown)} of {len(rows)}"
    lines: list[Line] = [title("phases", width, glyphs, note=note)]
    if not rows:
        return [*lines, (("nothing is loaded yet", "dim"),)]
    names = [_name(row, glyphs) for row in shown]
    name_width = max(min(max(map(len, names)) + 1, max(width // 2, 8), width - _PERCENT - _TIME), 1)
    with_rate = width >= name_width + _PERCENT + _TIME + _RATE + 12
    room = max(width - name_width - _PERCENT - _TIME - _RATE * with_rate - 1, 0)
    for row, name in zip(shown, names, strict=True):
        role = _ROLES[row.state]
        line: list[Span] = [(left(cut(name, name_width - 1, glyphs), name_width), _name_role(row))]
        if room >= _LEAST_BAR:
            line += [*gauge(min(max(row.done, 0.0), 1.0), room, role, glyphs), (" ", "text")]
        line.append((right(_percent(row), _PERCENT), "text" if row.state == "running" else "dim"))
        if with_rate:
            line.append((right(_rate(row), _RATE), "dim"))
        time = format_duration(row.elapsed_ns) if row.state != "pending" and row.elapsed_ns >= 0 else ""
        line.append((right(time, _TIME), "bright" if row.state != "pending" else "dim"))
        lines.append(tuple(line))
    return lines


def shown_phases(rows: Sequence[PhaseRow], room: int) -> list[PhaseRow]:
    """Return the rows that fit, in their order: what runs or failed first, then the tops, then the longest."""
    kept = [
        place
        for place, row in enumerate(rows)
        if not (row.name == COMPILING and row.state == "complete" and row.elapsed_ns < _HIDDEN_NS)
    ]
    if len(kept) > room:

        def need(place: int) -> tuple[bool, bool, int]:
            row = rows[place]
            return row.state not in ("running", "failed"), row.depth > 0, -row.elapsed_ns

        kept = sorted(sorted(kept, key=need)[:room])
    return [rows[place] for place in kept]


def _name(row: PhaseRow, glyphs: Glyphs) -> str:
    mark = f"{glyphs.arrow} " if row.state == "running" else "x " if row.state == "failed" else "  "
    return f"{mark}{'  ' * min(max(row.depth, 0), 6)}{outside(row.name)}"


def _name_role(row: PhaseRow) -> str:
    return {"pending": "dim", "running": "bright", "complete": "text", "failed": "bad-word"}[row.state]


def _percent(row: PhaseRow) -> str:
    if row.state == "pending" or (row.state == "running" and row.done <= 0):
        return ""
    return "failed" if row.state == "failed" else f"{min(max(row.done, 0.0), 1.0) * 100:.0f} %"


def _rate(row: PhaseRow) -> str:
    if row.count <= 0 or row.elapsed_ns <= 0 or row.count < 1000:
        return ""
    return f"{format_count(row.count * 1e9 / row.elapsed_ns)}/s"
