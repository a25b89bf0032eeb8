"""The fault table, the journal, and what a crash may leave of a file."""

from __future__ import annotations

import errno
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engine.storage.device import make_device, parse_device
from engine.storage.faults import SECTOR, Fault, FaultTable, Site, arm
from engine.units import Bytes, Nanoseconds
from tests.storage.device_kernels import DeviceFile
from tests.waiting import wait_for


@pytest.fixture
def device() -> npt.NDArray[np.void]:
    return make_device(parse_device("real"), "fdatasync")


@pytest.fixture
def file(device: npt.NDArray[np.void], disk_path: Path) -> Iterator[DeviceFile]:
    made = DeviceFile(device, disk_path)
    yield made
    made.close()


# ---- Planned faults.


def test_the_nth_call_fails_and_no_other(device, file):
    table = FaultTable(Fault(Site.WRITE, 2, code=errno.ENOSPC), Fault(Site.SYNC, 3, code=errno.EIO))
    table.attach(device)

    assert [file.write(b"x", 0) for _ in range(4)] == [0, -errno.ENOSPC, 0, 0]
    assert [file.sync() for _ in range(4)] == [0, 0, -errno.EIO, 0]


def test_a_failed_write_leaves_the_file_and_a_failed_sync_the_journal_as_they_were(device, file):
    table = FaultTable(Fault(Site.WRITE, 1, code=errno.EIO), Fault(Site.SYNC, 1, code=errno.EIO))
    table.attach(device)

    file.write(b"x", 0)
    file.sync()

    assert file.path.read_bytes() == bytes(8192)
    assert device["journal_count"][0] == 0


def test_from_the_nth_call_on_each_fails(device, file):
    FaultTable(Fault(Site.SYNC, 2, code=errno.EIO, every=True)).attach(device)

    assert [file.sync() for _ in range(4)] == [0, -errno.EIO, -errno.EIO, -errno.EIO]


def test_faults_armed_on_a_live_device_count_from_then(device, file):
    assert [file.sync(), file.write(b"x", 0)] == [0, 0]

    arm(device, (Fault(Site.SYNC, 2, code=errno.EIO), Fault(Site.WRITE, 1, code=errno.EDQUOT)))

    assert [file.sync(), file.sync(), file.write(b"x", 0)] == [0, -errno.EIO, -errno.EDQUOT]


def test_an_interrupted_write_goes_on_and_an_interrupted_sync_fails(device, file):
    FaultTable(Fault(Site.WRITE, 1, code=errno.EINTR), Fault(Site.SYNC, 1, code=errno.EINTR)).attach(device)

    assert file.write(b"hello", 0) == 0
    assert file.sync() == -errno.EINTR

    assert file.path.read_bytes()[:5] == b"hello"


@pytest.mark.parametrize("short", [1, 3, 512, 1999])
def test_short_writes_go_on_where_they_stopped(device, file, short):
    table = FaultTable(Fault(Site.WRITE, 1, every=True, short_bytes=Bytes(short)))
    table.attach(device)
    payload = bytes(k % 251 for k in range(2000))

    assert file.write(payload, 100) == 0

    assert file.path.read_bytes()[100:2100] == payload
    assert device["write_calls"][0] == -(-2000 // short)


def test_a_write_that_fails_halfway_says_so(device, file):
    FaultTable(Fault(Site.WRITE, 1, short_bytes=Bytes(700)), Fault(Site.WRITE, 2, code=errno.EIO)).attach(device)

    assert file.write(b"x" * 1000, 0) == -errno.EIO

    assert file.path.read_bytes()[:1000] == b"x" * 700 + bytes(300)


@pytest.mark.parametrize("site", [Site.WRITE, Site.SYNC])
def test_a_planned_stall_delays_its_call(device, file, site):
    FaultTable(Fault(site, 1, stall_ns=Nanoseconds(300_000_000))).attach(device)
    done = threading.Event()

    def run() -> None:
        file.write(b"x", 0) if site is Site.WRITE else file.sync()
        done.set()

    thread = threading.Thread(target=run, name="stalled")
    thread.start()
    assert not done.wait(0.05)
    thread.join(20)
    assert done.is_set()


def test_a_call_that_stalls_has_been_counted_by_every_row(device, file):
    """Or the next call, which passes it, would take its place in the rows behind."""
    stall = Fault(Site.SYNC, 1, stall_ns=Nanoseconds(300_000_000))
    FaultTable(stall, Fault(Site.SYNC, 2, code=errno.EIO)).attach(device)
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(file.sync()), name="stalled")
    thread.start()
    wait_for(lambda: device["sync_calls"][0] == 1)

    assert file.sync() == -errno.EIO

    thread.join(20)
    assert results == [0]


def test_more_faults_than_rows_are_refused():
    with pytest.raises(ValueError, match="17 faults planned, the table has 16 rows"):
        FaultTable(*[Fault(Site.SYNC, k) for k in range(17)])


def test_a_preallocation_fails_as_planned(tmp_path):
    table = FaultTable(Fault(Site.PREALLOCATE, 2, code=errno.ENOSPC))
    with (tmp_path / "file").open("wb", buffering=0) as target:
        assert table.preallocate_write(target.fileno(), b"one", 0) == 3
        with pytest.raises(OSError, match="No space left"):
            table.preallocate_write(target.fileno(), b"two", 3)
        assert table.preallocate_write(target.fileno(), b"two", 3) == 3


# ---- The journal, and a crash.


def left_after(table: FaultTable, file: DeviceFile, seed: int | None) -> bytes:
    """Return what a crash leaves of the file; the file is put back."""
    before = file.path.read_bytes()
    table.after_crash(file.path.parent, seed)
    left = file.path.read_bytes()
    file.path.write_bytes(before)
    return left


def test_the_worst_crash_leaves_what_was_synced_and_nothing_else(device, file):
    table = FaultTable()
    table.attach(device)
    file.write(b"a" * 1000, 0)
    file.sync()
    file.write(b"b" * 1000, 1000)

    assert left_after(table, file, None) == b"a" * 1000 + bytes(7192)

    file.sync()
    assert left_after(table, file, None) == b"a" * 1000 + b"b" * 1000 + bytes(6192)


def test_a_sync_of_another_file_covers_nothing_here(device, file, disk_path):
    table = FaultTable()
    table.attach(device)
    other = DeviceFile(device, disk_path, number=2)
    file.write(b"mine", 0)

    other.sync()
    other.close()

    assert left_after(table, file, None) == bytes(8192)


def test_each_unsynced_sector_is_dropped_kept_or_torn(device, file):
    table = FaultTable()
    table.attach(device)
    file.write(b"x" * 4096, 0)

    fates = set()
    for seed in range(60):
        left = left_after(table, file, seed)
        assert left[4096:] == bytes(4096)
        for at in range(0, 4096, SECTOR):
            sector = left[at : at + SECTOR]
            kept = len(sector.rstrip(b"\0"))
            assert sector == b"x" * kept + bytes(SECTOR - kept)  # torn is a first part, never holes
            fates.add("dropped" if kept == 0 else "kept" if kept == SECTOR else "torn")

    assert fates == {"dropped", "kept", "torn"}


def test_a_crash_is_the_same_for_the_same_seed(device, file):
    table = FaultTable()
    table.attach(device)
    file.write(bytes(range(256)) * 16, 7)

    assert left_after(table, file, 5) == left_after(table, file, 5)
    assert left_after(table, file, 5) != left_after(table, file, 6)


def test_synced_bytes_survive_every_crash_beside_unsynced_ones_in_the_same_sector(device, file):
    table = FaultTable()
    table.attach(device)
    file.write(b"s" * 100, 0)
    file.sync()
    file.write(b"u" * 100, 100)

    for seed in range(40):
        assert left_after(table, file, seed)[:100] == b"s" * 100


def test_durable_writes_are_synced_by_themselves(disk_path):
    device = make_device(parse_device("real"), "dsync")
    file, table = DeviceFile(device, disk_path), FaultTable()
    table.attach(device)

    file.write(b"hello", 0)

    assert left_after(table, file, None)[:5] == b"hello"
    file.close()


def test_a_recycled_file_holds_its_old_bytes_where_nothing_was_synced_over_them(device, file, disk_path):
    table = FaultTable()
    table.attach(device)
    file.write(b"old" * 2000, 0)
    file.sync()
    file.close()
    again = DeviceFile(device, disk_path, number=2)
    again.path.write_bytes(bytes(4096) + file.path.read_bytes()[4096:])
    file.path.unlink()
    table.note_recycled(1, 2)
    again.write(b"new" * 100, 4096)

    left = left_after(table, again, None)
    again.sync()

    assert left == bytes(4096) + (b"old" * 2000)[4096:].ljust(4096, b"\0")
    assert left_after(table, again, None)[4096:4396] == b"new" * 100
    again.close()


def test_a_journal_lives_as_long_as_the_device_that_writes_to_it_and_no_longer(disk_path):
    device, table = make_device(parse_device("real"), "fdatasync"), FaultTable()
    table.attach(device)
    journal = weakref.ref(table._bytes)
    del table
    gc.collect()
    assert journal() is not None
    file = DeviceFile(device, disk_path)
    file.write(b"into the journal", 0)
    file.close()

    del file, device
    gc.collect()

    assert journal() is None


def test_a_journal_that_is_full_says_so_instead_of_playing_back_half(device, file):
    table = FaultTable(journal_bytes=100)
    table.attach(device)
    file.write(b"x" * 101, 0)

    with pytest.raises(RuntimeError, match="overflowed"):
        table.after_crash(file.path.parent, 1)


def test_a_table_that_nothing_follows_says_so(tmp_path):
    with pytest.raises(RuntimeError, match="not attached"):
        FaultTable().after_crash(tmp_path, 1)


def test_a_fault_armed_while_calls_stream_by_strikes_one_of_them(device, file):
    """Counted from a number that was read, its call could have passed before the table was armed."""
    ended = threading.Event()
    results: list[int] = []

    def stream() -> None:
        while not ended.is_set():
            if code := file.write(b"x", 0):
                results.append(code)

    threads = [threading.Thread(target=stream, name=f"stream-{k}") for k in range(3)]
    for thread in threads:
        thread.start()
    for struck in range(1, 31):
        arm(device, (Fault(Site.WRITE, 1, code=errno.EIO),))
        wait_for(lambda struck=struck: len(results) == struck, what="the fault to strike")
    ended.set()
    for thread in threads:
        thread.join(20)

    assert results == [-errno.EIO] * 30
