"""How much of a slow disk does group commit get? 50 handlers and 1 on a disk that serves one sync at a time.

On such a disk no log can commit more than N records a sync: N / t_sync, with t_sync the mean sync measured in the same
run. What 50 handlers keep of that is what waking and gathering them costs.
"""

from __future__ import annotations

import statistics

from engine.workloads.wal import WalResult
from tests.bench.contenders import handlers
from tests.bench.rounds import plan, ratio, say, show_target, take_turns

THREADS = 50
TARGETS = {"serial:5ms": (0.90, 45.0), "serial:1ms": (0.75, 35.0)}


def main() -> None:
    with plan(__doc__, short=1.5, full=5.0) as how:
        outcome = take_turns(
            {
                (device, threads): (lambda device=device, threads=threads: handlers(how, threads, device=device))
                for device in TARGETS
                for threads in (1, THREADS)
            },
            how.rounds,
        )
        say(f"{'':16}{'handlers':>10}{'ops/s':>10}{'syncs/s':>10}{'ops/sync':>10}{'t_sync':>10}{'of N/t_sync':>13}")
        for (device, threads), results in outcome.found.items():
            say(
                f"{device:16}{threads:10}"
                f"{statistics.median(r.ops_per_second for r in results):10,.0f}"
                f"{statistics.median(r.syncs_per_second for r in results):10,.0f}"
                f"{statistics.median(r.ops_per_sync or 0.0 for r in results):10.1f}"
                f"{statistics.median(r.sync_seconds_mean or 0.0 for r in results) * 1e3:7.2f} ms"
                f"{statistics.median(_share(r, threads) for r in results):13.1%}"
            )
        for device, (share, times) in TARGETS.items():
            many, one = outcome.found[device, THREADS], outcome.found[device, 1]
            found = statistics.median(_share(result, THREADS) for result in many)
            show_target(f"{device}, {THREADS} handlers: part of N/t_sync", found, least=share)
            rates = [[result.ops_per_second for result in results] for results in (many, one)]
            show_target(f"{device}: {THREADS} handlers / 1", ratio(*rates), least=times)


def _share(result: WalResult, threads: int) -> float:
    return result.ops_per_second * (result.sync_seconds_mean or 0.0) / threads


if __name__ == "__main__":
    main()
