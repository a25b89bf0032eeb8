"""Folders: entries that appear whole, and one writer at a time."""

from __future__ import annotations

import errno
import os

import pytest

from engine.errors import FileTrouble
from engine.storage.folders import (
    Entry,
    create_zeroed,
    is_locked,
    list_folder,
    lock_folder,
    lock_holder,
    make_folder,
    recycle_file,
)
from tests.programs import printed_by


def test_a_listing_says_what_is_a_regular_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "sub").mkdir()

    assert list_folder(tmp_path) == (Entry("file", True), Entry("link", False), Entry("sub", False))


def test_a_folder_that_cannot_be_listed_is_named(tmp_path):
    with pytest.raises(FileTrouble, match="missing: cannot list the folder: No such file or directory"):
        list_folder(tmp_path / "missing")


def test_a_folder_is_made_once_and_its_parent_never(tmp_path):
    assert make_folder(tmp_path / "new")
    assert not make_folder(tmp_path / "new")

    with pytest.raises(FileTrouble, match="cannot make the folder: No such file or directory"):
        make_folder(tmp_path / "missing" / "new")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileTrouble, match="file: cannot make the folder: File exists"):
        make_folder(tmp_path / "file")


def test_a_new_file_has_its_first_bytes_and_zeros(tmp_path):
    create_zeroed(tmp_path / "file", 10_000, first=b"head")

    assert (tmp_path / "file").read_bytes() == b"head" + bytes(9_996)
    assert [entry.name for entry in list_folder(tmp_path)] == ["file"]


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    def full_after_a_while(descriptor: int, content: bytes, offset: int) -> int:
        if offset > 2 << 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.pwrite(descriptor, content, offset)

    with pytest.raises(FileTrouble, match="cannot create 8,388,608 bytes: No space left on device") as caught:
        create_zeroed(tmp_path / "file", 8 << 20, write=full_after_a_while)

    assert caught.value.errno == errno.ENOSPC
    assert list_folder(tmp_path) == ()


def test_a_recycled_file_changes_its_name_and_loses_its_beginning(tmp_path):
    (tmp_path / "old").write_bytes(b"x" * 10_000)

    recycle_file(tmp_path / "old", tmp_path / "new", zero_bytes=4096)

    assert [entry.name for entry in list_folder(tmp_path)] == ["new"]
    assert (tmp_path / "new").read_bytes() == bytes(4096) + b"x" * 5904


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    assert not is_locked(tmp_path)
    first = lock_folder(tmp_path)
    assert first is not None

    assert is_locked(tmp_path)
    assert lock_folder(tmp_path) is None
    assert lock_holder(tmp_path) == os.getpid()

    first.release()
    first.release()
    assert not is_locked(tmp_path)
    with lock_folder(tmp_path) as second:
        assert second is not None


def test_another_process_is_kept_out_and_a_dead_one_is_not_waited_for(tmp_path):
    program = f"""
from pathlib import Path
from engine.storage.folders import is_locked, lock_folder
folder = Path({str(tmp_path)!r})
print(is_locked(folder), lock_folder(folder) is not None)
"""
    with lock_folder(tmp_path) as lock:
        assert lock is not None
        assert printed_by(program) == "True False"

    assert printed_by(program) == "False True"
    assert not is_locked(tmp_path)  # it ended without releasing


def test_asking_for_the_lock_makes_no_file(tmp_path):
    is_locked(tmp_path)

    assert list_folder(tmp_path) == ()


@pytest.mark.parametrize("content", [b"", b"not a number", b"12x", b"9" * 5000])
def test_a_lock_file_that_names_nobody_names_nobody(tmp_path, content):
    (tmp_path / "LOCK").write_bytes(content)

    assert lock_holder(tmp_path) in (None, int("9" * 20))
