"""Folders as a picker shows them: which files are images, told by their first bytes and never by their names.

Reading a folder may take long, on a network or with a hundred thousand files in it, so FolderReader does it on a
thread of its own and stops at MOST names.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from engine.errors import FileTrouble, TidegaugeError
from engine.storage.contents import read_file, reported

MOST = 5_000  # names looked at
_MAGIC = b"HDFSIMG1"  # as engine.fsimage.container has it; here without loading that
_LEGACY = range(-51, 0)

EntryKind = Literal["folder", "image", "other"]


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One name in a folder. layout: "protobuf" or "legacy -18" for an image."""

    path: Path
    kind: EntryKind
    size_bytes: int
    modified_ns: int  # since 1970
    layout: str = ""


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A folder: images first, the newest on top; then folders by name; other files are counted."""

    path: Path
    entries: tuple[FolderEntry, ...]
    others: int
    is_cut: bool  # there are more than MOST names
    problem: str = ""


def layout_at(path: Path) -> str:
    """Return what kind of image a file is, by its first bytes; "" where it is none. Raises FileTrouble."""
    head = read_file(path.resolve(), limit=8).tobytes()
    if head == _MAGIC:
        return "protobuf"
    version = int.from_bytes(head[:4], "big", signed=True) if len(head) == 8 else 0
    return f"legacy {version}" if version in _LEGACY else ""


def list_folder(path: Path) -> FolderListing:
    """Return what a folder holds. Raises FileTrouble where it cannot be read."""
    entries: list[FolderEntry] = []
    with reported(path, "list it"), os.scandir(path) as names:
        found = list(islice(names, MOST + 1))
    for name in found[:MOST]:
        with suppress(FileTrouble, OSError, ValueError):  # one that cannot be looked at is no image
            entries.append(_entry(path / name.name, name.stat()))
    images = sorted((e for e in entries if e.kind == "image"), key=lambda entry: -entry.modified_ns)
    folders = sorted((e for e in entries if e.kind == "folder"), key=lambda entry: entry.path.name)
    others = min(len(found), MOST) - len(images) - len(folders)
    return FolderListing(path, (*images, *folders), others, is_cut=len(found) > MOST)


class FolderReader:
    """Lists one folder on a thread of its own; ask `listing` until it is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listing: FolderListing | None = None
        self._thread = threading.Thread(target=self._run, name="folder-reader", daemon=True)
        self._thread.start()

    def listing(self, timeout: float = 0.0) -> FolderListing | None:
        """Return the folder, waiting at most `timeout` seconds; one that cannot be read holds nothing and says why."""
        self._thread.join(timeout)
        return self._listing

    def _run(self) -> None:
        try:
            self._listing = list_folder(self.path)
        except TidegaugeError as trouble:
            self._listing = FolderListing(self.path, (), 0, is_cut=False, problem=str(trouble))


def _entry(path: Path, status: os.stat_result) -> FolderEntry:
    if stat.S_ISDIR(status.st_mode):
        return FolderEntry(path, "folder", 0, status.st_mtime_ns)
    layout = layout_at(path) if stat.S_ISREG(status.st_mode) and status.st_size >= 8 else ""
    return FolderEntry(path, "image" if layout else "other", status.st_size, status.st_mtime_ns, layout)
