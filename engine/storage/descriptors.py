"""Descriptors that kernels write and sync through; closed by whoever opened them."""

from __future__ import annotations

import os
from pathlib import Path

from engine.storage.contents import reported


def open_folder(folder: Path) -> int:
    """Open a folder for opening files below it and for syncing it. Raises FileTrouble."""
    with reported(folder, "open the folder"):
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_for_writing(path: Path) -> int:
    """Open an existing file to write and sync it. Raises FileTrouble."""
    with reported(path, "open for writing"):
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)


def close_descriptor(descriptor: int) -> None:
    """Close a descriptor; -1 is none."""
    if descriptor >= 0:
        os.close(descriptor)


def new_log_id() -> bytes:
    """Return 16 random bytes."""
    return os.urandom(16)
