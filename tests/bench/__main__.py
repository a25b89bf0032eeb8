"""Run the benchmarks one after the other and end with what became of every target.

    python -m tests.bench [--full] [NAME ...]

Each runs in a process of its own. The exit code is 1 where one broke, and 0 otherwise, whatever the figures are.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from tests.bench.rounds import TARGET

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]

# In the order of the questions; those of other rooms, which read their own arguments, come last.
OURS = (
    "wal_bare",
    "wal_peers",
    "wal_hbase",
    "wal_serial",
    "wal_matrix",
    "metering_cost",
    "interference",
    "exit_time",
)


def main() -> int:
    programs = [*OURS, *_others()]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmarks, side by side with peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(programs)}")
    parser.add_argument("--full", action="store_true", help="measure longer: what a note should quote")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in programs]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}; there are {', '.join(programs)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    broken, targets = [], []
    for name in given.names or programs:
        print(f"\n=== {name}", flush=True)
        code, found = _run(name, ["--full"] if given.full and name in OURS else [])
        targets += [f"{name}: {line.removeprefix(TARGET).strip()}" for line in found]
        if code:
            print(f"{name} ended with {code}", flush=True)
            broken.append(name)
    print("\n=== targets", *targets, sep="\n")
    if broken:
        print(f"broken: {', '.join(broken)}")
    return 1 if broken else 0


def _others() -> list[str]:
    """Return the programs in this folder that other rooms own."""
    marker = 'if __name__ == "__main__":'
    found = [path.stem for path in sorted(FOLDER.glob("[a-z]*.py")) if marker in path.read_text(encoding="utf-8")]
    return [name for name in found if name not in OURS and name != "bare_engine"]


def _run(name: str, arguments: list[str]) -> tuple[int, list[str]]:
    """Run one and pass on what it prints; return its exit code and the lines that tell of targets."""
    command = [sys.executable, "-m", f"tests.bench.{name}", *arguments]
    found = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                if line.startswith(TARGET + " "):
                    found.append(line.rstrip())
        except BaseException:
            process.terminate()  # it removes what it made
            raise
    return process.returncode, found


if __name__ == "__main__":
    sys.exit(main())
