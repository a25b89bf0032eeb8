"""What the image commands print: lines for people, and the same facts as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dashboard.cli.text_table import Column, render
from engine.errors import printable
from engine.units import format_count, format_duration, format_size

if TYPE_CHECKING:
    from engine.fsimage.load import Loaded
    from engine.fsimage.outline import Outline
    from engine.measure.phases import PhaseSnapshot

_WIDTH = 100


def pairs(values: Mapping[str, str]) -> list[str]:
    """Return one line a pair, values below each other."""
    width = max(map(len, values), default=0)
    return [f"{name:<{width}}  {value}" for name, value in values.items()]


def short_codec(codec: str) -> str:
    """Return a codec class's last name, `none` where there is none."""
    return printable(codec.rpartition(".")[2]) or "none"


def outline_lines(outline: Outline) -> list[str]:
    """Return what `image info` prints."""
    facts = {
        "format": "protobuf" if outline.is_protobuf else "legacy",
        "layout": f"{outline.layout_version} ({outline.layout})",
        "codec": short_codec(outline.codec),
        "size": f"{format_size(outline.size_bytes)} ({outline.size_bytes:,} bytes)",
        "MD5": outline.md5 or "no .md5 file",
        **{name: f"{value}" for name, value in outline.header.items()},
        **{name: f"{count:,}" for name, count in outline.counts.items()},
    }
    lines = pairs(facts)
    if outline.sections:
        columns = [
            Column("section", tuple(printable(s.name)[:40] for s in outline.sections), left=True),
            Column("offset", tuple(f"{s.offset:,}" for s in outline.sections), rank=2),
            Column("bytes", tuple(f"{s.stored:,}" for s in outline.sections)),
            Column("parts", tuple(f"{s.parts}" if s.parts > 1 else "" for s in outline.sections), rank=1),
        ]
        lines += ["", *render(columns, _WIDTH)]
    return lines


def phase_lines(phases: Iterable[PhaseSnapshot]) -> list[str]:
    """Return a table of phases: time, count, rate; steps of a phase are indented."""
    rows = [
        (depth, phase)
        for top in phases
        for depth, phase in top.walk()
        if depth <= 2 and not phase.name.startswith("thread ")
    ]
    if not rows:
        return []

    def rate(phase: PhaseSnapshot) -> str:
        seconds = phase.elapsed_ns / 1e9
        return f"{format_count(phase.count / seconds)}/s" if phase.count and seconds else ""

    return render(
        [
            Column("phase", tuple("  " * depth + printable(phase.name) for depth, phase in rows), left=True),
            Column("time", tuple(format_duration(phase.elapsed_ns) for _, phase in rows)),
            Column("count", tuple(f"{phase.count:,}" if phase.count else "" for _, phase in rows)),
            Column("rate", tuple(rate(phase) for _, phase in rows)),
        ],
        _WIDTH,
    )


def phase_json(phase: PhaseSnapshot) -> dict[str, Any]:
    """Return a phase and what is inside it."""
    return {
        "name": phase.name,
        "state": phase.state,
        "count": phase.count,
        "total": phase.total,
        "elapsed_seconds": phase.elapsed_ns / 1e9,
        "cpu_seconds": None if phase.cpu_ns is None else phase.cpu_ns / 1e9,
        "steps": [phase_json(child) for child in phase.children],
    }


def load_facts(loaded: Loaded) -> dict[str, Any]:
    """Return the figures of a loaded image."""
    from engine.fsimage.columns import Kind
    from engine.fsimage.tree import count_kinds

    namespace = loaded.namespace
    kinds = count_kinds(namespace.inodes)
    rows = namespace.rows
    return {
        "inodes": rows,
        "files": kinds[Kind.FILE],
        "directories": kinds[Kind.DIRECTORY],
        "symlinks": kinds[Kind.SYMLINK],
        "blocks": int(namespace.blocks.length.size),
        "content_bytes": int(namespace.blocks.length.sum()),
        "open_files": len(namespace.extras.open_files),
        "name_bytes": int(namespace.names.size),
        "column_bytes": namespace.column_bytes(),
        "bytes_per_inode": namespace.column_bytes() / rows if rows else 0.0,
    }
