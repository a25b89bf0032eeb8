"""Contenders of several programs: our native handlers, and any operation called from Python threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine.units import Nanoseconds
from engine.workloads.wal import WalCase, WalResult, run_case
from tests.bench.rounds import VALUE_BYTES, Plan

WARM_UP_SECONDS = 0.3
_PATIENCE_SECONDS = 90.0


def handlers(
    plan: Plan, threads: int, *, model: str = "group", device: str = "real", warm_up: float = WARM_UP_SECONDS
) -> WalResult:
    """Run `threads` native handlers on a log of their own; return what `tidegauge run wal` would report."""
    case = WalCase(
        model=model,
        threads=threads,
        device=device,
        value_size_bytes=VALUE_BYTES,
        duration_ns=Nanoseconds(int(plan.seconds * 1e9)),
        warmup_ns=Nanoseconds(int(warm_up * 1e9)),
    )
    with plan.place("log") as path:
        result = run_case(case, path, stop=threading.Event(), progress=lambda _: None)
    if result.error:
        raise RuntimeError(result.error)
    return result


def callers(plan: Plan, threads: int, make: Callable[[int], Callable[[int], object]]) -> float:
    """Call an operation from Python threads, each in a closed loop; return the calls per second of all.

    make: takes a thread's number and returns its operation, which takes the number of the call. The first error ends
    the run and is raised here.
    """
    done = [0] * threads
    ready, stop = threading.Barrier(threads + 1), threading.Event()
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            operation = make(number)
            ready.wait(_PATIENCE_SECONDS)
            is_stopped, count = stop.is_set, 0
            while not is_stopped():
                operation(count)
                count += 1
                done[number] = count
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)
            ready.abort()
            stop.set()

    crew = [threading.Thread(target=run, args=(number,), name=f"caller-{number}") for number in range(threads)]
    for thread in crew:
        thread.start()
    try:
        ready.wait(_PATIENCE_SECONDS)
        stop.wait(WARM_UP_SECONDS)
        before, began = sum(done), time.perf_counter()
        stop.wait(plan.seconds)
        calls, elapsed = sum(done) - before, time.perf_counter() - began
    except threading.BrokenBarrierError:
        calls, elapsed = 0, 1.0
    finally:
        stop.set()
        for thread in crew:
            thread.join(_PATIENCE_SECONDS)
    if errors:
        raise next((error for error in errors if not isinstance(error, threading.BrokenBarrierError)), errors[0])
    return calls / elapsed
