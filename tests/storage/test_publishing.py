"""A file appears whole with its companion, or not at all; nobody's other file is touched."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from engine.errors import FileTrouble
from engine.native.preallocate import preallocate
from engine.storage import publishing
from engine.storage.publishing import AlreadyThere, BeingWritten, publish
from tests.waiting import wait_for


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_and_its_companion_appear_together(tmp_path):
    target = tmp_path / "image"
    with publish(target, replace=False) as new:
        new.write(b"first ")
        new.write(memoryview(b"second"))
        new.companion = target.with_name("image.md5"), b"sum"
        assert names(tmp_path) == ["image.tmp"]

    assert (target.read_bytes(), (tmp_path / "image.md5").read_bytes()) == (b"first second", b"sum")
    assert names(tmp_path) == ["image", "image.md5"]
    assert new.size == 12


def test_what_fails_inside_leaves_the_old_file_and_no_temporary_one(tmp_path):
    target = tmp_path / "image"
    target.write_bytes(b"old")

    with (
        pytest.raises(FileTrouble, match="cannot write: No space left on device"),
        publish(target, replace=True) as new,
    ):
        new.write(b"new")
        raise OSError(errno.ENOSPC, "disk full")

    assert (names(tmp_path), target.read_bytes()) == (["image"], b"old")


def test_replacing_takes_the_old_companion_away_even_without_a_new_one_of_its_own_name(tmp_path):
    target, md5 = tmp_path / "image", tmp_path / "image.md5"
    target.write_bytes(b"old")
    md5.write_bytes(b"old sum")

    with publish(target, replace=True) as new:
        new.write(b"new")
        new.companion = md5, b"new sum"

    assert (target.read_bytes(), md5.read_bytes()) == (b"new", b"new sum")


def test_a_file_that_is_there_is_not_replaced_unasked_not_even_one_that_came_meanwhile(tmp_path):
    target = tmp_path / "image"
    with pytest.raises(AlreadyThere, match="there is a file of that name already"), publish(target, replace=False):
        target.write_bytes(b"another's")

    assert (names(tmp_path), target.read_bytes()) == (["image"], b"another's")


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_is_no_regular_file_is_refused_even_when_replacing(tmp_path, kind):
    target = tmp_path / "image"
    if kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FileTrouble, match="not a regular file"), publish(target, replace=True):
        pytest.fail("the block must not run")
    assert names(tmp_path) == ["image"]


def test_a_second_writer_of_one_name_is_refused_and_the_first_goes_on(tmp_path):
    target = tmp_path / "image"
    with publish(target, replace=False) as first:
        with pytest.raises(BeingWritten, match="another process is writing it"), publish(target, replace=False):
            pytest.fail("the block must not run")
        first.write(b"mine")

    assert target.read_bytes() == b"mine"


def test_what_a_crash_left_is_taken_over(tmp_path):
    (tmp_path / "image.tmp").write_bytes(b"half of a longer file")
    with publish(tmp_path / "image", replace=False) as new:
        new.write(b"whole")

    assert (names(tmp_path), (tmp_path / "image").read_bytes()) == (["image"], b"whole")


def syncing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sync-behind"]


@pytest.fixture
def little(monkeypatch):
    """Let a file be long, and synced behind its writer, from 64 KiB on."""
    monkeypatch.setattr(publishing, "_SYNC_BYTES", 64 << 10)
    monkeypatch.setattr(publishing, "_ROOM_BYTES", 1 << 20)


def test_a_long_file_is_whole_and_keeps_no_room_that_it_did_not_use(tmp_path, little):
    piece = bytes(range(256)) * 300
    with publish(tmp_path / "image", replace=False) as new:
        for _ in range(40):
            new.write(piece)
        assert (tmp_path / "image.tmp").stat().st_size > new.size

    found = (tmp_path / "image").stat()
    assert (tmp_path / "image").read_bytes() == piece * 40
    assert found.st_blocks * 512 < found.st_size + (1 << 20)


def test_a_sync_that_fails_behind_the_writer_fails_the_file_for_good(tmp_path, little, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fail)  # no file of a test has a disk that fails
    with pytest.raises(FileTrouble, match="Input/output error"), publish(tmp_path / "image", replace=False) as new:
        for _ in range(3):
            new.write(bytes(100_000))
        wait_for(lambda: not syncing(), deadline=10, what="the thread that syncs to fail")
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output error"):
                new.sync()

    assert names(tmp_path) == []


def test_a_file_that_is_given_up_is_synced_by_nobody_any_more(tmp_path, little):
    with pytest.raises(KeyError), publish(tmp_path / "image", replace=False) as new:
        for _ in range(3):
            new.write(bytes(100_000))
        raise KeyError

    assert not syncing()


def test_a_file_system_that_gives_no_room_ahead_is_written_to_all_the_same(tmp_path, little, monkeypatch):
    monkeypatch.setattr(publishing, "preallocate", lambda *_: -errno.EOPNOTSUPP)
    with publish(tmp_path / "image", replace=False) as new:
        for _ in range(3):
            new.write(bytes(100_000))

    assert (tmp_path / "image").stat().st_size == 300_000


def test_room_ahead_reads_as_zeros_and_a_refusal_is_said(tmp_path):
    reader, writer = os.pipe()
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        file.write(b"x" * 100)
        assert preallocate(file.fileno(), 100, 8092) == 0
        assert os.pread(file.fileno(), 10_000, 0) == b"x" * 100 + bytes(8092)
    assert preallocate(writer, 0, 10) == -errno.ESPIPE
    os.close(reader)
    os.close(writer)
