"""Files as kernels see them: what is written can be read, and each failure comes back as its own errno."""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engine.native import files
from engine.native.clock import monotonic_ns, sleep_until
from engine.native.kernel import inner
from tests.waiting import run_threads


@inner
def pwrite(descriptor, data, length, offset):
    return files.pwrite(descriptor, data.ctypes.data, np.uint64(length), offset)


@inner
def pwrite_dsync(descriptor, data, length, offset):
    return files.pwrite_dsync(descriptor, data.ctypes.data, np.uint64(length), offset)


@inner
def pread(descriptor, data, length, offset):
    return files.pread(descriptor, data.ctypes.data, np.uint64(length), offset)


@inner
def fdatasync(descriptor):
    return files.fdatasync(descriptor)


@inner
def fsync(descriptor):
    return files.fsync(descriptor)


@inner
def close(descriptor):
    return files.close(descriptor)


@inner
def open_for_writing(folder, name):
    return files.open_for_writing(folder, name.ctypes.data)


@inner
def fail_many_times(descriptor, rounds):
    """Sync a descriptor that fails, `rounds` times; return the one errno that each gave, or 0 where they differ."""
    first = files.fdatasync(descriptor)
    for _ in range(rounds):
        if files.fdatasync(descriptor) != first:
            return np.int64(0)
    return first


@inner
def sleep_until_ns(deadline):
    return sleep_until(deadline), monotonic_ns()


WRITES = [pytest.param(pwrite, id="pwrite"), pytest.param(pwrite_dsync, id="pwrite-dsync")]
SYNCS = [pytest.param(fdatasync, id="fdatasync"), pytest.param(fsync, id="fsync")]
Kernel = Callable[..., int]


@pytest.fixture
def descriptor(disk_path: Path) -> Iterator[int]:
    opened = os.open(disk_path / "file", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


@pytest.fixture
def closed() -> int:
    opened = os.open("/dev/null", os.O_RDWR)
    os.close(opened)
    return opened


@pytest.fixture
def full() -> Iterator[int]:
    opened = os.open("/dev/full", os.O_RDWR)
    yield opened
    os.close(opened)


@pytest.fixture
def pipe() -> Iterator[int]:
    reading, writing = os.pipe()
    yield writing
    os.close(reading)
    os.close(writing)


def text(content: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8).copy()


@pytest.mark.parametrize("write", WRITES)
def test_what_a_kernel_writes_stands_at_its_offset(write: Kernel, descriptor: int) -> None:
    assert write(descriptor, text(b"tide"), 4, 10) == 4
    assert write(descriptor, text(b"gauge!"), 5, 14) == 5

    assert os.pread(descriptor, 100, 0) == bytes(10) + b"tidegauge"


@pytest.mark.parametrize("sync", SYNCS)
def test_a_sync_of_a_real_file_returns_zero(sync: Kernel, descriptor: int) -> None:
    os.write(descriptor, b"content")

    assert sync(descriptor) == 0


def test_pread_returns_the_bytes_and_zero_at_the_end(descriptor: int) -> None:
    os.write(descriptor, b"tidegauge")
    into = np.zeros(16, np.uint8)

    assert pread(descriptor, into, 16, 4) == 5
    assert into[:6].tobytes() == b"gauge\0"
    assert pread(descriptor, into, 16, 9) == 0


@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_closed_descriptor_is_ebadf(write: Kernel, closed: int) -> None:
    assert write(closed, text(b"x"), 1, 0) == -errno.EBADF


@pytest.mark.parametrize("call", [*SYNCS, pytest.param(close, id="close")])
def test_a_sync_or_close_of_a_closed_descriptor_is_ebadf(call: Kernel, closed: int) -> None:
    assert call(closed) == -errno.EBADF


def test_a_write_without_space_is_enospc(full: int) -> None:
    assert pwrite(full, text(b"x"), 1, 0) == -errno.ENOSPC


@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_pipe_is_espipe(write: Kernel, pipe: int) -> None:
    assert write(pipe, text(b"x"), 1, 0) == -errno.ESPIPE


@pytest.mark.parametrize("sync", SYNCS)
def test_a_sync_of_a_pipe_is_einval(sync: Kernel, pipe: int) -> None:
    assert sync(pipe) == -errno.EINVAL


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_short_at_the_size_limit_and_efbig_beyond(write: Kernel, descriptor: int) -> None:
    page = np.ones(4096, np.uint8)
    write(descriptor, page, 1, 0)  # compiled before the limit: the kernel cache is a file too
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
    try:
        results = write(descriptor, page, 4096, 4096), write(descriptor, page, 4096, 6000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert results == (6000 - 4096, -errno.EFBIG)


def test_a_file_opened_by_name_below_a_folder_can_be_written(disk_path: Path) -> None:
    (disk_path / "00000001.wal").write_bytes(b"before")
    folder = os.open(disk_path, os.O_RDONLY | os.O_DIRECTORY)

    opened = open_for_writing(folder, text(b"00000001.wal\0"))
    written = pwrite(opened, text(b"after"), 5, 0)
    closed = close(opened)
    missing = open_for_writing(folder, text(b"00000002.wal\0"))
    os.close(folder)

    assert (written, closed) == (5, 0)
    assert (disk_path / "00000001.wal").read_bytes() == b"aftere"
    assert missing == -errno.ENOENT


def test_each_thread_sees_its_own_errno(pipe: int) -> None:
    results = run_threads(lambda: fail_many_times(-1, 50_000), lambda: fail_many_times(pipe, 50_000))

    assert results == [-errno.EBADF, -errno.EINVAL]


def test_sleep_until_returns_at_or_after_its_deadline() -> None:
    deadline = time.monotonic_ns() + 30_000_000

    code, woke = sleep_until_ns(deadline)

    assert code == 0
    assert woke >= deadline


def test_sleep_until_a_past_instant_returns() -> None:
    code, _ = sleep_until_ns(time.monotonic_ns() - 1)

    assert code == 0
