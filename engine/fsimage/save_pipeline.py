"""Work done by several threads whose results leave in order, with memory for a fixed number of them.

    worker: take a buffer, take the next job, fill the buffer        (kernels: Python's lock is free meanwhile)
    caller: wait for job 0, hand it on; wait for job 1, hand it on; ...

A worker takes its buffer first and its job second. The other way round, all buffers could be with later jobs while the
one that everybody waits for has none:
    worker A takes job 7, waits for a buffer
    workers fill 8, 9, 10: every buffer is full and waits for 7
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from engine.fsimage.save_errors import SaveCancelled

T = TypeVar("T")
SPARE = 3  # buffers beyond one a worker: what is being written and hashed while workers go on
_LOOK = 0.05  # seconds between two looks at `cancel`


class Slot:
    """A buffer's place in the pipeline; `release` gives it back, on any thread, once."""

    def __init__(self, free: queue.SimpleQueue[Slot]) -> None:
        self._free = free
        self.memory: dict[str, object] = {}  # what a worker keeps in it from job to job

    def release(self) -> None:
        """Let a worker use it again."""
        self._free.put(self)


class Pipeline(Generic[T]):
    """Runs jobs in order of their results. One caller; use as a context manager."""

    def __init__(self, jobs: Sequence[Callable[[Slot], T]], *, threads: int, cancel: threading.Event) -> None:
        self._jobs, self._cancel = jobs, cancel
        self._lock = threading.Lock()  # guards _following and _results
        self._ready = threading.Condition(self._lock)
        self._following = 0
        self._results: dict[int, tuple[Slot, T] | BaseException] = {}
        self._stop = threading.Event()
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        for _ in range(threads + SPARE):
            self._free.put(Slot(self._free))
        self._workers = [
            threading.Thread(target=self._work, name=f"fsimage-save-{number}", daemon=True)
            for number in range(1, min(threads, len(jobs)) + 1)
        ]

    def __enter__(self) -> Pipeline[T]:
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for worker in self._workers:
            worker.join()

    def result(self, index: int) -> tuple[Slot, T]:
        """Wait for a job's result; the slot is the caller's to release. Raises what the job raised, or SaveCancelled.

        Ask for 0, 1, 2 ... in order.
        """
        with self._ready:
            while index not in self._results and not self._cancel.is_set():
                self._ready.wait(_LOOK)
            if self._cancel.is_set():
                raise SaveCancelled
            found = self._results.pop(index)
        if isinstance(found, BaseException):
            raise found
        return found

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                slot = self._free.get(timeout=_LOOK)
            except queue.Empty:
                continue
            with self._lock:
                index = self._following
                if index == len(self._jobs):
                    return
                self._following += 1
            result: tuple[Slot, T] | BaseException
            try:
                result = slot, self._jobs[index](slot)
            except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
                result = error
            with self._ready:
                self._results[index] = result
                self._ready.notify()
