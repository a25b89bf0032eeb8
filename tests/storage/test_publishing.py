"""A file appears whole with its companion, or not at all; nobody's other file is touched."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.errors import FileTrouble
from engine.native.writeback import start_writeback
from engine.storage.publishing import AlreadyThere, BeingWritten, publish


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


def test_a_long_file_is_whole_though_the_disk_began_early(tmp_path):
    piece = bytes(range(256)) * 65_536
    with publish(tmp_path / "image", replace=False) as new:
        for _ in range(5):
            new.write(piece)

    assert (tmp_path / "image").read_bytes() == piece * 5


def test_starting_to_write_says_what_was_refused(tmp_path):
    reader, writer = os.pipe()
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x" * 8192)
        file.flush()
        assert start_writeback(file.fileno(), 0, 8192) == 0
    assert start_writeback(writer, 0, 10) == -errno.ESPIPE
    os.close(reader)
    os.close(writer)
