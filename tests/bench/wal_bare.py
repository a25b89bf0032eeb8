"""What does a log add to a bare write and sync? One handler on `group` against a loop of pwrite and fdatasync.

The loop writes as many bytes as a record takes, at the same offsets, into a file that was zeroed in the same way; once
as machine code, which is the fair opponent of a native handler, and once in plain Python.
"""

from __future__ import annotations

from tests.bench.bare_loop import kernel_loop, python_loop
from tests.bench.contenders import handlers
from tests.bench.rounds import plan, ratio, show_rates, show_target, take_turns


def main() -> None:
    with plan(__doc__, short=1.0, full=4.0, rounds=7) as how:
        outcome = take_turns(
            {
                "bare loop, kernel": lambda: kernel_loop(how),
                "bare loop, Python": lambda: python_loop(how),
                "group, 1 handler": lambda: handlers(how, 1).ops_per_second,
            },
            how.rounds,
        )
        show_rates(outcome.found, outcome.skipped, against="bare loop, kernel")
        ours = outcome.found["group, 1 handler"]
        for name in ("bare loop, kernel", "bare loop, Python"):
            show_target(f"group, 1 handler / {name}", ratio(ours, outcome.found[name]), least=0.95)


if __name__ == "__main__":
    main()
