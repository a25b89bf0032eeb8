"""Kill writers at random moments, a thousand times, and compare what each leaves with what it had acked.

    python -m tests.bench.kill_writer [--times 1000] [--seed N] [--path DIR]

Nothing is measured: this is the kill test of the test run, for longer. A failure says which seed it was.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.bench.rounds import show_target
from tests.wal.kills import KilledWriters

AT_A_TIME = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kill_writer", description="Kill writers, many times.")
    parser.add_argument("--times", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="as a failure said")
    parser.add_argument("--path", type=Path, help="an existing folder on the disk to use (default: that of $TMPDIR)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.path) as folder, KilledWriters(Path(folder), given.seed) as writers:
        try:
            while writers.kills < given.times:
                writers.kill(min(AT_A_TIME, given.times - writers.kills))
                print(f"\r{writers.kills:,} of {given.times:,} killed", end="", file=sys.stderr, flush=True)
        except AssertionError as error:
            print(f"\nLOST after {writers.kills:,} kills, seed {given.seed}: {error}")
            show_target("writers killed without a loss", writers.kills - 1, least=given.times)
            return 1
    print(
        f"\n{writers.kills:,} writers killed, {writers.deaths_before_first_ack:,} before their first ack; "
        f"{writers.acks:,} acked records: none missing, no gap, no duplicate, every byte right (seed {given.seed})"
    )
    show_target("writers killed without a loss", writers.kills, least=given.times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
