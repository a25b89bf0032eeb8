"""Where an image's bytes go: to the file, and beside that to its MD5, on a thread of its own.

Hashing costs more than writing to the page cache (0.6 against 2 GB/s here), so neither waits for the other; a buffer is
released once both are done with it.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable

from engine.fsimage.columns import U8
from engine.storage.publishing import NewFile

_AHEAD = 16  # writes that the hash may be behind


def _nothing() -> None:
    pass


class ImageOutput:
    """Appends to a new file and hashes what it appends; for one thread. Use as a context manager."""

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self._digest = hashlib.md5(usedforsecurity=False)
        self._queue: queue.Queue[tuple[bytes | memoryview, Callable[[], None]] | None] = queue.Queue(_AHEAD)
        self._thread = threading.Thread(target=self._hash, name="fsimage-save-md5", daemon=True)

    def __enter__(self) -> ImageOutput:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def offset(self) -> int:
        """Bytes written so far."""
        return self._file.size

    def write(self, data: bytes | memoryview | U8, done: Callable[[], None] = _nothing) -> None:
        """Append bytes; `done` is called, on another thread, when they may be overwritten."""
        view = data if isinstance(data, bytes | memoryview) else data.data
        self._file.write(view)
        self._queue.put((view, done))

    def md5(self) -> str:
        """Return the hash of everything in hex; nothing may be written after it."""
        self._end()
        return self._digest.hexdigest()

    def _end(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _hash(self) -> None:
        while (item := self._queue.get()) is not None:
            self._digest.update(item[0])
            item[1]()
