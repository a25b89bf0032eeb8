"""What is inside files: read whole, zeroed, overwritten and copied."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from engine.errors import FileTrouble
from engine.storage.contents import copy_file, file_size, opened, overwrite, read_file, write_zeros, zero_to_end


@pytest.mark.parametrize("from_disk", [False, True])
def test_a_file_is_read_up_to_the_limit(tmp_path, from_disk):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 40_000)  # more than one piece

    whole = read_file(path, limit=1 << 30, from_disk=from_disk)

    assert whole.tobytes() == path.read_bytes()
    assert read_file(path, limit=1000, from_disk=from_disk).tobytes() == path.read_bytes()[:1000]
    assert whole.flags.writeable  # the caller's own, and of the one type that kernels are compiled for


@pytest.mark.parametrize(("size", "is_reused"), [(99, False), (100, True), (101, True)])
def test_memory_is_read_into_where_it_is_large_enough(tmp_path, size, is_reused):
    (tmp_path / "file").write_bytes(b"x" * 100)
    memory = np.zeros(size, np.uint8)

    content = read_file(tmp_path / "file", limit=1000, into=memory)

    assert content.tobytes() == b"x" * 100
    assert np.shares_memory(content, memory) is is_reused


def test_an_empty_file_reads_as_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    assert read_file(tmp_path / "file", limit=10).size == 0


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "link"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path, kind):
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/etc/hostname")

    with pytest.raises(FileTrouble, match=f"{kind}: cannot read: "):
        read_file(path, limit=10)


def test_zeroing_to_the_end_keeps_what_is_before_and_makes_the_size_right(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)

    zero_to_end(path, 10, 8192)

    assert path.read_bytes() == b"x" * 10 + bytes(8182)


def test_zeros_are_written_for_real(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")

    zero_to_end(path, 0, 1 << 20)

    assert path.stat().st_blocks * 512 >= 1 << 20


def test_short_writes_of_zeros_go_on_where_they_stopped(tmp_path):
    def short(descriptor: int, content: bytes, offset: int) -> int:
        return os.pwrite(descriptor, content[:100], offset)

    with opened(tmp_path / "file", os.O_RDWR | os.O_CREAT, "write") as descriptor:
        write_zeros(descriptor, 50, 1234, short)

    assert (tmp_path / "file").read_bytes() == bytes(1234)


def test_overwriting_changes_those_bytes_alone(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")

    overwrite(tmp_path / "file", 3, b"abc")

    assert (tmp_path / "file").read_bytes() == b"012abc6789"


def test_a_copy_is_equal_and_leaves_out_zeros(tmp_path):
    content = b"begin" + bytes(9 << 20) + b"end"
    (tmp_path / "file").write_bytes(content)

    copy_file(tmp_path / "file", tmp_path / "copy")

    assert (tmp_path / "copy").read_bytes() == content
    assert file_size(tmp_path / "copy") == len(content)
    assert (tmp_path / "copy").stat().st_blocks < (tmp_path / "file").stat().st_blocks


def test_a_copy_never_replaces_a_file(tmp_path):
    (tmp_path / "file").write_bytes(b"new")
    (tmp_path / "copy").write_bytes(b"old")

    with pytest.raises(FileTrouble, match="copy: cannot create: File exists"):
        copy_file(tmp_path / "file", tmp_path / "copy")

    assert (tmp_path / "copy").read_bytes() == b"old"


def test_no_descriptor_is_left_open(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    before = len(list(Path("/proc/self/fd").iterdir()))

    read_file(tmp_path / "file", limit=10)
    with pytest.raises(FileTrouble):
        copy_file(tmp_path / "file", tmp_path / "file")

    assert len(list(Path("/proc/self/fd").iterdir())) == before
