"""The names of the write-thread models, and the threads that some of them need."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import BadValue, UnknownChoice
from engine.wal.commit import run_async_notifier, run_async_syncer, run_async_writer
from engine.wal.control import stop_threads
from engine.wal.state import GROUP, HANDLER, HANDLER_RECHECK, MAX_SYNCERS, PIPELINE

MODEL_NAMES = ("group", "pipeline:1", "pipeline:5", "handler", "handler-recheck")
_CODES = {"group": GROUP, "pipeline": PIPELINE, "handler": HANDLER, "handler-recheck": HANDLER_RECHECK}
_JOIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WriteModel:
    """A write-thread model as asked for."""

    name: str
    code: int
    syncers: int = 0

    @property
    def threads(self) -> int:
        """Return how many threads of its own it runs."""
        return self.syncers + 2 if self.code == PIPELINE else 0


def parse_model(text: str) -> WriteModel:
    """Read `group`, `pipeline:N`, `handler` or `handler-recheck`. Raises UnknownChoice or BadValue."""
    name, colon, count = text.partition(":")
    if name not in _CODES or (colon and name != "pipeline") or (name == "pipeline" and not colon):
        raise UnknownChoice(what="write-thread model", given=text, choices=MODEL_NAMES)
    if name != "pipeline":
        return WriteModel(name, _CODES[name])
    if not re.fullmatch(r"[0-9]{1,3}", count) or not 1 <= int(count) <= MAX_SYNCERS:
        allowed = f"pipeline:N with N from 1 to {MAX_SYNCERS} AsyncSyncers"
        raise BadValue(what="write-thread model", given=text, allowed=allowed, example="pipeline:5")
    return WriteModel(f"pipeline:{int(count)}", PIPELINE, int(count))


class ModelThreads:
    """The running threads of one model: AsyncWriter, AsyncSyncers, AsyncNotifier, or none."""

    def __init__(
        self,
        model: WriteModel,
        log: npt.NDArray[np.void],
        device: npt.NDArray[np.void],
        buffers: npt.NDArray[np.uint8],
        meters: npt.NDArray[np.void],
        first_row: int,
    ) -> None:
        """Prepare the threads; each writes a meter row from `first_row` on that is its alone."""
        self._log = log
        kernels: list[tuple[str, Any, tuple[Any, ...]]] = []
        if model.code == PIPELINE:
            kernels.append(("AsyncWriter", run_async_writer, (log[0], device[0], buffers, meters, first_row)))
            kernels.append(("AsyncNotifier", run_async_notifier, (log[0],)))
            for k in range(model.syncers):
                row = first_row + 1 + k
                kernels.append((f"AsyncSyncer-{k}", run_async_syncer, (log[0], device[0], meters, row, k)))
        self._threads = [
            threading.Thread(target=run, args=arguments, name=f"wal-{name}", daemon=True)
            for name, run, arguments in kernels
        ]

    def start(self) -> None:
        """Start them."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        """End them once their work is done; return whether all ended in time (a hung disk may keep one)."""
        stop_threads(self._log[0], 1)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                return False
        return True
