"""Does an operation of the tracker cost the same with a million replicas as with ten thousand, and how much memory?"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc

from engine.ramdisk.replica import Checksum, Policy, Replica, State, StoredFile
from engine.ramdisk.tracker import Tracker
from tests.bench.rounds import plan, say, show_target

FEW, MANY = 10_000, 1_000_000
OPERATIONS = 20_000


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0, rounds=3) as how:
        costs = {count: _costs(count, how.rounds) for count in (FEW, MANY)}
        say(f"{'ns an operation':24}" + "".join(f"{count:>14,}" for count in costs))
        for name in costs[FEW]:
            say(f"{name:24}" + "".join(f"{costs[count][name]:14.0f}" for count in costs))
        for name in costs[FEW]:
            show_target(f"tracker, {name}: 1 M to 10 k", costs[MANY][name] / costs[FEW][name], most=2.0)
        show_target("bytes a tracked replica", _memory(MANY), most=400)


def _file() -> StoredFile:
    return StoredFile(1, "f", block_size=4096, chunk=65536, checksum=Checksum.ON, policy=Policy.LAZY)


def _fill(count: int) -> tuple[Tracker, list[Replica], StoredFile]:
    """Return a tracker with half of the replicas evictable and half at risk."""
    tracker, file, replicas = Tracker(1), _file(), []
    for number in range(count):
        replicas.append(_add(tracker, file, number + 1_000_000))
    for replica in replicas[: count // 2]:
        assert tracker.take(0, 0) is replica
        tracker.settle(replica, State.PERSISTED)
    return tracker, replicas, file


def _add(tracker: Tracker, file: StoredFile, number: int) -> Replica:
    replica = Replica(number, file, 0)
    replica.length, replica.in_ram, replica.since_ns = 4096, True, time.monotonic_ns()
    tracker.add_at_risk(replica)
    return replica


def _costs(count: int, rounds: int) -> dict[str, float]:
    """Return the least ns of each operation over the rounds."""
    best: dict[str, float] = {}
    tracker, replicas, file = _fill(count)
    chance = random.Random(1)
    number = 1 << 40
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        timer = _Timer(best)
        for _ in range(OPERATIONS):
            number += 1
            timer.time("add", _add, tracker, file, number)
            taken = timer.time("take", tracker.take, 0, 0)
            timer.time("persisted", tracker.settle, taken, State.PERSISTED)
            read = replicas[chance.randrange(count // 2)]
            if read.state is State.PERSISTED:
                timer.time("open for reading", tracker.pin, read)
                timer.time("close", tracker.unpin, read)
            victim = timer.time("choose a victim", tracker.take_victim)
            victim.state, victim.in_ram = State.ON_DISK, False
            timer.time("delete", tracker.forget, victim)
        timer.close()
    gc.enable()
    return best


class _Timer:
    def __init__(self, best: dict[str, float]) -> None:
        self._best, self._spent, self._count = best, dict[str, int](), dict[str, int]()

    def time(self, name, function, *arguments):  # type: ignore[no-untyped-def]
        began = time.perf_counter_ns()
        result = function(*arguments)
        self._spent[name] = self._spent.get(name, 0) + time.perf_counter_ns() - began
        self._count[name] = self._count.get(name, 0) + 1
        return result

    def close(self) -> None:
        for name, spent in self._spent.items():
            mean = spent / self._count[name]
            self._best[name] = min(self._best.get(name, mean), mean)


def _memory(count: int) -> float:
    """Return the bytes that a tracked replica takes in Python's heap."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracker, file = Tracker(1), _file()
    for number in range(count):
        file.blocks.append(_add(tracker, file, number + 1_000_000))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / count


if __name__ == "__main__":
    main()
