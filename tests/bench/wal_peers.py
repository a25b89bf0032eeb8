"""How do durable commits compare with embedded stores? Ours native and from Python, against four that fsync each put.

At 1, 50 and 200 threads. Handlers are native threads; `Log.commit` and all the others are called from Python threads.
At 200 only those run that group commits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.bench import peers
from tests.bench.contenders import callers, handlers
from tests.bench.rounds import Plan, plan, ratio, say, show_rates, show_target, take_turns

HANDLERS, COMMIT, LEVELDB = "group, native handlers", "group, Log.commit from Python", "plyvel put(sync=True)"
SQLITE, LMDB, ROCKSDB = "sqlite3 WAL, FULL", "lmdb", "rocksdict, sync"
GROUPING = (HANDLERS, COMMIT, LEVELDB)

Opener = Callable[[Path], AbstractContextManager[peers.MakeOperation]]
OPENERS: dict[str, Opener] = {
    COMMIT: peers.open_ours,
    LEVELDB: peers.open_plyvel,
    SQLITE: peers.open_sqlite,
    LMDB: peers.open_lmdb,
    ROCKSDB: peers.open_rocksdict,
}


def main() -> None:
    with plan(__doc__, short=0.8, full=3.0) as how:
        contenders = {
            f"{name} @{threads}": _contender(how, name, threads)
            for threads in (1, 50, 200)
            for name in (HANDLERS, *OPENERS)
            if threads < 200 or name in GROUPING
        }
        outcome = take_turns(contenders, how.rounds)
        found = outcome.found
        for threads in (1, 50, 200):
            here = {name: rates for name, rates in found.items() if name.endswith(f"@{threads}")}
            missing = {name: why for name, why in outcome.skipped.items() if name.endswith(f"@{threads}")}
            say()
            show_rates(here, missing, against=f"{LEVELDB} @{threads}")
        say()
        for ours, peer, least in (
            (HANDLERS, LEVELDB, 1.6),
            (HANDLERS, SQLITE, 10),
            (HANDLERS, LMDB, 1),
            (HANDLERS, ROCKSDB, 1),
            (COMMIT, LEVELDB, 1.3),
        ):
            if f"{peer} @50" in found:
                show_target(f"50: {ours} / {peer}", ratio(found[f"{ours} @50"], found[f"{peer} @50"]), least=least)
        show_target(f"{HANDLERS}: 200 / 50", ratio(found[f"{HANDLERS} @200"], found[f"{HANDLERS} @50"]), least=1)


def _contender(how: Plan, name: str, threads: int) -> Callable[[], float]:
    if name == HANDLERS:
        return lambda: handlers(how, threads).ops_per_second

    def measure() -> float:
        with how.place("store") as path, OPENERS[name](path) as make:
            return callers(how, threads, make)

    return measure


if __name__ == "__main__":
    main()
