"""Room on a disk, and the part of it that we leave alone."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import printable
from engine.storage.contents import reported
from engine.units import GIB, Bytes, format_size


def disk_room(folder: Path) -> tuple[Bytes, Bytes]:
    """Return (total, free to us) bytes of the file system that holds `folder`. Raises FileTrouble."""
    with reported(folder, "see how much room there is"):
        numbers = os.statvfs(folder)
    return Bytes(numbers.f_blocks * numbers.f_frsize), Bytes(numbers.f_bavail * numbers.f_frsize)


def kept_free(total: int) -> Bytes:
    """Return what is left free of a disk of `total` bytes: 5 % or 1 GiB, whichever is less."""
    return Bytes(min(total // 20, GIB))


def shortage(folder: Path, needed: int) -> str | None:
    """Return why `needed` bytes must not be written below `folder`, or None where they may. Raises FileTrouble."""
    total, free = disk_room(folder)
    if free - needed >= kept_free(total):
        return None
    text = f"{format_size(free)} are free and {format_size(kept_free(total))} of them stay free"
    return f"{printable(str(folder))}: {format_size(needed)} can be needed, {text}"
