"""How do our files compare with a real HDFS DataNode's on the same machine: same sizes, same disk, same tmpfs?

Both write files one after another, 128 MiB blocks, in turns, warm. Ours are written by a thread of this process, with
checksums of 512 bytes as HDFS has them, beside its default of 64 KiB. HDFS's client is a process of its own that sends
its bytes through a socket to the DataNode: that is how HDFS is used, and it is part of what is compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine.ramdisk.replica import Checksum, Policy
from engine.ramdisk.store import Store
from engine.storage.page_cache import empty_page_cache
from engine.units import KIB, MIB
from tests.bench.hdfs import Hdfs, build, hdfs
from tests.bench.ramdisk_kit import PIECE, a_piece, a_store, ram_folder, show
from tests.bench.rounds import Skipped, plan, ratio, say, show_target, take_turns

FILES = 3
PAIRS = (  # (what, ours: policy and checksums, theirs: place and checksums)
    ("lazy, checksums on", Policy.LAZY, Checksum.ON, "LAZY", "CRC32C"),
    ("lazy, deferred; NULL", Policy.LAZY, Checksum.DEFERRED, "LAZY", "NULL"),
    ("disk, checksums on", Policy.DISK, Checksum.ON, "DISK", "CRC32C"),
    ("disk-sync, checksums on", Policy.DISK_SYNC, Checksum.ON, "DISK+SYNC", "CRC32C"),
)
LEAST = 2.0


def main() -> None:
    piece, never = a_piece(), threading.Event()
    with plan(__doc__, short=1.0, full=1.0, rounds=5) as how:
        try:
            build()
        except Skipped as reason:
            say(f"skipped: {reason}")
            return
        size = (512 if how.full else 256) * MIB
        memory = FILES * size + 256 * MIB
        settings = (
            f"dfs.datanode.max.locked.memory={memory}",
            "dfs.datanode.lazywriter.interval.sec=1",
            "dfs.heartbeat.interval=1",  # deletes reach the DataNode with a heartbeat
        )
        with (
            ram_folder() as ram,
            how.place("hdfs") as base,
            a_store(how, ram_capacity=memory, chunk=512) as small,
            a_store(how, ram_capacity=memory, chunk=64 * KIB) as large,
            hdfs(base, ram, base.with_name("java.log"), *settings) as server,
        ):

            def ours(store: Store, policy: Policy, checksum: Checksum) -> float:
                empty_page_cache()
                seconds = []
                for number in range(FILES):
                    began = time.perf_counter()
                    with store.create(f"{number}", policy=policy, checksum=checksum) as file:
                        for _ in range(0, size, PIECE):
                            file.write(piece)
                    seconds.append(time.perf_counter() - began)
                assert store.wait_persisted(120)
                for number in range(FILES):
                    store.delete(f"{number}")
                return sum(seconds) / FILES

            def theirs(server: Hdfs, place: str, checksum: str) -> float:
                empty_page_cache()
                seconds, storage = server.seconds_a_file(place, checksum, size // MIB, FILES)
                if (storage == "RAM_DISK") != (place == "LAZY"):
                    say(f"HDFS put a {place} file on {storage}")
                never.wait(3)  # a DataNode frees memory when it likes, and says nothing that could be awaited
                return seconds

            contenders: dict[str, Callable[[], float]] = {}
            for what, policy, checksum, place, theirs_sum in PAIRS:
                contenders[f"ours, {what}"] = lambda policy=policy, checksum=checksum: ours(large, policy, checksum)
                contenders[f"ours 512 B, {what}"] = lambda policy=policy, checksum=checksum: ours(
                    small, policy, checksum
                )
                contenders[f"HDFS, {what}"] = lambda place=place, theirs_sum=theirs_sum: theirs(
                    server, place, theirs_sum
                )
            for warm in contenders.values():
                warm()
            found = take_turns(contenders, how.rounds).found
    show(found, f"HDFS, {PAIRS[0][0]}", "s a file")
    for what, *_ in PAIRS:
        for name in (f"ours, {what}", f"ours 512 B, {what}"):
            show_target(f"{name}: times as fast as HDFS", ratio(found[f"HDFS, {what}"], found[name]), least=LEAST)


if __name__ == "__main__":
    main()
