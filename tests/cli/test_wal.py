"""`tidegauge wal dump|verify|repair`: data on stdout, one line for what went wrong, exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dashboard.cli.exits import Exit
from tests.cli.commands import run
from tests.wal.build_log import LogBuilder, small_log

SECOND, THIRD = "00000002.wal", "00000003.wal"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_log().write(tmp_path / "log")


def patch(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_a_dump_goes_to_stdout(folder):
    result = run("wal", "dump", folder, "--from", "4", "--limit", "1")

    assert (result.exit_code, result.stderr) == (Exit.DONE, "")
    assert result.stdout.splitlines()[2].split()[:3] == ["4,096", "4", "data"]
    assert result.stdout.endswith("# 1 record shown; the log goes on\n")


def test_hostile_payloads_do_not_reach_the_terminal(tmp_path):
    folder = LogBuilder().data(b"\x1b[2J\x07\x9b", "\u202e".encode(), b"\r\n" * 5).write(tmp_path / "log")

    out = run("wal", "dump", folder).stdout

    assert out.replace("\n", "").isascii()
    assert out.replace("\n", "").isprintable()


def test_a_whole_log_verifies(folder):
    result = run("wal", "verify", folder)

    assert (result.exit_code, result.stderr) == (Exit.DONE, "")
    assert result.stdout.endswith("\nwhole\n")


def test_a_verdict_in_json_is_one_object_on_stdout(folder):
    result = run("wal", "verify", folder, "--json", "-")

    verdict = json.loads(result.stdout)
    assert (verdict["schema"], verdict["whole"], verdict["records"]) == ("tidegauge.wal-verify/1", True, 9)
    assert [segment["first_txid"] for segment in verdict["segments"]] == [1, 4, 6]


def test_a_verdict_in_json_goes_to_a_file_beside_the_text(folder, tmp_path):
    result = run("wal", "verify", folder, "--json", tmp_path / "out.json")

    assert result.stdout.endswith("\nwhole\n")
    assert json.loads((tmp_path / "out.json").read_text())["whole"] is True


def test_damage_fails_with_file_and_offset(folder):
    patch(folder / SECOND, 4120, b"!")

    result = run("wal", "verify", folder)
    as_json = run("wal", "verify", folder, "--json", "-")

    assert result.exit_code == as_json.exit_code == Exit.FAILED
    assert (
        f"\n{folder / SECOND}: damaged at byte 4,096: found bytes whose checksum does not match, "
        "allowed txid 4, which was durable\n"
    ) in result.stdout
    assert result.stderr == "", "said once"
    assert json.loads(as_json.stdout)["damage"]["offset"] == 4096


def test_a_repair_says_what_it_cut(folder):
    patch(folder / THIRD, 4240, b"torn")

    result = run("wal", "repair", folder)

    assert (result.exit_code, result.stderr) == (Exit.DONE, "")
    assert "kept: 00000003.wal.broken\n" in result.stdout


def test_a_repair_of_damage_says_how_to_salvage(folder):
    patch(folder / SECOND, 4120, b"!")

    refused = run("wal", "repair", folder)
    salvaged = run("wal", "repair", folder, "--salvage")

    assert (refused.exit_code, refused.stdout) == (Exit.FAILED, "")
    assert refused.stderr.endswith("nothing was changed; --salvage keeps everything before it\n")
    assert (salvaged.exit_code, salvaged.stderr) == (Exit.DONE, "")
    assert "out of reach: txid 4 to 9 at least" in salvaged.stdout
    assert run("wal", "verify", folder).exit_code == Exit.DONE


@pytest.mark.parametrize("command", ["dump", "verify", "repair"])
@pytest.mark.parametrize(
    ("place", "text"),
    [("missing", "there is no such folder"), ("file", "it is a file"), ("empty", "it holds no segment")],
)
def test_what_is_no_log_gets_one_line(tmp_path, command, place, text):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "empty").mkdir()

    result = run("wal", command, tmp_path / place)

    assert (result.exit_code, result.stdout) == (Exit.FAILED, "")
    assert result.stderr == f"tidegauge: {tmp_path / place}: not a tidegauge log: {text}\n"


@pytest.mark.parametrize(
    "words",
    [
        ("wal",),
        ("wal", "verfy"),
        ("wal", "dump"),
        ("wal", "dump", ".", "--limit", "0"),
        ("wal", "dump", ".", "--from", "x"),
        ("wal", "verify", ".", "--json", os.devnull + "/x"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_one_line_and_exit_code_2(words):
    result = run(*words)

    assert (result.exit_code, result.stdout) == (Exit.USAGE, "")
    assert len(result.stderr.splitlines()) == 1
