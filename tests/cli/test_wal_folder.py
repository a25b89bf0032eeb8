"""Where a run's log may go, and that nothing of it is left."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from dashboard.cli import wal_folder
from dashboard.cli.wal_folder import BadFolder, is_log, run_folder
from engine.environment import Mount
from engine.errors import FileTrouble, TidegaugeError


def put_log(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("LOCK", "00000001.wal", "00000002.wal.tmp", "00000001.wal.2.broken"):
        (folder / name).write_bytes(b"")


def test_a_missing_folder_is_made_and_removed_again(disk_path: Path) -> None:
    path = disk_path / "log"

    with run_folder(path, keep=False) as folder:
        assert folder.path == path
        put_log(path)

    assert not path.exists()


def test_keep_leaves_what_the_run_made(disk_path: Path) -> None:
    with run_folder(disk_path / "log", keep=True) as folder:
        put_log(folder.path)

    assert (disk_path / "log" / "00000001.wal").exists()


def test_a_folder_made_for_a_log_that_never_was_does_not_stay(disk_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), run_folder(disk_path / "log", keep=True):
        raise KeyboardInterrupt

    assert not (disk_path / "log").exists()


def test_an_empty_folder_stays_and_is_empty_again(disk_path: Path) -> None:
    with run_folder(disk_path, keep=False):
        put_log(disk_path / "01-group-50-real")

    assert disk_path.is_dir()
    assert not list(disk_path.iterdir())


def test_a_log_that_was_there_stays(disk_path: Path) -> None:
    put_log(disk_path)

    with run_folder(disk_path, keep=False) as folder:
        assert folder.existing_log
        (disk_path / "00000009.wal").write_bytes(b"")

    assert is_log(disk_path)
    assert (disk_path / "00000009.wal").exists()


def test_an_error_in_the_run_still_cleans_up(disk_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), run_folder(disk_path / "log", keep=False) as folder:
        put_log(folder.path)
        raise KeyboardInterrupt

    assert not list(disk_path.iterdir())


def _file(at: Path) -> Path:
    (at / "file").write_text("x")
    return at / "file"


def _below_a_file(at: Path) -> Path:
    return _file(at) / "log"


def _foreign(at: Path) -> Path:
    (at / "00000001.wal").write_text("")
    (at / "notes.txt").write_text("mine")
    return at


def _foreign_below(at: Path) -> Path:
    (at / "docs").mkdir()
    (at / "docs" / "thesis.tex").write_text("mine")
    return at


def _dangling(at: Path) -> Path:
    (at / "link").symlink_to(at / "gone")
    return at / "link"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_file, "--path {path}: this is a file, not a folder"),
        (lambda at: at / "missing" / "log", "--path {path}: its parent folder {parent} does not exist; make it first"),
        (_below_a_file, "--path {path}: its parent folder {parent} is a file; make it first"),
        (
            _foreign,
            "--path {path}: it holds something else than a log, such as 'notes.txt'; give an empty or a new folder",
        ),
        (
            _foreign_below,
            "--path {path}: it holds something else than a log, such as 'docs'; give an empty or a new folder",
        ),
        (_dangling, "--path {path}: this is a link to nothing"),
    ],
    ids=["file", "missing-parent", "below-a-file", "foreign-file", "foreign-folder", "dangling-link"],
)
def test_a_path_that_cannot_be_used_is_refused_and_untouched(disk_path: Path, make, words: str) -> None:
    path = make(disk_path)
    before = sorted(disk_path.rglob("*"))

    with pytest.raises(BadFolder) as raised, run_folder(path, keep=False):
        pass

    assert str(raised.value) == words.format(path=path, parent=path.parent)
    assert sorted(disk_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"], ids=["too-long", "nul"])
def test_a_name_no_folder_can_have_gets_one_line(disk_path: Path, name: str) -> None:
    with pytest.raises(TidegaugeError) as raised, run_folder(disk_path / name, keep=False):
        pass

    assert str(raised.value).isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_gets_one_line(disk_path: Path) -> None:
    disk_path.chmod(0o500)
    try:
        refused = pytest.raises(FileTrouble, match="cannot use it for the log: Permission denied")
        with refused, run_folder(disk_path / "log", keep=False):
            pass
    finally:
        disk_path.chmod(0o700)


def test_a_file_system_that_refuses_a_folder_gets_one_line() -> None:
    with (
        pytest.raises(FileTrouble, match=r"/proc/log: cannot use it for the log: "),
        run_folder(Path("/proc/log"), keep=False),
    ):
        pass


class TestTemporary:
    @pytest.fixture(autouse=True)
    def in_a_folder_of_our_own(self, disk_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TMPDIR", str(disk_path))

    def test_is_made_and_removed(self, disk_path: Path) -> None:
        with run_folder(None, keep=False) as folder:
            assert folder.temporary
            assert folder.path.parent == disk_path
            put_log(folder.path / "log")

        assert not list(disk_path.iterdir())

    def test_kept_ones_are_not_swept_away_by_the_next_run(self, disk_path: Path) -> None:
        with run_folder(None, keep=True) as kept:
            put_log(kept.path / "log")

        with run_folder(None, keep=False):
            pass

        assert is_log(kept.path / "log")

    def test_what_a_killed_run_left_is_removed_by_the_next(self, disk_path: Path) -> None:
        left = disk_path / "tidegauge-run-killed"
        put_log(left)
        (left / ".held").write_bytes(b"")

        with run_folder(None, keep=False):
            assert not left.exists()

    def test_what_another_run_uses_is_left_alone(self, disk_path: Path) -> None:
        busy = disk_path / "tidegauge-run-busy"
        busy.mkdir()
        with (busy / ".held").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)

            with run_folder(None, keep=False):
                assert busy.exists()

    def test_a_folder_that_only_has_the_name_is_left_alone(self, disk_path: Path) -> None:
        other = disk_path / "tidegauge-run-notes"
        other.mkdir()
        (other / "notes.txt").write_text("mine")

        with run_folder(None, keep=False):
            pass

        assert (other / "notes.txt").read_text() == "mine"

    def test_is_never_in_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        memory = Mount("/", "tmpfs", "tmpfs", frozenset({"rw"}), "0:1")
        monkeypatch.setattr(wal_folder, "mount_of", lambda path: memory)

        refused = pytest.raises(TidegaugeError, match=r"no folder for a temporary log: .* use --path DIR")
        with refused, run_folder(None, keep=False):
            pass


def test_files_of_a_log_are_told_by_the_names_the_log_gives_them(disk_path: Path) -> None:
    from engine.wal.listing import list_log

    put_log(disk_path)

    list_log(disk_path)
    assert is_log(disk_path)
