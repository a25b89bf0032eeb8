"""What goes wrong below a store: full and failing disks, memory that goes away, bytes that change."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from engine.errors import BadValue, FileTrouble, UnknownChoice
from engine.ramdisk.errors import CorruptReplica, FileLost, NoRoom, NotAStore, NotTmpfs, StoreClosed, StoreLocked
from engine.ramdisk.replica import Checksum, Policy, State
from engine.storage.file_calls import Place
from tests.ramdisk.store_kit import BLOCK, Kit, content, put
from tests.waiting import wait_for

DEADLINE = 20.0
COPY_PLACES = [
    Place.COPY_READ,
    Place.COPY_CREATE,
    Place.COPY_WRITE,
    Place.COPY_SYNC,
    Place.COPY_PUBLISH,
    Place.FOLDER_SYNC,
]


@pytest.mark.parametrize("place", COPY_PLACES, ids=lambda place: place.name.lower())
def test_a_failed_copy_is_retried_and_the_block_stays_at_risk_until_then(kit: Kit, place: Place) -> None:
    store = kit.open()
    kit.faults.at(place, errno.EIO)
    put(store, "a", content(1, BLOCK))

    wait_for(lambda: store.core.meters.persist_errors >= 3)
    assert store.core.tracker.backlog_bytes == BLOCK
    assert store.core.tracker.failing == 1
    assert store.files()[0].at_risk_bytes == BLOCK
    assert kit.said("stays at risk") and kit.said("Input/output error")
    assert store.read("a") == content(1, BLOCK)

    kit.faults.clear()
    assert store.wait_persisted(DEADLINE)
    assert store.core.tracker.failing == 0
    assert kit.disk_files("*.copying") == []
    store.close()
    assert kit.open().read("a") == content(1, BLOCK)


def test_after_a_failed_sync_the_copy_is_made_anew(kit: Kit) -> None:
    store = kit.open()
    kit.faults.at(Place.COPY_SYNC, errno.EIO, times=1)

    put(store, "a", content(1, BLOCK))

    assert store.wait_persisted(DEADLINE)
    assert kit.faults.seen[Place.COPY_CREATE] == 2  # a sync that failed is not asked again: it could lie


def test_a_copy_is_named_after_its_sync_and_its_folder_is_synced_then(kit: Kit) -> None:
    order: list[Place] = []
    store = kit.open(held=True)
    put(store, "a", content(1, BLOCK))
    store.core.calls.strike = order.append
    store.hold_persist(False)

    assert store.wait_persisted(DEADLINE)
    wait_for(lambda: Place.PERSISTED in order)

    kept = [place for place in order if place in (*COPY_PLACES[2:], Place.PERSISTED)]
    syncing = kept.index(Place.COPY_SYNC)
    assert set(kept[:syncing]) == {Place.COPY_WRITE}
    assert kept[syncing:] == [Place.COPY_SYNC, Place.COPY_PUBLISH, Place.FOLDER_SYNC, Place.PERSISTED]


def test_a_full_disk_keeps_blocks_in_memory_until_there_is_room(kit: Kit) -> None:
    store = kit.open()
    kit.faults.at(Place.COPY_WRITE, errno.ENOSPC)
    put(store, "a", content(1, BLOCK))
    wait_for(lambda: store.core.meters.persist_errors >= 1)
    assert kit.said("No space left on device")

    kit.faults.clear()

    assert store.wait_persisted(DEADLINE)


def test_a_failing_disk_does_not_hold_up_the_other(two_disks: Kit) -> None:
    store = two_disks.open()
    shutil.rmtree(two_disks.disk / "volume-0" / "replicas")  # every copy to it fails from here

    put(store, "a", content(1, 6 * BLOCK))

    assert store.wait_persisted(DEADLINE)
    assert {block.volume for block in store.core.files["a"].blocks} == {1}
    assert store.read("a") == content(1, 6 * BLOCK)


def test_a_read_only_disk_is_reported_and_survived(kit: Kit) -> None:
    store = kit.open()
    kit.faults.at(Place.COPY_CREATE, errno.EROFS)
    put(store, "a", content(1, BLOCK))

    wait_for(lambda: kit.said("Read-only file system"))

    assert store.read("a") == content(1, BLOCK)
    kit.faults.clear()
    store.retry_now()
    assert store.wait_persisted(DEADLINE)


@pytest.mark.parametrize("checksum", list(Checksum), ids=lambda c: c.value)
@pytest.mark.parametrize("skip", [0, 1, 2], ids=["at-once", "half-way", "later"])
def test_a_tmpfs_that_fills_up_under_us_moves_the_block_to_disk(kit: Kit, skip: int, checksum: Checksum) -> None:
    store = kit.open(held=True, checksum=checksum, checksum_beside=False)
    kit.faults.at(Place.RAM_WRITE, errno.ENOSPC, skip=skip)
    data = content(1, 2 * BLOCK + 500)

    with store.create("a") as file:
        for at in range(0, len(data), 100_000):
            file.write(data[at : at + 100_000])

    # The last two blocks meet a memory that is full from their first byte; what was begun is moved all the same.
    assert store.core.meters.moved_blocks == 3
    assert store.core.meters.fallback_blocks == 3
    assert store.core.memory.reserved == 0
    assert kit.said("the block goes to disk")
    kit.faults.clear()
    store.hold_persist(False)
    assert store.wait_persisted(DEADLINE)
    with store.open_file("a") as reader:
        assert reader.read() == data
        assert reader.verify() == (0 if checksum is Checksum.OFF else len(data))
    assert kit.ram_files("*.open") == []


def test_memory_that_the_file_system_does_not_have_is_not_reserved(kit: Kit) -> None:
    store = kit.open(held=True)
    store.core.memory._really_free = lambda: BLOCK  # another program has taken the rest

    put(store, "a", content(1, 2 * BLOCK))

    assert store.core.meters.fallback_blocks == 2


def test_a_ram_folder_that_is_deleted_loses_what_was_only_there_and_names_it(kit: Kit) -> None:
    store = kit.open(held=True)
    put(store, "a", content(1, 2 * BLOCK))
    shutil.rmtree(store.core.ram.path)

    store.hold_persist(False)
    wait_for(lambda: store.core.meters.lost_blocks == 2)

    assert kit.said("block 0 of 'a' is lost") and kit.said("block 1 of 'a' is lost")
    assert store.core.tracker.backlog_bytes == 0
    assert store.core.memory.used == 0
    with pytest.raises(FileLost, match="2 of 2 blocks"):
        store.read("a")
    put(store, "b", content(2, BLOCK))
    assert store.core.meters.fallback_blocks == 1
    assert store.read("b") == content(2, BLOCK)


def test_a_disk_without_room_refuses_a_block_that_memory_cannot_take(kit: Kit) -> None:
    store = kit.open(ram_capacity=0)
    kit.faults.at(Place.DISK_WRITE, errno.ENOSPC)

    with pytest.raises(FileTrouble, match="No space left on device"), store.create("a") as file:
        file.write(content(1, BLOCK))

    assert kit.disk_files() == []
    assert store.files() == ()


def test_a_block_larger_than_every_disk_is_refused_with_advice(kit: Kit) -> None:
    store = kit.open(ram_capacity=0)
    huge = 1 << 40

    with pytest.raises(NoRoom, match=r"no room for a block of .*; delete files, or use --block-size"):
        store.create("a", block_size=huge).write(b"x")


def flip(path: Path, offset: int) -> None:
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 4]))


def test_a_corrupt_ram_replica_is_never_persisted(kit: Kit) -> None:
    store = kit.open(held=True)
    put(store, "a", content(1, 2 * BLOCK))
    flip(kit.ram_files()[1], 100_000)

    store.hold_persist(False)
    wait_for(lambda: store.core.meters.corrupt_blocks == 1)

    where = BLOCK + 100_000 // 16384 * 16384
    assert kit.said(f"'a': block 1 is corrupt at byte {where:,} of the file") and kit.said("it is not persisted")
    assert len(kit.disk_files()) == 1
    assert store.core.files["a"].blocks[1].state is State.CORRUPT
    with pytest.raises(CorruptReplica, match=f"block 1 is corrupt at byte {where:,}"):
        store.read("a")
    assert store.read("a", 0, BLOCK) == content(1, BLOCK * 2)[:BLOCK]


def test_a_corrupt_ram_copy_of_a_persisted_block_gives_way_to_the_disk_copy(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", content(1, BLOCK))
    assert store.wait_persisted(DEADLINE)
    flip(kit.ram_files()[0], 5)

    assert store.read("a") == content(1, BLOCK)

    assert kit.said("the disk copy is used instead")
    assert kit.ram_files() == []
    assert store.core.memory.used == 0
    assert store.core.meters.corrupt_blocks == 1


@pytest.mark.parametrize("where", ["data", "checksums", "footer", "cut"])
def test_damage_of_a_disk_copy_is_found_on_read(kit: Kit, where: str) -> None:
    store = kit.open(checksum=Checksum.DEFERRED)
    put(store, "a", content(1, BLOCK))
    assert store.wait_persisted(DEADLINE)
    store.core.lower_capacity(0)
    wait_for(lambda: store.core.meters.evicted_blocks == 1)
    (path,) = kit.disk_files()
    if where == "cut":
        os.truncate(path, BLOCK)
    else:
        flip(path, {"data": 20_000, "checksums": BLOCK + 3, "footer": path.stat().st_size - 100}[where])

    with pytest.raises(CorruptReplica, match=r"'a': block 0 is corrupt at byte"):
        store.read("a")


def test_deferred_checksums_reach_the_ram_copy_too(kit: Kit) -> None:
    store = kit.open(checksum=Checksum.DEFERRED)
    put(store, "a", content(1, BLOCK + 77))
    with store.open_file("a") as reader:
        assert store.wait_persisted(DEADLINE)
        assert reader.verify() == BLOCK + 77
    flip(kit.ram_files()[0], 5)

    assert store.read("a") == content(1, BLOCK + 77)

    assert kit.said("the disk copy is used instead")


def test_a_wiped_ram_disk_names_the_lost_files_and_nothing_else_is_lost(kit: Kit) -> None:
    store = kit.open()
    put(store, "safe", content(1, 2 * BLOCK))
    assert store.wait_persisted(DEADLINE)
    store.hold_persist(True)
    put(store, "gone", content(2, 3 * BLOCK))
    put(store, "on disk", content(3, BLOCK), policy=Policy.DISK_SYNC)
    ram = store.core.ram.path
    store.close()
    shutil.rmtree(ram)

    again = kit.open()

    assert again.recovered.ram_was_wiped
    assert [(lost.name, lost.lost_blocks, lost.size) for lost in again.recovered.lost] == [("gone", 3, 3 * BLOCK)]
    assert "1 files were in memory only and are lost: 'gone'" in again.recovered.to_text()
    with pytest.raises(FileLost, match="3 of 3 blocks"):
        again.read("gone")
    assert again.read("safe") == content(1, 2 * BLOCK)
    assert again.read("on disk") == content(3, BLOCK)
    again.delete("gone")
    again.close()
    assert kit.open().recovered.lost == ()


def test_duplicates_resolve_to_the_disk_copy_and_half_copies_go(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", content(1, BLOCK))
    assert store.wait_persisted(DEADLINE)
    disk, ram = kit.disk_files()[0], kit.ram_files()[0]
    store.close()
    (disk.parent / f"{99:016x}.copying").write_bytes(b"half")
    (ram.parent / f"{98:016x}.open").write_bytes(b"half")
    shutil.copy(disk, disk.parent / f"{97:016x}.replica")  # of no file, and its footer says another block

    again = kit.open()

    assert kit.ram_files("*") == []
    assert kit.disk_files() == [disk]
    assert again.recovered.removed_files == 4
    assert again.read("a") == content(1, BLOCK)


def test_a_store_has_one_owner_at_a_time(kit: Kit) -> None:
    kit.open()

    with pytest.raises(StoreLocked, match=f"process {os.getpid()} has this store open"):
        kit.open()


def test_folders_of_something_else_are_refused(kit: Kit) -> None:
    (kit.disk / "volume-0").mkdir()
    (kit.disk / "volume-0" / "thesis.txt").write_text("mine")

    with pytest.raises(NotAStore, match=r"it holds 'thesis.txt'; use an empty directory"):
        kit.open()
    assert sorted(path.name for path in (kit.disk / "volume-0").iterdir()) == ["thesis.txt"]


def test_volumes_must_be_those_of_the_store_in_their_order(two_disks: Kit) -> None:
    two_disks.open().close()
    first, second = two_disks.settings.disk_dirs

    with pytest.raises(NotAStore, match="its store has 2 disk directories, 1 were given"):
        two_disks.open(disk_dirs=(first,))
    with pytest.raises(NotAStore, match="it is disk directory 2 of its store, given as number 1"):
        two_disks.open(disk_dirs=(second, first))


def test_a_directory_that_is_no_tmpfs_is_refused_unless_it_is_meant(kit: Kit) -> None:
    with pytest.raises(NotTmpfs, match=r"not tmpfs: what is written there is not in memory; use --ram-dir /dev/shm"):
        kit.open(ram_dir=kit.disk)

    store = kit.open(ram_dir=kit.disk, ram_dir_may_be_disk=True)

    assert "not tmpfs" in store.core.ram.label
    put(store, "a", content(1, BLOCK))
    assert store.read("a") == content(1, BLOCK)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block_size": 5000}, "multiple of 4096"),
        ({"chunk": 1000}, "power of two from 512B"),
        ({"disk_dirs": ()}, "one or more"),
        ({"copy_mode": "sendfil"}, "did you mean sendfile"),
    ],
    ids=["block", "chunk", "no-disk", "mode"],
)
def test_settings_that_cannot_be_are_refused(kit: Kit, change: dict[str, object], words: str) -> None:
    with pytest.raises((BadValue, UnknownChoice), match=words):
        kit.open(**change)


def test_a_closed_store_says_so(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", b"1")
    store.close()

    with pytest.raises(StoreClosed, match="this store is closed"):
        store.read("a")
    with pytest.raises(StoreClosed):
        store.create("b")


def test_closing_does_not_wait_for_a_long_copy(kit: Kit) -> None:
    store = kit.open(persist_rate=1000)  # minutes for one block
    put(store, "a", content(1, BLOCK))
    wait_for(lambda: store.core.persisting_since)

    assert store.close()

    assert kit.open(held=True, persist_rate=0).recovered.blocks_in_ram == 1


def test_deleting_while_a_block_is_copied_leaves_nothing(kit: Kit) -> None:
    gate = kit.faults.gates[Place.COPY_SYNC] = threading.Event()
    store = kit.open()
    put(store, "a", content(1, BLOCK))
    wait_for(lambda: kit.disk_files("*.copying"))

    store.delete("a")
    gate.set()

    wait_for(lambda: not store.core.persisting_since)
    wait_for(lambda: not kit.disk_files())
    assert kit.ram_files() == []
    wait_for(lambda: store.core.memory.used == 0)


def test_the_persist_rate_is_a_limit(kit: Kit) -> None:
    store = kit.open(persist_rate=4 * BLOCK)
    put(store, "a", content(1, 3 * BLOCK))

    assert store.wait_persisted(DEADLINE)

    # The first piece goes at once; each later one waits for its share of a second.
    assert store.core.meters.persist_busy_ns >= 0.5e9
