"""Waiting in tests: for a condition with a deadline, never for a length of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE = 20.0  # seconds; what hangs should fail, and a busy machine should not
_BETWEEN_LOOKS = 0.002


def wait_for(condition: Callable[[], T], *, deadline: float = DEADLINE, what: str = "") -> T:
    """Return the first true value of `condition`; fail after `deadline` seconds, naming what was waited for."""
    never = threading.Event()
    give_up = time.monotonic() + deadline
    while not (value := condition()):
        if time.monotonic() > give_up:
            raise AssertionError(f"waited {deadline:g} s for {what or condition}; it is still {value!r}")
        never.wait(_BETWEEN_LOOKS)
    return value


def run_threads(*targets: Callable[[], object], deadline: float = DEADLINE) -> list[object]:
    """Run each target in a thread of its own, all at once; return their results in order.

    The first exception of a target is raised here. A thread still running at the deadline fails the test, by name.
    """
    results: list[object] = [None] * len(targets)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = targets[index]()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(index,), name=f"target-{index}", daemon=True)
        for index in range(len(targets))
    ]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    if errors:
        raise errors[0]
    running = [thread.name for thread in threads if thread.is_alive()]
    assert not running, f"still running after {deadline:g} s: {', '.join(running)}"
    return results
