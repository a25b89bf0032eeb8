"""A thousand kills at every named line of a store, each followed by recovery and a comparison with a ledger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.bench.ramdisk_kit import ram_folder
from tests.bench.rounds import plan, say, show_target

KILLS = 1000


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0) as how, ram_folder() as ram, how.place("disk") as disk:
        disk.mkdir()
        command = [sys.executable, "-m", "tests.ramdisk.kill_program", str(ram), str(disk), str(KILLS), "1"]
        done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
        say((done.stdout + done.stderr).strip())
        show_target(f"mistakes in {KILLS} kills", float(done.stdout.count("round ")), most=0)


if __name__ == "__main__":
    main()
