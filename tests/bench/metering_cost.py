"""What do the meters cost? 50 handlers with and without their commits being metered, in turn on one running log.

Switching a field of the running handlers' meter rows compares two windows half a second apart on the same files,
which a disk that drifts by tens of per cent leaves meaningful. Meters of syncs and writes stay on: there are few.
"""

from __future__ import annotations

import statistics
import threading
import time

from engine.units import Bytes, Txid
from engine.wal.log import Log
from engine.workloads.crew import Crew, HandlerSettings
from tests.bench.rounds import VALUE_BYTES, plan, say, show_target

THREADS = 50
WINDOW_SECONDS = 0.25


def main() -> None:
    with plan(__doc__, short=1.0, full=6.0) as how, how.place("log") as path, Log.open(path) as log:
        crew, idle = Crew(log, HandlerSettings(value_size_bytes=Bytes(VALUE_BYTES))), threading.Event()
        crew.resize(THREADS)
        idle.wait(1.0)
        pairs = max(int(how.rounds * how.seconds / WINDOW_SECONDS), 5)
        rates: dict[int, list[float]] = {0: [], 1: []}
        for pair in range(pairs):
            for unmetered in (0, 1) if pair % 2 == 0 else (1, 0):  # neither always goes first
                log.shared.meters["unmetered"] = unmetered
                rates[unmetered].append(_rate(log, crew, idle))
        crew.resize(0)
        if crew.result():
            raise RuntimeError(f"a handler ended with {crew.result()}")
        metered, unmetered = rates[0], rates[1]
        cost = 1 - statistics.median(a / b for a, b in zip(metered, unmetered, strict=True))
        say(f"metered     {statistics.median(metered):10,.0f} ops/s, median of {pairs} windows")
        say(f"unmetered   {statistics.median(unmetered):10,.0f} ops/s")
        show_target(f"{THREADS} handlers: per cent of ops/s that metering costs", 100 * cost, most=3)


def _rate(log: Log, crew: Crew, idle: threading.Event) -> float:
    log.checkpoint(Txid(log.durable_txid))
    idle.wait(0.02)  # what was in flight at the switch
    before, began = crew.records().sum(), time.perf_counter()
    idle.wait(WINDOW_SECONDS)
    return float((crew.records().sum() - before) / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
