"""A hundred thousand images with wounds: does any of them end the process, hang it, or load into nonsense?"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from engine.measure.memory import anonymous_bytes
from tests.bench.fsimage_kit import SHARED
from tests.bench.rounds import plan, say, show_target
from tests.fsimage.mutation import load_wounded, mutate, victims_of

IMAGES = 100_000
WORKERS = 2
_SLOW_SECONDS = 5.0


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0, rounds=1) as how, how.place("wounded") as folder:
        folder.mkdir()
        images = SHARED / "data"
        victims = victims_of(images if images.is_dir() else None, folder)
        pids = [_start(worker, victims, folder) for worker in range(WORKERS)]
        ends = [os.waitpid(pid, 0)[1] for pid in pids]
        lines = [(folder / f"said-{worker}").read_text().split() for worker in range(WORKERS)]
        done, loaded, slow = (sum(int(line[k]) for line in lines if line) for k in range(3))
        peak = max((int(line[3]) for line in lines if line), default=0)
        say(f"{done:,} images of {len(victims)} kinds: {loaded:,} loaded, {done - loaded:,} were refused with a place")
        show_target("processes that did not end well", float(sum(end != 0 for end in ends)), most=0)
        show_target("images that took over 5 s", float(slow), most=0)
        show_target("anonymous memory of a process: MB", peak / 1e6, most=700)


def _start(worker: int, victims: list[bytes], folder: Path) -> int:
    """Fork a worker that loads its share; it leaves its figures in a file."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        chance, path = random.Random(worker), folder / f"image-{worker}"
        loaded = slow = peak = 0
        for turn in range(IMAGES // WORKERS):
            path.write_bytes(mutate(victims[turn % len(victims)], chance))
            began = time.monotonic()
            loaded += load_wounded(path, 1 + turn % 2)
            slow += time.monotonic() - began > _SLOW_SECONDS
            if turn % 100 == 0:
                peak = max(peak, anonymous_bytes())
        (folder / f"said-{worker}").write_text(f"{turn + 1} {loaded} {slow} {peak}")
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
