"""How soon does it end? Engine.stop() with 50 handlers busy, and the dashboard from key q to the end of its process.

Nothing may be lost on the way: stopping lets every handler end its record, drains, seals and syncs the log.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable

from engine.engine import Engine
from engine.snapshot import WalSnapshot
from engine.workloads.wal_lane import WalSettings
from tests.bench.bare_engine import HANDLERS
from tests.bench.programs import dashboard
from tests.bench.rounds import Plan, plan, say, show_target, take_turns

CASES = (("group", "real"), ("group", "serial:5ms"), ("pipeline:5", "real"), ("handler", "real"))
STREAM_RATE = "200MiB/s"
MOST_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0


def main() -> None:
    with plan(__doc__, short=0.5, full=2.0) as how:
        contenders: dict[str, Callable[[], float]] = {
            f"Engine.stop, {model} on {device}": (lambda model=model, device=device: _stop_engine(how, model, device))
            for model, device in CASES
        }
        contenders["dashboard, key q"] = lambda: _leave_dashboard(how)
        contenders["dashboard and stream, key q"] = lambda: _leave_dashboard(how, "--ram-rate", STREAM_RATE)
        outcome = take_turns(contenders, how.rounds)
        say(f"{'':36}{'median':>10}{'slowest':>10}")
        for name, seconds in outcome.found.items():
            say(f"{name:36}{statistics.median(seconds):8.3f} s{max(seconds):8.3f} s")
        for name, reason in outcome.skipped.items():
            say(f"{name:36}   skipped: {reason}")
        for name, seconds in outcome.found.items():
            show_target(f"{name}: seconds", statistics.median(seconds), most=MOST_SECONDS)


def _stop_engine(how: Plan, model: str, device: str) -> float:
    with how.place("log") as folder:
        engine = Engine(WalSettings(path=folder, handlers=HANDLERS, model=model, device=device))
        engine.start()
        idle, deadline = threading.Event(), time.monotonic() + _PATIENCE_SECONDS
        while not _commits(engine):
            if time.monotonic() > deadline:
                raise RuntimeError(f"no commit within {_PATIENCE_SECONDS:.0f} s: {engine.sample().wal}")
            idle.wait(0.02)
        idle.wait(how.seconds)
        began = time.perf_counter()
        ended = engine.stop()
        took = time.perf_counter() - began
    if not ended:
        raise RuntimeError(f"the engine did not end within {took:.0f} s")
    return took


def _commits(engine: Engine) -> bool:
    wal = engine.sample().wal
    return isinstance(wal, WalSnapshot) and isinstance(wal.commits, int) and wal.commits > 0


def _leave_dashboard(how: Plan, *extra: str) -> float:
    with how.place("log") as folder, dashboard(folder, *extra) as program:
        threading.Event().wait(how.seconds)
        began = time.perf_counter()
        os.write(program.terminal, b"q")
        program.process.wait(_PATIENCE_SECONDS)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
