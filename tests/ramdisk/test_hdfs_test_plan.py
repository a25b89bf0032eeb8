"""HDFS's own test plan for lazy persistence (HDFS-6581), as far as it makes sense outside a cluster."""

from __future__ import annotations

import itertools

import pytest

from engine.errors import BadValue
from engine.ramdisk.errors import NameTaken, NoSuchFile, NotAllowed
from engine.ramdisk.replica import Checksum, Policy, State
from engine.units import MIB
from tests.ramdisk.store_kit import BLOCK, Kit, content, put
from tests.waiting import run_threads, wait_for

DEADLINE = 20.0


def test_a_lazy_file_is_placed_in_memory(kit: Kit) -> None:
    store = kit.open(held=True)

    put(store, "a", content(1, 3 * BLOCK))

    assert len(kit.ram_files()) == 3
    assert kit.disk_files() == []
    meters = store.core.meters
    assert (meters.ram_blocks_written, meters.ram_bytes_written, meters.fallback_blocks) == (3, 3 * BLOCK, 0)
    assert store.core.tracker.backlog_bytes == 3 * BLOCK


def test_memory_is_not_chosen_for_another_policy(kit: Kit) -> None:
    store = kit.open()

    put(store, "a", content(1, BLOCK), policy=Policy.DISK)
    put(store, "b", content(2, BLOCK), policy=Policy.DISK_SYNC)

    assert kit.ram_files() == []
    assert len(kit.disk_files("*.replica")) == 2
    assert store.core.meters.fallback_blocks == 0
    assert store.read("a") == content(1, BLOCK)


def test_without_capacity_every_lazy_block_falls_back(kit: Kit) -> None:
    store = kit.open(ram_capacity=0)

    put(store, "a", content(1, 2 * BLOCK + 5))

    assert kit.ram_files("*") == []
    assert store.core.meters.fallback_blocks == 3
    assert store.wait_persisted(DEADLINE)
    assert store.read("a") == content(1, 2 * BLOCK + 5)


def test_memory_is_limited_by_capacity_and_the_rest_of_a_file_falls_back(kit: Kit) -> None:
    store = kit.open(ram_capacity=3 * (BLOCK + 4096), held=True)

    put(store, "a", content(1, 5 * BLOCK))

    assert len(kit.ram_files()) == 3
    assert len(kit.disk_files("*.replica")) == 2
    assert (store.core.meters.fallback_blocks, store.core.meters.fallback_bytes) == (2, 2 * BLOCK)
    assert store.read("a") == content(1, 5 * BLOCK)


def test_a_reservation_is_the_whole_block_and_finalise_gives_the_tail_back(kit: Kit) -> None:
    store = kit.open(held=True)
    memory = store.core.memory
    file = store.create("a")

    file.write(b"x")

    assert memory.reserved == BLOCK + 4096  # the block, and a page of checksums and footer
    file.close()
    assert (memory.reserved, memory.used) == (0, 4096)


def test_dropping_a_file_being_written_releases_its_memory(kit: Kit) -> None:
    store = kit.open(held=True)

    with pytest.raises(KeyError), store.create("a") as file:
        file.write(content(1, BLOCK + 7))
        raise KeyError

    memory = store.core.memory
    assert (memory.reserved, memory.used) == (0, 0)
    assert kit.ram_files("*.open") == kit.ram_files() == []
    assert store.files() == ()
    put(store, "a", b"again")


def test_a_persisted_block_is_evicted_for_a_new_one(kit: Kit) -> None:
    store = kit.open(ram_capacity=BLOCK + 4096)
    put(store, "a", content(1, BLOCK))
    assert store.wait_persisted(DEADLINE)

    put(store, "b", content(2, BLOCK))

    meters = store.core.meters
    assert (meters.evicted_blocks, meters.evicted_without_read, meters.fallback_blocks) == (1, 1, 0)
    assert sum(meters.eviction_window.counts) == 1
    assert store.read("a") == content(1, BLOCK)
    assert store.read("b") == content(2, BLOCK)


def test_a_block_is_not_evicted_before_it_is_persisted(kit: Kit) -> None:
    store = kit.open(ram_capacity=BLOCK + 4096, held=True)
    put(store, "a", content(1, BLOCK))

    put(store, "b", content(2, BLOCK))

    assert store.core.meters.evicted_blocks == 0
    assert store.core.meters.fallback_blocks == 1
    assert store.read("a") == content(1, BLOCK)
    assert store.read("b") == content(2, BLOCK)


def test_eviction_follows_the_order_of_reading(kit: Kit) -> None:
    store = kit.open(ram_capacity=5 * (BLOCK + 4096))
    for k in range(5):
        put(store, f"old {k}", content(k, BLOCK))
    assert store.wait_persisted(DEADLINE)
    wait_for(lambda: len(store.core.tracker.evictable) == 5)
    order = [3, 0, 4, 2, 1]
    for k in order:
        assert store.read(f"old {k}") == content(k, BLOCK)

    evicted = []
    for k in range(5):
        put(store, f"new {k}", content(10 + k, BLOCK))
        in_ram = {file.name: file.in_ram_bytes for file in store.files()}
        evicted += [n for n in range(5) if not in_ram[f"old {n}"] and n not in evicted]

    assert evicted == order
    meters = store.core.meters
    assert (meters.evicted_blocks, meters.evicted_without_read, meters.ram_reads) == (5, 0, 5)


def test_a_block_that_is_open_is_not_evicted(kit: Kit) -> None:
    store = kit.open(ram_capacity=BLOCK + 4096)
    put(store, "a", content(1, BLOCK))
    assert store.wait_persisted(DEADLINE)

    with store.open_file("a") as reader:
        assert reader.read(0, 100) == content(1, BLOCK)[:100]
        put(store, "b", content(2, BLOCK))
        assert store.core.meters.evicted_blocks == 0
        assert reader.read(1000, 500) == content(1, BLOCK)[1000:1500]


def test_deleting_before_persist_saves_the_io(kit: Kit) -> None:
    store = kit.open(held=True)
    put(store, "a", content(1, 2 * BLOCK))

    store.delete("a")
    store.hold_persist(False)

    meters = store.core.meters
    assert (meters.deleted_before_persist_blocks, meters.deleted_before_persist_bytes) == (2, 2 * BLOCK)
    assert store.wait_persisted(DEADLINE)
    assert meters.persisted_blocks == 0
    assert kit.ram_files() == kit.disk_files() == []
    assert store.core.memory.used == 0
    with pytest.raises(NoSuchFile, match="no file 'a'"):
        store.read("a")


def test_deleting_after_persist_removes_both_copies(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", content(1, 2 * BLOCK))
    assert store.wait_persisted(DEADLINE)
    assert len(kit.disk_files("*.replica")) == len(kit.ram_files()) == 2

    store.delete("a")

    assert kit.ram_files() == kit.disk_files() == []
    assert store.core.meters.deleted_before_persist_blocks == 0
    assert store.core.memory.used == 0


def test_memory_use_is_unchanged_by_persist_and_restored_by_delete(kit: Kit) -> None:
    store = kit.open(held=True)
    before = store.core.memory.used
    put(store, "a", content(1, BLOCK))
    written = store.core.memory.used

    store.hold_persist(False)
    assert store.wait_persisted(DEADLINE)

    assert store.core.memory.used == written == BLOCK + 4096
    store.delete("a")
    assert store.core.memory.used == before == 0


def test_after_a_restart_a_saved_block_is_a_disk_block(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", content(1, 2 * BLOCK))
    assert store.wait_persisted(DEADLINE)
    store.close()

    again = kit.open()

    assert (again.recovered.blocks_on_disk, again.recovered.blocks_in_ram, again.recovered.lost) == (2, 0, ())
    assert kit.ram_files() == []
    assert again.read("a") == content(1, 2 * BLOCK)


def test_after_a_restart_an_unsaved_block_is_in_memory_counted_and_persisted(kit: Kit) -> None:
    store = kit.open(held=True)
    put(store, "a", content(1, 2 * BLOCK))
    used = store.core.memory.used
    store.close()

    again = kit.open(held=True)

    assert (again.recovered.blocks_on_disk, again.recovered.blocks_in_ram) == (0, 2)
    assert again.core.memory.used == used
    assert again.read("a") == content(1, 2 * BLOCK)
    again.hold_persist(False)
    assert again.wait_persisted(DEADLINE)
    assert len(kit.disk_files("*.replica")) == 2


def test_append_and_truncate_are_refused(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", b"1")

    with pytest.raises(NotAllowed, match="appending is not allowed"):
        store.append("a")
    with pytest.raises(NotAllowed, match="truncating to 0 bytes is not allowed"):
        store.truncate("a", 0)
    with pytest.raises(NameTaken, match="already in this store"):
        store.create("a")


@pytest.mark.parametrize("checksum", list(Checksum), ids=lambda c: c.value)
@pytest.mark.parametrize("mode", ["buffered", "sendfile", "direct", "fadvise"])
@pytest.mark.parametrize("size", [1, 4095, 4096, BLOCK - 1, BLOCK, 2 * BLOCK + 12345], ids=str)
def test_content_survives_every_way_of_copying(kit: Kit, mode: str, checksum: Checksum, size: int) -> None:
    store = kit.open(copy_mode=mode, checksum=checksum)
    put(store, "a", content(size, size))
    assert store.wait_persisted(DEADLINE)
    store.close()

    again = kit.open()

    assert again.recovered.blocks_in_ram == 0
    with again.open_file("a") as reader:
        assert reader.read() == content(size, size)
        assert reader.verify() == (0 if checksum is Checksum.OFF else size)


def test_readers_and_writers_at_once_see_their_own_files_whole(kit: Kit) -> None:
    store = kit.open(ram_capacity=2 * MIB)  # far less than is written: eviction and fallback join in

    def write_and_read(worker: int) -> None:
        for round_ in range(6):
            name, data = f"{worker}-{round_}", content(worker * 100 + round_, BLOCK + worker * 1000)
            put(store, name, data)
            assert store.read(name) == data
            if round_ >= 2:
                store.delete(f"{worker}-{round_ - 2}")
                assert store.read(f"{worker}-{round_ - 1}") == content(worker * 100 + round_ - 1, len(data))

    run_threads(*(lambda w=w: write_and_read(w) for w in range(6)), deadline=60)

    assert len(store.files()) == 12
    assert store.wait_persisted(DEADLINE)


def test_two_disks_both_take_part(two_disks: Kit) -> None:
    store = two_disks.open(held=True)
    put(store, "a", content(1, 12 * BLOCK))

    store.hold_persist(False)

    assert store.wait_persisted(DEADLINE)
    volumes = [block.volume for block in store.core.files["a"].blocks]
    assert set(volumes) == {0, 1}
    assert store.read("a") == content(1, 12 * BLOCK)


def test_volumes_that_wait_take_turns(two_disks: Kit) -> None:
    store = two_disks.open()
    for k in range(6):
        put(store, f"{k}", content(k, 4096))
        assert store.wait_persisted(DEADLINE)

    volumes = [store.core.files[f"{k}"].blocks[0].volume for k in range(6)]

    assert all(one != next_one for one, next_one in itertools.pairwise(volumes)), volumes


def test_persist_starts_at_once_and_not_at_a_poll(kit: Kit) -> None:
    store = kit.open()
    put(store, "a", content(1, 4096))
    assert store.wait_persisted(DEADLINE)

    put(store, "b", content(2, 4096))  # the queue had just drained: HDFS would sleep for 60 s now

    assert store.wait_persisted(DEADLINE)
    assert store.core.meters.persisted_blocks == 2


def test_eviction_ahead_of_need_keeps_the_low_watermark(kit: Kit) -> None:
    store = kit.open(ram_capacity=4 * (BLOCK + 4096), low_watermark=2 * (BLOCK + 4096))

    put(store, "a", content(1, 4 * BLOCK))

    wait_for(lambda: store.core.meters.evicted_blocks == 2)  # counted last, memory is free before
    assert store.core.memory.free == 2 * (BLOCK + 4096)
    assert store.core.meters.write_stalls == 0
    assert store.read("a") == content(1, 4 * BLOCK)


def test_a_freed_file_is_written_over_by_the_next_block(kit: Kit) -> None:
    store = kit.open(held=True)
    put(store, "a", content(1, BLOCK))
    inode = kit.ram_files()[0].stat().st_ino
    store.delete("a")
    assert store.core.memory.spare == BLOCK + 4096

    put(store, "b", content(2, BLOCK - 9000))

    (path,) = kit.ram_files()
    assert path.stat().st_ino == inode
    assert store.core.memory.spare == 0
    assert (store.core.meters.recycled_files, store.core.meters.ram_blocks_written) == (1, 2)
    assert store.read("b") == content(2, BLOCK - 9000)


def test_a_block_has_its_whole_size_while_it_is_written(kit: Kit) -> None:
    store = kit.open(held=True)
    file = store.create("a")
    file.write(content(1, 5000))
    (path,) = kit.ram_files("*.open")
    size = path.stat().st_size
    file.close()

    assert size == BLOCK + 4096  # a tmpfs that gives huge pages gives them within a file's size
    assert kit.ram_files()[0].stat().st_size == 8192


def test_spare_files_give_way_to_reservations(kit: Kit) -> None:
    store = kit.open(held=True, ram_capacity=4 * (BLOCK + 4096))
    assert store.prepare_spares(4, BLOCK) == 4
    assert store.core.memory.spare == 4 * (BLOCK + 4096)

    put(store, "a", content(1, 4 * BLOCK))

    assert store.core.meters.fallback_blocks == 0
    assert store.core.meters.recycled_files == 4
    assert store.core.memory.spare == 0


@pytest.mark.parametrize("name", ["", "a\0b", "tab\t", "x" * 5000], ids=["empty", "nul", "control", "long"])
def test_a_name_that_cannot_be_is_refused(kit: Kit, name: str) -> None:
    store = kit.open()

    with pytest.raises(BadValue, match="file name"):
        store.create(name)


def test_states_follow_the_block(kit: Kit) -> None:
    store = kit.open(held=True, ram_capacity=BLOCK + 4096)
    put(store, "a", content(1, BLOCK))
    block = store.core.files["a"].blocks[0]
    states = [block.state]

    store.hold_persist(False)
    assert store.wait_persisted(DEADLINE)
    states.append(block.state)
    put(store, "b", content(2, BLOCK))
    states.append(block.state)

    assert states == [State.AT_RISK, State.PERSISTED, State.ON_DISK]
