"""What does the lazy writer do to durable commits on the same disk while it drains: direct against buffered?

HDFS-7090's question. Eight handlers commit 1 KiB records to a log on the disk while four blocks of 128 MiB are copied.
"""

from __future__ import annotations

import statistics
import threading

from engine.measure.clock import SystemClock
from engine.ramdisk.replica import Checksum
from engine.units import MIB, Nanoseconds
from engine.workloads.wal import WalCase, run_case
from tests.bench.ramdisk_kit import FILE, PIECE, a_piece, a_store
from tests.bench.rounds import plan, ratio, say, show_target, take_turns

MODES = ("direct", "fadvise", "sendfile", "buffered")
HANDLERS = 8


def main() -> None:
    piece, clock = a_piece(), SystemClock()
    with (
        plan(__doc__, short=1.0, full=1.0, rounds=3) as how,
        a_store(how, held=True, ram_capacity=FILE + 16 * MIB) as store,
    ):

        def commits(stop: threading.Event) -> tuple[float, float]:
            with how.place("log") as folder:
                case = WalCase(model="group", threads=HANDLERS, duration_ns=Nanoseconds(60 * 10**9), warmup_ns=0)
                result = run_case(case, folder, stop=stop, progress=lambda step: None)
            return (result.latency_seconds.p99 or 0.0) * 1e6, result.ops_per_second

        def alone() -> tuple[float, float]:
            stop = threading.Event()
            timer = threading.Timer(how.seconds, stop.set)
            timer.start()
            return commits(stop)

        def draining(mode: str) -> tuple[float, float]:
            store.set_copy_mode(mode)
            with store.create("file", checksum=Checksum.DEFERRED) as file:
                for _ in range(0, FILE, PIECE):
                    file.write(piece)
            stop = threading.Event()

            def drain() -> None:
                clock.wait(stop, 0.3)  # the log is open by then
                store.hold_persist(False)
                store.wait_persisted(120)
                stop.set()

            drainer = threading.Thread(target=drain, name="drain")
            drainer.start()
            found = commits(stop)
            drainer.join()
            store.hold_persist(True)
            store.delete("file")
            return found

        contenders = {"alone": alone} | {mode: (lambda mode=mode: draining(mode)) for mode in MODES}
        found = take_turns(contenders, how.rounds).found
    say(f"{'lazy writer':16}{'p99 us':>12}{'lowest':>12}{'highest':>12}{'commits/s':>12}")
    for name, values in found.items():
        p99 = [value[0] for value in values]
        rate = statistics.median(value[1] for value in values)
        say(f"{name:16}{statistics.median(p99):12,.0f}{min(p99):12,.0f}{max(p99):12,.0f}{rate:12,.0f}")
    p99s = {name: [value[0] for value in values] for name, values in found.items()}
    show_target("commits' p99 while it drains: direct, of buffered", ratio(p99s["direct"], p99s["buffered"]), most=1.0)


if __name__ == "__main__":
    main()
