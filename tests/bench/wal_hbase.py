"""How do we compare with the real thing? `group` against HBase's FSHLog, measured by HBase's own tool, same disk.

WALPerformanceEvaluation on the raw local file system with hbase.wal.hsync, so that both make every record durable by a
real sync. Where Java or Maven is not installed it is skipped.
"""

from __future__ import annotations

from tests.bench import hbase
from tests.bench.contenders import handlers
from tests.bench.rounds import Skipped, plan, ratio, say, show_rates, show_target, take_turns

THREADS = (1, 5, 50, 100)
LEAST = 1.5


def main() -> None:
    with plan(__doc__, short=1.5, full=4.0) as how:
        try:
            folder = hbase.build()
        except Skipped as reason:
            say(f"skipped: {reason}")
            return
        for threads in THREADS:
            theirs, ours = f"HBase FSHLog @{threads}", f"group @{threads}"
            outcome = take_turns(
                {
                    theirs: lambda threads=threads: hbase.ops_per_second(folder, how, threads),
                    ours: lambda threads=threads: handlers(how, threads).ops_per_second,
                },
                how.rounds,
            )
            say()
            show_rates(outcome.found, outcome.skipped, against=theirs)
            show_target(f"{ours} / HBase", ratio(outcome.found[ours], outcome.found[theirs]), least=LEAST)


if __name__ == "__main__":
    main()
