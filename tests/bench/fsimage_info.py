"""How long does `tidegauge image info` take, process start included, on images of 20 and 10 million inodes?"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.fsimage_kit import ROOT, make_image
from tests.bench.rounds import plan, say, show_target, take_turns


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0, rounds=9) as how, how.place("image") as folder:
        images = {}
        for layout, inodes in (("legacy", 20_000_000), ("protobuf", 10_000_000)):
            (folder / layout).mkdir(parents=True)
            images[layout], _ = make_image(folder / layout, inodes, layout)  # type: ignore[arg-type]
        turns = take_turns(
            {layout: lambda image=image: _seconds(image) for layout, image in images.items()}, how.rounds
        )
        for layout, seconds in turns.found.items():
            say(f"{layout:10}{min(seconds):7.3f} to {max(seconds):.3f} s")
            show_target(f"image info, {layout}: seconds", statistics.median(seconds), most=0.3)


def _seconds(image: Path) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "dashboard", "image", "info", image], cwd=ROOT, capture_output=True, check=True
    )
    return time.monotonic() - began


if __name__ == "__main__":
    main()
