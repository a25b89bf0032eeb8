"""A loaded image as a person goes through it: one directory at a time, and of that as many entries as are looked at.

Nothing is prepared: children are a view into the columns, names are decoded when they are asked for. Names are as the
image has them, so whoever shows one makes it harmless first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.workloads.image_job import LoadedImage, shown_path

_NAME_SHOWN = 300  # characters: a legacy name may have thousands

EntryKind = Literal["directory", "file", "link"]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One inode. size_bytes, files: of everything below a directory; a file's own size, and 0."""

    row: int
    name: str
    kind: EntryKind
    size_bytes: int
    files: int
    owner: str
    group: str
    mode: int
    modified_ms: int  # since 1970; what an image says, which may be anything
    replication: int
    blocks: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class TreeListing:
    """A part of a directory: `entries` are its children from number `first` on, of `total`."""

    row: int
    path: str
    above: int | None  # row of the parent; None at the top
    itself: TreeEntry
    total: int
    first: int
    entries: tuple[TreeEntry, ...]


def list_children(loaded: LoadedImage, row: int | None, first: int, count: int) -> TreeListing:
    """Return at most `count` children of a directory, in name order; of the root where `row` is None."""
    from engine.fsimage.tree import path_of

    namespace = loaded.namespace
    at = namespace.root if row is None else min(max(row, 0), namespace.rows - 1)
    children = namespace.children(at)
    start = min(max(first, 0), max(len(children) - 1, 0))
    shown = children[start : start + max(count, 0)]
    above = int(namespace.inodes.parent[at])
    return TreeListing(
        row=at,
        path=shown_path(path_of(namespace, at)),
        above=above if above >= 0 else None,
        itself=_entry(loaded, at),
        total=len(children),
        first=start,
        entries=tuple(_entry(loaded, int(child)) for child in shown),
    )


def place_of(loaded: LoadedImage, row: int) -> int:
    """Return which child of its directory an inode is, so that a list can open at it; 0 at the top."""
    namespace = loaded.namespace
    above = int(namespace.inodes.parent[row])
    if above < 0:
        return 0
    places = (namespace.children(above) == row).nonzero()[0]
    return int(places[0]) if places.size else 0


def _entry(loaded: LoadedImage, row: int) -> TreeEntry:
    from engine.fsimage.columns import Flag, Kind

    namespace, inodes = loaded.namespace, loaded.namespace.inodes
    kind, permission = namespace.kind(row), int(inodes.permission[row])
    below = loaded.sums.below(row) if kind is Kind.DIRECTORY else None
    name = namespace.name(row)[: 4 * _NAME_SHOWN].decode("utf-8", "backslashreplace")
    return TreeEntry(
        row=row,
        name=name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "...",
        kind="directory" if kind is Kind.DIRECTORY else "file" if kind is Kind.FILE else "link",
        size_bytes=(0 if below is None else below.size) if kind is Kind.DIRECTORY else namespace.size(row),
        files=0 if below is None else below.files,
        owner=namespace.strings.user(permission),
        group=namespace.strings.group(permission),
        mode=permission & 0o7777,
        modified_ms=int(inodes.mtime[row]),
        replication=int(inodes.replication[row]),
        blocks=int(inodes.block_start[row + 1]) - int(inodes.block_start[row]),
        is_open=bool(int(inodes.flags[row]) & Flag.UNDER_CONSTRUCTION),
    )
