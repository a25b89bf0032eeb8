"""How near to a bare overwrite of tmpfs is a write to the RAM disk, and what do checksums cost it?

The bare loop writes the same buffer over the same 512 MiB file. Ours writes a file of four 128 MiB blocks from create
to close, over memory of a file that was deleted; the lazy writer is held, so that nothing shares the cores.
"""

from __future__ import annotations

import os
import time

from engine.ramdisk.replica import Checksum
from engine.ramdisk.store import Store
from engine.units import GIB, MIB
from tests.bench.ramdisk_kit import FILE, PIECE, a_piece, a_store, ram_folder, show
from tests.bench.rounds import plan, ratio, show_target, take_turns

BARE, OFF, DEFERRED = "bare tmpfs overwrite", "lazy, checksums off", "lazy, deferred"
INLINE, BESIDE = "lazy, checksums on, in line", "lazy, checksums on, beside the write"
SMALL = "lazy, checksums on, 512 B chunks"


def main() -> None:
    piece = a_piece()
    with (
        plan(__doc__, short=1.0, full=1.0) as how,
        ram_folder() as ram,
        a_store(how, held=True, ram_capacity=FILE + 16 * MIB) as store,
        a_store(how, held=True, ram_capacity=FILE + 16 * MIB, chunk=512) as small,
    ):
        descriptor = os.open(ram / "bare", os.O_CREAT | os.O_RDWR)

        def bare() -> float:
            began = time.perf_counter()
            for at in range(0, FILE, PIECE):
                os.pwrite(descriptor, piece, at)
            return FILE / GIB / (time.perf_counter() - began)

        def ours(store: Store, checksum: Checksum, *, beside: bool = True) -> float:
            helper = store.core.helper
            store.core.helper = helper if beside else None
            began = time.perf_counter()
            with store.create("file", checksum=checksum) as file:
                for _ in range(0, FILE, PIECE):
                    file.write(piece)
            rate = FILE / GIB / (time.perf_counter() - began)
            store.core.helper = helper
            store.delete("file")
            return rate

        bare()
        for each in (store, small):
            each.prepare_spares(4, 128 * MIB)
            ours(each, Checksum.ON)
        found = take_turns(
            {
                BARE: bare,
                OFF: lambda: ours(store, Checksum.OFF),
                DEFERRED: lambda: ours(store, Checksum.DEFERRED),
                INLINE: lambda: ours(store, Checksum.ON, beside=False),
                BESIDE: lambda: ours(store, Checksum.ON),
                SMALL: lambda: ours(small, Checksum.ON),
            },
            how.rounds,
        ).found
        os.close(descriptor)
    show(found, BARE)
    for name, least in ((DEFERRED, 0.85), (INLINE, 0.65), (BESIDE, 0.80)):
        show_target(f"{name}, of the bare rate", ratio(found[name], found[BARE]), least=least)
    for name, most in ((INLINE, 0.30), (BESIDE, 0.12), (DEFERRED, 0.02)):
        show_target(f"{name}: latency added by checksums", ratio(found[OFF], found[name]) - 1, most=most)


if __name__ == "__main__":
    main()
