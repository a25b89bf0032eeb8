"""Which write-thread model suits which disk? Every model on every device at 1, 5 and 50 handlers.

The report (HBASE-8755) found about 5 times the throughput at 5 threads and 16.4 times at 50. That shape belongs to
disks whose syncs are slow and share one queue; here is where it appears and where it does not.
"""

from __future__ import annotations

import statistics

from engine.workloads.wal import WalResult
from tests.bench.contenders import handlers
from tests.bench.rounds import plan, ratio, say, take_turns

MODELS = ("handler", "handler-recheck", "pipeline:1", "pipeline:5", "group")
DEVICES = ("real", "serial:1ms", "parallel:1ms")
THREADS = (1, 5, 50)


def main() -> None:
    with plan(__doc__, short=0.4, full=2.0) as how:
        outcome = take_turns(
            {
                (device, model, threads): (
                    lambda device=device, model=model, threads=threads: handlers(
                        how, threads, model=model, device=device, warm_up=0.2
                    )
                )
                for device in DEVICES
                for model in MODELS
                for threads in THREADS
            },
            how.rounds,
        )
        for device in DEVICES:
            say()
            label = outcome.found[device, MODELS[0], 1][0].device
            titles = "".join(f"{title:>11}" for title in ("ops/s", "ops/sync", "to 1"))
            say(
                f"{label}: handlers {THREADS[0]}".ljust(34)
                + f"{THREADS[1]} handlers".rjust(22)
                + "50 handlers".rjust(33)
            )
            say(f"{'':17}{'ops/s':>11}" + titles * 2)
            for model in MODELS:
                one = outcome.found[device, model, 1]
                line = f"{model:17}{_median_rate(one):11,.0f}"
                for threads in THREADS[1:]:
                    many = outcome.found[device, model, threads]
                    grouped = statistics.median(result.ops_per_sync or 0.0 for result in many)
                    line += f"{_median_rate(many):11,.0f}{grouped:11.1f}{ratio(_rates(many), _rates(one)):10.1f}x"
                say(line)


def _rates(results: list[WalResult]) -> list[float]:
    return [result.ops_per_second for result in results]


def _median_rate(results: list[WalResult]) -> float:
    return statistics.median(_rates(results))


if __name__ == "__main__":
    main()
