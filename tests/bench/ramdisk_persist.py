"""How near to the disk's bare bandwidth is the lazy writer, in each copy mode?

Bare: files of 128 MiB, each written in pieces of 8 MiB around the page cache, synced, its folder synced. Ours: the
lazy writer's bytes over its busy time for four blocks of 128 MiB, checksums deferred (it computes them) and on (it
checks them).
"""

from __future__ import annotations

import os
import time

from engine.ramdisk.replica import Checksum
from engine.storage.file_calls import Place, aligned_buffer
from engine.units import GIB, MIB
from tests.bench.ramdisk_kit import FILE, PIECE, a_piece, a_store, show
from tests.bench.rounds import Plan, plan, ratio, show_target, take_turns

BARE = "bare O_DIRECT, fsync"
BLOCK = 128 * MIB


def main() -> None:
    piece, aligned = a_piece(), aligned_buffer(PIECE)
    aligned[:] = piece
    with (
        plan(__doc__, short=1.0, full=1.0) as how,
        how.place("bare") as folder,
        a_store(how, held=True, ram_capacity=FILE + 64 * MIB) as store,
    ):
        folder.mkdir()

        def bare() -> float:
            began = time.perf_counter()
            for number in range(FILE // BLOCK):
                descriptor = os.open(folder / f"{number}", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
                for at in range(0, BLOCK, PIECE):
                    os.pwrite(descriptor, aligned, at)
                os.fsync(descriptor)
                os.close(descriptor)
                above = os.open(folder, os.O_RDONLY)
                os.fsync(above)
                os.close(above)
            rate = FILE / GIB / (time.perf_counter() - began)
            for number in range(FILE // BLOCK):
                (folder / f"{number}").unlink()
            return rate

        def ours(mode: str, checksum: Checksum) -> float:
            store.set_copy_mode(mode)
            with store.create("file", checksum=checksum) as file:
                for _ in range(0, FILE, PIECE):
                    file.write(piece)
            before = store.core.meters.persist_busy_ns
            store.hold_persist(False)
            assert store.wait_persisted(120)
            store.hold_persist(True)
            spent = store.core.meters.persist_busy_ns - before
            store.delete("file")
            return FILE / GIB / (spent / 1e9)

        store.prepare_spares(4, BLOCK)
        found = take_turns(
            {
                BARE: bare,
                "direct, deferred": lambda: ours("direct", Checksum.DEFERRED),
                "direct, on": lambda: ours("direct", Checksum.ON),
                "buffered, deferred": lambda: ours("buffered", Checksum.DEFERRED),
                "sendfile, deferred": lambda: ours("sendfile", Checksum.DEFERRED),
                "fadvise, deferred": lambda: ours("fadvise", Checksum.DEFERRED),
            },
            how.rounds,
        ).found
        slowest = _slowest_start(how)
    show(found, BARE)
    show_target("ms from the end of a block to the begin of its copy, slowest of 100", slowest, most=10)
    for name in ("direct, deferred", "direct, on"):
        show_target(f"lazy writer {name}, of the bare bandwidth", ratio(found[name], found[BARE]), least=0.90)


def _slowest_start(how: Plan) -> float:
    """Return the most ms between finalising a block and opening it to be copied, each time after the queue drained."""
    opened: list[int] = []

    with a_store(how, ram_capacity=64 * MIB, block_size=4096) as store:
        store.core.calls.strike = lambda place: opened.append(time.monotonic_ns()) if place is Place.COPY_READ else None
        waited = []
        for number in range(100):
            opened.clear()
            with store.create(f"{number}", checksum=Checksum.DEFERRED) as file:
                file.write(bytes(4096))
            assert store.wait_persisted(60)
            waited.append((opened[0] - store.core.files[f"{number}"].blocks[0].since_ns) / 1e6)
    return max(waited)


if __name__ == "__main__":
    main()
