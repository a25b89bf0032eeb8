"""What the image benchmarks share: images to load, and loads in a process of their own, whose memory can be weighed."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from engine.fsimage.load import load_image
from engine.fsimage.synth import SynthOptions, synthesise
from engine.measure.clock import SystemClock
from engine.measure.memory import anonymous_bytes
from engine.native.kernel import compile_all
from tests.bench.rounds import say

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "TIDEGAUGE_FSIMAGE"  # names a folder current/ with a protobuf image to use instead of making one
SHARED = Path(os.environ.get("TIDEGAUGESHARED") or ROOT.parent / "shared")
_GENERATOR = SHARED / "cluster" / "tools" / "gen_fsimage.py"
_VERSION = (
    "namespaceID=1234567\nblockpoolID=BP-1-127.0.0.1-1767225600000\nstorageType=NAME_NODE\ncTime=1767225600000\n"
    "clusterID=bench\nlayoutVersion=-67\n"
)
_LOOK_SECONDS = 0.01
_LOAD_SECONDS = 300.0


class Load(NamedTuple):
    """One load. held: anonymous bytes of the loaded namespace, its names among them; peak: of the whole process."""

    seconds: float
    rows: int
    held: int
    names: int
    peak: int


def load(image: Path, threads: int) -> Load:
    """Load an image in a process of its own, kernels ready, file in the page cache."""
    program = "from tests.bench.fsimage_kit import child; child()"
    done = subprocess.run(
        [sys.executable, "-c", program, str(image), str(threads)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LOAD_SECONDS,
        check=True,
    )
    return Load(*json.loads(done.stdout))


def child() -> None:
    """Load sys.argv[1] on sys.argv[2] threads; print a Load."""
    compile_all()
    clock, ended, peak = SystemClock(), threading.Event(), 0

    def watch() -> None:
        nonlocal peak
        while not ended.wait(_LOOK_SECONDS):
            peak = max(peak, anonymous_bytes())

    before = anonymous_bytes()
    watcher = threading.Thread(target=watch)
    watcher.start()
    began = clock.monotonic_ns()
    loaded = load_image(Path(sys.argv[1]), clock=clock, threads=int(sys.argv[2]), check_md5=False)
    seconds = (clock.monotonic_ns() - began) / 1e9
    held = anonymous_bytes()
    ended.set()
    watcher.join()
    assert loaded.integrity.is_clean
    found = Load(seconds, loaded.namespace.rows, held - before, int(loaded.namespace.names.size), max(peak, held))
    sys.stdout.write(json.dumps(found))


def make_image(folder: Path, inodes: int, layout: Literal["legacy", "protobuf"]) -> tuple[Path, float]:
    """Make an image of our own; return it and the seconds that took."""
    clock = SystemClock()
    began = clock.monotonic_ns()
    made = synthesise(folder / f"fsimage_{0:019}", SynthOptions(inodes, layout), clock=clock)
    return made.path, (clock.monotonic_ns() - began) / 1e9


def name_folder(folder: Path, inodes: int) -> tuple[Path, str]:
    """Return a NameNode's folder with a protobuf image of `inodes`, and who made it."""
    if found := os.environ.get(IMAGE):
        return Path(found), f"{IMAGE}={found}"
    if _GENERATOR.is_file():
        subprocess.run(
            [sys.executable, str(_GENERATOR), str(inodes), str(folder), "12"], check=True, capture_output=True
        )
        return folder, _GENERATOR.name
    current = folder / "current"
    current.mkdir(parents=True)
    (current / "VERSION").write_text(_VERSION)
    (current / "seen_txid").write_text("0\n")
    make_image(current, inodes, "protobuf")
    return folder, "tidegauge image synth"


def image_in(folder: Path) -> Path:
    """Return the image of a NameNode's folder."""
    return next(path for path in sorted((folder / "current").glob("fsimage_*")) if path.suffix != ".md5")


def warm(image: Path) -> None:
    """Read a file into the page cache."""
    with image.open("rb", buffering=0) as file:
        while file.read(16 << 20):
            pass


def median(loads: Sequence[Any], field: str) -> float:
    """Return the median of a field over some loads."""
    return float(statistics.median(getattr(each, field) for each in loads))


def show_loads(found: dict[str, list[Load]]) -> None:
    """Print what loads took, a line for each contender."""
    say(f"{'':14}{'seconds':>9}{'lowest':>8}{'highest':>8}{'M inodes/s':>12}{'B/inode':>9}{'names':>7}{'peak MB':>9}")
    for name, loads in found.items():
        seconds = [each.seconds for each in loads]
        rows, middle = loads[0].rows, statistics.median(seconds)
        say(
            f"{name:14}{middle:9.2f}{min(seconds):8.2f}{max(seconds):8.2f}{rows / middle / 1e6:12.2f}"
            f"{(median(loads, 'held') - loads[0].names) / rows:9.1f}{loads[0].names / rows:7.1f}"
            f"{median(loads, 'peak') / 1e6:9,.0f}"
        )
