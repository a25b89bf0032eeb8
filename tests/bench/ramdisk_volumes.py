"""Two volumes: does it pay that each takes the next block when it is free, rather than blocks being dealt in turn?

Dealt is what HDFS does. Once with two equal volumes, once with the second slowed down (simulated: a pause before each
write of 8 MiB). The figures are seconds until 24 blocks of 32 MiB are persisted.
"""

from __future__ import annotations

import threading
import time

from engine.ramdisk.core import StoreSettings
from engine.ramdisk.replica import Checksum, Replica
from engine.ramdisk.store import Store
from engine.ramdisk.tracker import Tracker
from engine.storage.file_calls import FileCalls, Place
from engine.units import MIB
from tests.bench.ramdisk_kit import PIECE, a_piece, ram_folder, show
from tests.bench.rounds import plan, ratio, show_target, take_turns

BLOCKS, BLOCK = 24, 32 * MIB
PAUSE_SECONDS = 0.02


class Dealt(Tracker):
    """Gives each new block to a volume in turn, busy or not."""

    def _queue(self, replica: Replica) -> None:
        self._syncs[replica.block_id % 2].append(replica)


def main() -> None:
    piece, never = a_piece(), threading.Event()
    with plan(__doc__, short=1.0, full=1.0) as how:

        def slow_second(place: Place) -> None:
            if place is Place.COPY_WRITE and threading.current_thread().name == "lazy-writer-1":
                never.wait(PAUSE_SECONDS)

        def drained(tracker: type[Tracker], slow: bool) -> float:
            with ram_folder() as ram, how.place("disk") as disk:
                disk.mkdir()
                settings = StoreSettings(
                    ram_dir=ram, disk_dirs=(disk / "0", disk / "1"), ram_capacity=BLOCKS * (BLOCK + MIB),
                    block_size=BLOCK, low_watermark=0,
                )  # fmt: skip
                calls = FileCalls(slow_second) if slow else FileCalls()
                with Store.open(settings, calls=calls, held=True) as store:
                    store.core.tracker = tracker(2)
                    with store.create("file", checksum=Checksum.DEFERRED) as file:
                        for _ in range(0, BLOCKS * BLOCK, PIECE):
                            file.write(piece)
                    began = time.perf_counter()
                    store.hold_persist(False)
                    assert store.wait_persisted(120)
                    return time.perf_counter() - began

        found = take_turns(
            {
                "equal, dealt in turn": lambda: drained(Dealt, False),
                "equal, taken when free": lambda: drained(Tracker, False),
                "second slow, dealt in turn": lambda: drained(Dealt, True),
                "second slow, taken when free": lambda: drained(Tracker, True),
            },
            how.rounds,
        ).found
    show(found, "equal, dealt in turn", "s")
    for disks, most in (("equal", 1.05), ("second slow", 0.8)):
        times = ratio(found[f"{disks}, taken when free"], found[f"{disks}, dealt in turn"])
        show_target(f"{disks}: time when taken, of dealt", times, most=most)


if __name__ == "__main__":
    main()
