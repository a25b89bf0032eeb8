"""Devices: their names, how syncs queue or overlap, what a stall delays, and what each sync mode calls."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engine.errors import BadValue, UnknownChoice
from engine.storage.device import J_FILE, J_LENGTH, configure, make_device, parse_device, parse_sync, sync_label
from engine.storage.faults import FaultTable
from tests.storage.device_kernels import DeviceFile
from tests.waiting import run_threads, wait_for

MILLISECOND = 1_000_000


def device_of(name: str, sync: str = "fdatasync") -> npt.NDArray[np.void]:
    return make_device(parse_device(name), sync)


@pytest.fixture
def files(disk_path: Path) -> Iterator[list[DeviceFile]]:
    """Return a list; what is put into it is closed."""
    made: list[DeviceFile] = []
    yield made
    for file in made:
        file.close()


# ---- Names.


@pytest.mark.parametrize(
    ("text", "kind", "latency_ns", "label", "simulated"),
    [
        ("real", "real", 0, "real", False),
        ("serial:5ms", "serial", 5 * MILLISECOND, "serial 5 ms (simulated)", True),
        ("parallel:1ms", "parallel", MILLISECOND, "parallel 1 ms (simulated)", True),
        ("serial:250us", "serial", MILLISECOND // 4, "serial 250 us (simulated)", True),
        ("parallel:10s", "parallel", 10_000 * MILLISECOND, "parallel 10 s (simulated)", True),
    ],
)
def test_a_device_is_read_and_called_simulated_where_it_is(text, kind, latency_ns, label, simulated):
    spec = parse_device(text)

    assert (spec.kind, spec.latency_ns, spec.label, spec.is_simulated) == (kind, latency_ns, label, simulated)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("reel", "device 'reel': allowed is real, serial:5ms, parallel:1ms; did you mean real?"),
        ("", "device '': allowed is real, serial:5ms, parallel:1ms"),
        ("real:5ms", "device 'real:5ms': allowed is real without a latency; for example serial:5ms"),
        ("serial", "device 'serial': allowed is serial:LATENCY; for example serial:5ms"),
        ("serial:", "duration ''"),
        ("serial:5", "duration '5'"),
        ("serial:0", "device 'serial:0': allowed is serial:LATENCY with a unit; for example serial:5ms"),
        ("serial:5 apples", "duration '5 apples'"),
        ("serial:-5ms", "duration '-5ms'"),
        ("parallel:11s", "device 'parallel:11s': allowed is a latency of at most 10 s; for example parallel:5ms"),
        ("serial:5ms:5ms", "duration '5ms:5ms'"),
    ],
)
def test_a_device_that_is_none_is_named_with_what_is_allowed(text, says):
    with pytest.raises((BadValue, UnknownChoice)) as caught:
        parse_device(text)

    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_sync_modes_have_names_and_none_is_called_not_durable():
    assert [sync_label(parse_sync(mode)) for mode in ("fdatasync", "fsync", "dsync", "none")] == [
        "fdatasync", "fsync", "dsync", "none (not durable)",
    ]  # fmt: skip
    with pytest.raises(UnknownChoice, match=r"sync mode 'datasync': .*; did you mean fdatasync"):
        parse_sync("datasync")


# ---- Serial queues, parallel overlaps.


@pytest.mark.parametrize("mode", ["fdatasync", "dsync"])
def test_a_serial_device_serves_one_at_a_time_in_the_order_they_asked(mode, disk_path, files):
    device, table = device_of("serial:20ms", mode), FaultTable()
    table.attach(device)
    state = device[0]
    threads = []
    began = time.monotonic_ns()

    for number in range(5):
        files.append(DeviceFile(device, disk_path, number=number))
        call = files[-1].sync if mode == "fdatasync" else partial(files[-1].write, b"x", 0)
        threads.append(threading.Thread(target=call, name=f"sync-{number}"))
        threads[-1].start()
        wait_for(lambda number=number: state["queue_next"] == number + 1, what="it to queue")
    for thread in threads:
        thread.join(20)

    assert time.monotonic_ns() - began >= 5 * 20 * MILLISECOND  # one at a time
    syncs = [row for row in table._rows[: int(state["journal_count"])] if row[J_LENGTH] == 0]
    assert [row[J_FILE] for row in syncs] == [0, 1, 2, 3, 4]
    assert state["queue_served"] == state["queue_next"] == 5


def test_a_parallel_device_lets_syncs_overlap(disk_path, files):
    """Each takes half a second and all are in the device at once: the last begins before the first has ended."""
    device = device_of("parallel:500ms")
    spans: list[tuple[int, int]] = []

    def run(file: DeviceFile) -> None:
        began = time.monotonic_ns()
        assert file.sync() == 0
        spans.append((began, time.monotonic_ns()))

    files += [DeviceFile(device, disk_path, number=number) for number in range(4)]
    run_threads(*[lambda file=file: run(file) for file in files])

    assert max(began for began, _ in spans) < min(end for _, end in spans)
    assert all(end - began >= 500 * MILLISECOND for began, end in spans)
    assert device[0]["queue_next"] == 0


def test_a_latency_comes_on_top_of_the_real_sync(disk_path, files):
    for name, least in (("real", 0), ("serial:3ms", 3 * MILLISECOND), ("parallel:3ms", 3 * MILLISECOND)):
        files.append(DeviceFile(device_of(name), disk_path))
        began = time.monotonic_ns()

        assert files[-1].sync() == 0

        assert time.monotonic_ns() - began >= least


# ---- A stall.


@pytest.mark.parametrize("mode", ["fdatasync", "dsync"])
def test_a_stall_delays_one_sync_and_no_more(mode, disk_path, files):
    device = device_of("real", mode)
    files.append(DeviceFile(device, disk_path))
    device["stall_ns"] = 30 * MILLISECOND

    began = time.monotonic_ns()
    files[0].write(b"x", 0)
    files[0].sync()

    assert time.monotonic_ns() - began >= 30 * MILLISECOND
    assert device["stall_ns"][0] == 0


def test_of_syncs_that_overlap_one_takes_the_stall(disk_path, files):
    """Ten syncs come to it together: the one that takes it leaves none for the others."""
    device = device_of("parallel:1us")
    files += [DeviceFile(device, disk_path, number=number) for number in range(10)]
    run_threads(*[file.sync for file in files])  # nothing to write is left, so that only the stall takes time
    ended: list[int] = []
    device["stall_ns"] = 2_000 * MILLISECOND

    def run(file: DeviceFile) -> None:
        file.sync()
        ended.append(time.monotonic_ns())

    began = time.monotonic_ns()
    run_threads(*[lambda file=file: run(file) for file in files])

    assert sum(end - began >= 2_000 * MILLISECOND for end in ended) == 1


# ---- Sync modes.


@pytest.mark.parametrize(("mode", "syncs"), [("fdatasync", 1), ("fsync", 1), ("dsync", 0), ("none", 0)], ids=str)
def test_a_sync_mode_calls_what_it_says(mode, syncs, disk_path, files):
    device = device_of("real", mode)
    files.append(DeviceFile(device, disk_path))

    assert files[0].write(b"hello", 100) == 0
    assert files[0].sync() == 0

    assert (device[0]["write_calls"], device[0]["sync_calls"]) == (1, syncs)
    assert files[0].path.read_bytes()[99:106] == b"\0hello\0"


@pytest.mark.parametrize("mode", ["fdatasync", "fsync", "dsync", "none"])
def test_a_sync_can_be_had_in_any_mode(mode, disk_path, files):
    device = device_of("serial:1us", mode)
    files.append(DeviceFile(device, disk_path))

    assert files[0].sync_anyway() == 0

    assert device[0]["sync_calls"] == 1
    assert device[0]["queue_served"] == 1


def test_what_the_operating_system_refuses_comes_back_as_its_errno(disk_path, files):
    device = device_of("real")
    files.append(DeviceFile(device, disk_path))
    files[0].close()

    assert files[0].write(b"x", 0) == -errno.EBADF
    assert files[0].sync() == -errno.EBADF


def test_a_device_becomes_another_one(disk_path, files):
    device = device_of("serial:1us", "none")
    files.append(DeviceFile(device, disk_path))

    configure(device, parse_device("real"), "fsync")
    assert files[0].sync() == 0

    assert (device[0]["queue_next"], device[0]["sync_calls"]) == (0, 1)


def test_a_turn_is_passed_on_though_the_device_became_another_one_meanwhile(disk_path, files):
    """Whoever changes a device waits for its syncs; a hung one must not leave the queue standing for ever."""
    device = device_of("serial:200ms")
    files.append(DeviceFile(device, disk_path))
    thread = threading.Thread(target=files[0].sync, name="sync")
    thread.start()
    wait_for(lambda: device["queue_next"][0] == 1)
    configure(device, parse_device("real"), "fdatasync")
    thread.join(20)

    configure(device, parse_device("serial:1us"), "fdatasync")

    assert files[0].sync() == 0
    assert device["queue_served"][0] == 2
