"""The report's experiment on this machine: is lazy persistence faster than a durable disk, and than a busy page cache?

The product's own workload (engine/workloads/ramdisk.py), case by case in rounds; the figures are mean seconds a file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from engine.ramdisk.core import StoreSettings
from engine.units import MIB
from engine.workloads.ramdisk import RamdiskCase, run_case
from tests.bench.ramdisk_kit import ram_folder, show
from tests.bench.rounds import plan, ratio, show_target, take_turns

FILES, SIZE, BLOCK = 3, 256 * MIB, 128 * MIB
CASES = {
    "disk-sync": ("disk-sync", "on", "clean"),
    "disk": ("disk", "on", "clean"),
    "disk, dirty cache": ("disk", "on", "dirty-cache"),
    "lazy, on": ("lazy", "on", "clean"),
    "lazy, deferred": ("lazy", "deferred", "clean"),
    "lazy, off": ("lazy", "off", "clean"),
    "lazy, on, dirty cache": ("lazy", "on", "dirty-cache"),
}


def main() -> None:
    with plan(__doc__, short=1.0, full=1.0, rounds=3) as how:

        def measure(policy: str, checksum: str, state: str) -> float:
            case = RamdiskCase(
                policy=policy,
                checksum=checksum,
                state=state,
                files=FILES,
                file_size_bytes=SIZE if not how.full else 4 * SIZE,
                block_size_bytes=BLOCK,
            )
            with ram_folder() as ram, how.place("disk") as disk:
                disk.mkdir()
                capacity = FILES * case.file_size_bytes * 5 // 4
                settings = StoreSettings(ram_dir=ram, disk_dirs=(disk / "volume",), ram_capacity=capacity)
                result = run_case(case, settings, disk, stop=threading.Event(), progress=lambda step: None)
            assert result.complete, result.error
            return result.mean_file_seconds or 0.0

        contenders: dict[str, Callable[[], float]] = {
            name: (lambda made=made: measure(*made)) for name, made in CASES.items()
        }
        found = take_turns(contenders, how.rounds).found
    show(found, "disk", "s a file")
    for lazy in ("lazy, on", "lazy, deferred", "lazy, off"):
        show_target(f"{lazy}: better than disk-sync by", 1 - ratio(found[lazy], found["disk-sync"]), least=0.394)
        show_target(f"{lazy}: to a buffered disk, clean cache", ratio(found[lazy], found["disk"]), most=1.05)
    dirty = 1 - ratio(found["lazy, on, dirty cache"], found["disk, dirty cache"])
    show_target("lazy, on: better than a buffered disk with a dirty cache by", dirty, least=0.394)


if __name__ == "__main__":
    main()
