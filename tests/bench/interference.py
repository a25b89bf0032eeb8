"""What does the rest of the process take from 50 handlers? The screen, a scrape a second, a Python thread that spins.

Each is a process of its own with the same engine in it, measured from outside by two snapshots; `alone` is an engine
that nobody looks at. The screen is the real dashboard on a pseudo-terminal of 160 by 45.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.bench.programs import Program, dashboard, engine_alone
from tests.bench.rounds import Plan, plan, ratio, show_rates, show_target, take_turns

ALONE, BUSY = "alone", "a busy Python thread"
SCRAPED, SCREEN, BOTH = "scraped every second", "screen", "screen, scraped every second"
WARM_UP_SECONDS = 1.5
SCRAPE_SECONDS = 1.0

Opener = Callable[[Path], AbstractContextManager[Program]]


def main() -> None:
    with plan(__doc__, short=2.0, full=6.0) as how:
        contenders: dict[str, tuple[Opener, bool]] = {
            ALONE: (engine_alone, False),
            BUSY: (lambda folder: engine_alone(folder, "--busy"), False),
            SCRAPED: (engine_alone, True),
            SCREEN: (dashboard, False),
            BOTH: (dashboard, True),
        }
        outcome = take_turns(
            {name: (lambda made=made: _rate(how, *made)) for name, made in contenders.items()}, how.rounds
        )
        show_rates(outcome.found, outcome.skipped, against=ALONE)
        for name, least in ((SCREEN, 0.95), (BUSY, 0.65)):
            if name in outcome.found:
                kept = ratio(outcome.found[name], outcome.found[ALONE])
                show_target(f"50 handlers: part kept with {name}", kept, least=least)


def _rate(how: Plan, opener: Opener, scraped: bool) -> float:
    """Return the commits per second of a program between two of its snapshots."""
    idle = threading.Event()
    with how.place("log") as folder, opener(folder) as program:
        idle.wait(WARM_UP_SECONDS)
        before = program.snapshot()
        for _ in range(max(round(how.seconds / SCRAPE_SECONDS), 1)):
            idle.wait(SCRAPE_SECONDS)
            if scraped:
                program.get("metrics")
        after = program.snapshot()
    elapsed_ns: int = after["monotonic_ns"] - before["monotonic_ns"]
    commits: int = after["wal"]["commits"] - before["wal"]["commits"]
    return commits * 1e9 / elapsed_ns


if __name__ == "__main__":
    main()
