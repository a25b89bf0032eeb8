"""The evictor: frees memory ahead of need, so that a writer seldom has to.

Below the low watermark it evicts one replica after another, the least recently read first, and sleeps until memory
runs low again or something became evictable. A writer that needs memory sooner evicts for itself (core.reserve).
"""

from __future__ import annotations

import threading

from engine.ramdisk.core import Core

_JOIN_SECONDS = 10.0


class Evictor:
    """The thread."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._thread = threading.Thread(target=self._run, name="evictor", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> bool:
        """Wait for the end, which the core's closing brings; return whether it came in time."""
        self._thread.join(_JOIN_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        core = self._core
        while True:
            if core.evict_ahead():
                continue
            with core.guard:
                if core.is_closing:
                    return
                if core.memory.free >= core.low_watermark or core.tracker.evictable.first is None:
                    core.low.wait()
