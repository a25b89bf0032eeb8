"""How long does a legacy image of 20 million inodes take, and how much memory? HADOOP-3248 took 7 minutes."""

from __future__ import annotations

from engine.fsimage.strategies import Strategy, run_strategy
from engine.measure.clock import SystemClock
from engine.measure.memory import anonymous_bytes
from tests.bench.fsimage_kit import load, make_image, median, show_loads
from tests.bench.rounds import plan, say, show_target, take_turns

INODES = 20_000_000
SAMPLE, FULL_SAMPLE = 300_000, 1_000_000
REPORT_SECONDS = 7 * 60


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0) as how, how.place("image") as folder:
        folder.mkdir()
        image, seconds = make_image(folder, INODES, "legacy")
        say(f"made in {seconds:.1f} s: {image.stat().st_size / 1e9:.2f} GB")
        turns = take_turns({f"columnar, {n}": lambda n=n: load(image, n) for n in (1, 2)}, how.rounds)
        show_loads(turns.found)
        one, two = turns.found.values()
        rows = two[0].rows
        took = median(two, "seconds")
        say(f"2 threads against 1: {median(one, 'seconds') / took:.2f}x; 7 minutes: {REPORT_SECONDS / took:.0f}x")
        sample = FULL_SAMPLE if how.full else SAMPLE
        for strategy in (Strategy.PARENT_CACHE, Strategy.LEAN, Strategy.OBJECTS):
            run = run_strategy(image, strategy, clock=SystemClock(), most=sample, memory=anonymous_bytes)
            scaled, share = run.elapsed / 1e9 * rows / run.inodes, (run.resolve_elapsed or 0) / run.elapsed
            say(
                f"{strategy.value:14}{run.elapsed / 1e9:7.1f} s for the first {run.inodes:,}, scaled {scaled:,.0f} s; "
                f"{share:.0%} of it finds parents, in {run.resolve_calls:,} walks; "
                f"{run.memory / run.inodes:,.0f} B/inode"
            )
        show_target("synthesise 20 M inodes: seconds", seconds, most=90)
        show_target("load 20 M inodes on 2 threads: seconds", took, most=3.5)
        show_target("anonymous bytes an inode, without names", (median(two, "held") - two[0].names) / rows, most=100)
        show_target("anonymous memory of the process at its peak: GB", median(two, "peak") / 1e9, most=3)


if __name__ == "__main__":
    main()
