"""The page cache of the machine: emptied before a measurement, or filled with somebody else's dirty pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from engine.environment import memory_available_bytes
from engine.storage.contents import opened
from engine.units import GIB, MIB, Bytes

_VM = Path("/proc/sys/vm")
_PIECE = 4 * MIB


def empty_page_cache() -> bool:
    """Write all dirty pages out and forget the clean ones; return whether forgetting them was permitted."""
    os.sync()
    try:
        (_VM / "drop_caches").write_text("1")
    except OSError:
        return False
    return True


def dirty_limit() -> Bytes:
    """Return how many dirty bytes the kernel allows before it makes writers wait; by its documented rule."""
    absolute = _number("dirty_bytes")
    if absolute:
        return Bytes(absolute)
    return Bytes((memory_available_bytes() or GIB) * (_number("dirty_ratio") or 20) // 100)


def write_dirty(path: Path, size: int, is_wanted: Callable[[], bool]) -> int:
    """Write `size` bytes to a new file and leave them dirty; return how many were written. Raises FileTrouble."""
    data, written = os.urandom(_PIECE), 0
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "write other data") as descriptor:
        while written < size and is_wanted():
            written += os.pwrite(descriptor, data[: size - written], written)
    return written


def _number(name: str) -> int:
    try:
        return int((_VM / name).read_text())
    except (OSError, ValueError):
        return 0
