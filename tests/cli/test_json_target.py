"""--json: refused early where it cannot work, whole where it can."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from dashboard.cli.json_target import check_target, write_json
from engine.errors import FileTrouble


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".", "this is a folder; give a file name, or - for stdout"),
        ("missing/out.json", "its folder {folder}/missing does not exist; make it first"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_early(tmp_path: Path, name: str, words: str) -> None:
    target = str(tmp_path / name)

    with pytest.raises(click.UsageError) as raised:
        check_target(target)

    assert raised.value.message == f"--json {target}: {words.format(folder=tmp_path)}"


@pytest.mark.parametrize("target", ["-", "new.json"])
def test_a_target_that_can_be_written_is_not(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    check_target(target)

    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_whole_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)

    write_json(str(link), {"complete": True})

    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"complete": True}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "real.json"]


def test_a_pipe_is_written_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_json("/dev/stdout", {"complete": True})

    assert json.loads(capfd.readouterr().out) == {"complete": True}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(FileTrouble, match="cannot write the results"):
        write_json("/proc/out.json", {"complete": True})
