"""Which files make up a log, and what their header blocks say; a folder of anything else is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.errors import quoted
from engine.storage.contents import file_size, read_file
from engine.storage.folders import LOCK_NAME, TEMPORARY, list_folder
from engine.wal.errors import NotALog
from engine.wal.segment import HEADER_BLOCK, BadHeader, SegmentHeader, decode_header, segment_number

BROKEN = ".broken"
_BROKEN_NAME = re.compile(r"(?P<segment>[0-9]+\.wal)(\.[0-9]+)?\.broken")


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a log's folder by what they are; segments by number, which need not be in use."""

    segments: tuple[tuple[int, Path], ...]
    temporary: tuple[Path, ...]
    broken: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A segment file before its records are read."""

    number: int
    path: Path
    size: int
    raw: bytes  # the header block, shorter where the file is
    header: SegmentHeader | None  # None: prepared, or bad
    bad: BadHeader | None


def list_log(folder: Path) -> Listing:
    """Sort the files of a log's folder. Raises NotALog for other files, or where there is no folder; FileTrouble."""
    if not folder.is_dir():
        raise NotALog(folder, found="it is a file" if folder.exists() else "there is no such folder")
    segments, temporary, broken = [], [], []
    for entry in list_folder(folder):
        path = folder / entry.name
        number = segment_number(entry.name)
        copy = _BROKEN_NAME.fullmatch(entry.name)
        if not entry.is_file:
            raise NotALog(folder, found=f"{quoted(entry.name)} is not a regular file")
        if number is not None:
            segments.append((number, path))
        elif entry.name.endswith(TEMPORARY) and segment_number(entry.name.removesuffix(TEMPORARY)) is not None:
            temporary.append(path)
        elif copy is not None and segment_number(copy["segment"]) is not None:
            broken.append(path)
        elif entry.name != LOCK_NAME:
            raise NotALog(folder, found=f"it holds {quoted(entry.name)}")
    return Listing(tuple(sorted(segments)), tuple(temporary), tuple(broken))


def read_block(number: int, path: Path) -> Block:
    """Read and decode a segment's header block. Raises FileTrouble."""
    raw = read_file(path, limit=HEADER_BLOCK).tobytes()
    try:
        header, bad = decode_header(raw), None
    except BadHeader as error:
        header, bad = None, error
    return Block(number, path, file_size(path), raw, header, bad)


def free_broken_name(path: Path) -> Path:
    """Return the name for a copy of a segment that is about to be cut: none of an earlier copy."""
    candidate = path.with_name(path.name + BROKEN)
    count = 1
    while candidate.exists():
        count += 1
        candidate = path.with_name(f"{path.name}.{count}{BROKEN}")
    return candidate


def refuse_unused(folder: Path) -> None:
    """Raise NotALog for a folder in which no log was ever opened, FileTrouble where it cannot be read."""
    listing = list_log(folder)
    if not (listing.segments or listing.broken or (folder / LOCK_NAME).exists()):
        raise NotALog(folder, found="it holds no segment")
