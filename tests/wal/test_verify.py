"""Verifying, dumping and repairing logs: what people and programs are told, and what is kept."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from engine.storage.folders import lock_folder
from engine.wal.dump import dump_log
from engine.wal.errors import LogDamaged, LogLocked, NotALog, UnsupportedVersion
from engine.wal.preview import preview
from engine.wal.reading import read_records
from engine.wal.repair import repair_log
from engine.wal.verify import verify_log
from tests.wal.build_log import SEGMENT_SIZE, LogBuilder, small_log
from tests.wal.test_recovery import DAMAGE, FIRST, SECOND, THIRD, patch, records, rewrite_header, snapshot


@pytest.fixture
def log() -> LogBuilder:
    return small_log()


@pytest.fixture
def folder(log: LogBuilder, tmp_path: Path) -> Path:
    return log.write(tmp_path / "log")


def test_a_whole_log_is_said_to_be_whole(folder):
    verdict = verify_log(folder)

    assert verdict.is_whole
    assert verdict.to_text().splitlines() == [
        f"{folder}: 3 segments, 9 records, txid 1 to 9, 12.3 KiB used",
        "  00000001.wal  txid 1 to 3, 4,192 of 8,192 bytes",
        "  00000002.wal  txid 4 to 5, 4,176 of 8,192 bytes",
        "  00000003.wal  txid 6 to 9, 4,232 of 8,192 bytes",
        "whole",
    ]


def test_a_sealed_log_is_said_to_be_closed_cleanly(tmp_path):
    verdict = verify_log(small_log(sealed=True).write(tmp_path / "log"))

    assert verdict.to_text().endswith("\nwhole, closed cleanly")
    assert verdict.to_json()["closed_cleanly"] is True


def test_a_torn_tail_is_told_and_is_no_damage(folder):
    patch(folder / THIRD, 4240, b"torn")

    verdict = verify_log(folder)

    assert verdict.is_whole
    assert "torn tail: 00000003.wal, byte 4,232: bytes whose checksum does not match; txid 10 was" in verdict.to_text()
    assert verdict.to_json()["torn_tail"] == {
        "segment": THIRD,
        "offset": 4232,
        "bytes": 12,
        "txid": 10,
        "found": "bytes whose checksum does not match",
    }


def test_damage_is_told_with_what_it_puts_out_of_reach(folder):
    patch(folder / SECOND, 4096 + 24, b"F")

    verdict = verify_log(folder)

    assert not verdict.is_whole
    assert (verdict.first_txid, verdict.last_txid, verdict.records) == (1, 3, 3)
    assert verdict.to_text().splitlines()[-2:] == [
        f"{folder / SECOND}: damaged at byte 4,096: found bytes whose checksum does not match, "
        "allowed txid 4, which was durable",
        "out of reach: txid 4 to 9 at least; 5 of those records still decode",
    ]
    assert verdict.to_json()["damage"] == {
        "segment": SECOND,
        "offset": 4096,
        "found": "bytes whose checksum does not match",
        "allowed": "txid 4, which was durable",
        "readable_records_behind": 5,
    }


@pytest.mark.parametrize("damage", [row[0] for row in DAMAGE.values()], ids=DAMAGE.keys())
def test_verifying_and_dumping_change_nothing(folder, damage):
    damage(folder)
    before = snapshot(folder)

    assert not verify_log(folder).is_whole
    with pytest.raises(LogDamaged):
        list(dump_log(folder))

    assert snapshot(folder) == before


def test_a_log_in_use_is_read_and_said_to_be_in_use(folder):
    with lock_folder(folder):
        verdict = verify_log(folder)

    assert verdict.is_whole
    assert verdict.in_use
    assert "a writer has this log open" in verdict.to_text()


def test_an_empty_folder_is_not_a_log(tmp_path):
    for look in (verify_log, repair_log, lambda path: list(dump_log(path))):
        with pytest.raises(NotALog, match="it holds no segment"):
            look(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_repairing_a_folder_of_something_else_puts_no_lock_file_there(tmp_path):
    (tmp_path / "thesis.tex").write_bytes(b"")

    with pytest.raises(NotALog):
        repair_log(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


# Dumps.


def test_a_dump_shows_each_record_and_each_ending(folder, golden):
    patch(folder / THIRD, 4240, b"torn")

    golden("wal_dump.txt", "\n".join(dump_log(folder)) + "\n")


def test_a_dump_begins_and_ends_where_it_is_told(folder):
    lines = [line for line in dump_log(folder, start_txid=2, limit=4) if not line.lstrip().startswith(("#", "offset"))]

    assert [int(line.split()[1]) for line in lines] == [2, 3, 4, 5]


def test_a_limited_dump_does_not_look_at_what_is_behind_it(folder):
    patch(folder / THIRD, 4096 + 24, b"S")

    assert list(dump_log(folder, limit=2))[-1] == "# 2 records shown; the log goes on"


def test_what_is_before_the_damage_is_dumped(folder):
    patch(folder / THIRD, 4096 + 24, b"S")
    shown = []

    with pytest.raises(LogDamaged):
        shown.extend(itertools.takewhile(lambda line: shown.append(line) or True, dump_log(folder)))

    assert "'four'" in "".join(shown)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "''"),
        (b"put a=1", "'put a=1'"),
        (b"it's\n", '"it\'s\\n"'),
        (b"\x1b]0;owned\x07\x1b[2J", r"'\x1b]0;owned\x07\x1b[2J'"),
        (b"\x00\x01\x02", "hex 000102"),
        (b"\xff" * 40, "hex " + "ff" * 32 + "..."),
        (b"x" * 40, "'" + "x" * 32 + "'..."),
        ("na\u00efve, \u202e".encode(), r"'na\xc3\xafve, \xe2\x80\xae'"),
    ],
)
def test_payloads_are_shown_and_never_reach_a_terminal_raw(payload, text):
    assert preview(payload) == text
    assert text.isascii()
    assert text.isprintable()


# Repairs.


def test_a_repair_cuts_a_torn_tail_and_keeps_a_copy(log, folder):
    patch(folder / THIRD, 4240, b"torn")

    repair = repair_log(folder)

    assert repair.to_text().splitlines() == [
        "cut: 00000003.wal at byte 4,232 (bytes whose checksum does not match); txid 10 was never durable",
        "kept: 00000003.wal.broken",
        f"{folder}: 9 records, txid 1 to 9",
    ]
    assert (folder / f"{THIRD}.broken").read_bytes()[4240:4244] == b"torn"
    assert verify_log(folder).torn is None
    assert records(folder) == log.records()


def test_a_whole_log_needs_no_repair(folder):
    repair = repair_log(folder)

    assert repair.to_text() == f"nothing to repair\n{folder}: 9 records, txid 1 to 9"
    assert repair.copies == ()


@pytest.mark.parametrize("damage", [row[0] for row in DAMAGE.values()], ids=DAMAGE.keys())
def test_a_repair_leaves_damage_alone_unless_asked_to_salvage(folder, damage):
    damage(folder)
    before = snapshot(folder)

    with pytest.raises(LogDamaged):
        repair_log(folder)

    (folder / "LOCK").unlink()
    assert snapshot(folder) == before


SALVAGED = {
    "flip-in-first": 1,
    "flip-before-durable": 5,
    "zeros-before-durable": 5,
    "missing-in-the-middle": 3,
    "missing-before-prepared": 9,
    "blank-in-the-middle": 3,
    "cut-short-in-the-middle": 5,
    "no-header-in-the-middle": 3,
    "renamed": 9,
    "another-log": 3,
    "chain-broken": 5,
    "txids-skipped": 5,
    "ends-elsewhere": 5,
    "ends-nowhere": 5,
    "first-txid-of-the-log": 0,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_salvage_keeps_everything_before_the_damage_and_throws_nothing_away(log, folder, name):
    DAMAGE[name][0](folder)
    before = {content for file, content in snapshot(folder).items() if file != "LOCK"}

    repair = repair_log(folder, salvage=True)

    assert records(folder) == log.records()[: SALVAGED[name]]
    assert verify_log(folder).is_whole
    kept = {content for file, content in snapshot(folder).items() if file != "LOCK"}
    assert all(content in kept for content in before if any(content[4096:]))
    assert repair.lost is not None
    assert repair.lost.first_txid == SALVAGED[name] + 1
    repair_log(folder)  # there is nothing left to do, and it says so without an error


def test_salvage_says_which_txids_are_out_of_reach(folder):
    patch(folder / SECOND, 4096 + 24, b"F")

    text = repair_log(folder, salvage=True).to_text()

    assert "out of reach: txid 4 to 9 at least; 5 of those records still decode" in text
    assert "kept: 00000002.wal.broken" in text
    assert "kept: 00000003.wal.broken" in text


def test_a_salvaged_log_can_be_appended_to(log, folder):
    patch(folder / THIRD, 4096 + 24, b"S")
    repair_log(folder, salvage=True)
    tail = small_log().segments[2]

    assert (folder / THIRD).read_bytes()[4096:] == bytes(SEGMENT_SIZE - 4096)
    assert (folder / SECOND).read_bytes()[: len(tail)] == tail


def test_a_log_in_use_is_not_repaired(folder):
    with lock_folder(folder), pytest.raises(LogLocked, match=f"process {os.getpid()} has this log open for writing"):
        repair_log(folder)


def test_a_later_version_is_not_repaired(folder):
    rewrite_header(folder / THIRD, version=2)
    before = snapshot(folder)

    with pytest.raises(UnsupportedVersion):
        repair_log(folder, salvage=True)

    (folder / "LOCK").unlink()
    assert snapshot(folder) == before


def test_a_segment_that_vanishes_under_the_reader_of_a_log_at_rest_is_damage(folder):
    reader = read_records(folder)
    next(reader)
    (folder / SECOND).unlink()

    with pytest.raises(
        LogDamaged, match=rf"{SECOND}: damaged at byte 0: found no such file, .* since {THIRD} is there"
    ):
        list(reader)


def test_a_salvage_of_the_first_segment_leaves_an_empty_log(folder):
    rewrite_header(folder / FIRST, number=3)

    repair = repair_log(folder, salvage=True)

    assert repair.contents.records == 0
    assert sorted(path.name for path in repair.copies) == [f"{name}.broken" for name in (FIRST, SECOND, THIRD)]
