"""Work cut in pieces, done by all threads: each takes the next piece when it is free.

Which thread does a piece never shows in the result: a piece knows its place beforehand. Of several failures the one
of the first piece is raised, whatever the order in which threads met them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from engine.fsimage.errors import LoadCancelled
from engine.measure.phases import Phase


def run_pieces(count: int, work: Callable[[int], None], *, threads: int, phase: Phase, cancel: threading.Event) -> None:
    """Call work(0) ... work(count - 1), spread over `threads` threads, this one among them; return when all are done.

    phase: gets a child for each thread, for its processor time. cancel: looked at before each piece; `work` looks at
    it too where a piece takes long. Raises LoadCancelled, or what `work` raised on the first piece that failed.
    """
    lock = threading.Lock()  # guards the three below
    following, failed_at, failure = 0, count, None

    def turn() -> None:
        nonlocal following, failed_at, failure
        while True:
            with lock:
                index = following
                if index >= min(count, failed_at) or cancel.is_set():
                    return
                following += 1
            try:
                work(index)
            except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
                with lock:
                    if index < failed_at:
                        failed_at, failure = index, error

    def helper(number: int) -> None:
        with phase.phase(f"thread {number}"):
            turn()

    helpers = [
        threading.Thread(target=helper, args=(number,), name=f"fsimage-{number}")
        for number in range(2, min(threads, count) + 1)
    ]
    for thread in helpers:
        thread.start()
    try:
        with phase.phase("thread 1"):
            turn()
    finally:
        for thread in helpers:
            thread.join()  # a piece is some milliseconds of work
    if failure is not None:
        raise failure
    if cancel.is_set():
        raise LoadCancelled
