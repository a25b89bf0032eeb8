"""What a run may need of the disk, and the words for when it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.cli import wal_room
from dashboard.cli.wal_room import DiskTooFull, RoomGuard, bytes_needed, require_room
from engine.units import GIB, MIB, SECOND
from tests.cli.commands import run

CASE = {
    "model": "group",
    "threads": 50,
    "device": "real",
    "value_size_bytes": 1000,
    "sync": "fdatasync",
    "sync_every": 1,
    "rate": None,
    "iterations": None,
    "duration_ns": 5 * SECOND,
    "warmup_ns": 0,
    "roll": None,
    "segment_size": MIB,
    "verify": True,
    "keeps_all": False,
}
FRAME = 24 + 1000


def needed(**changes: object) -> int:
    return bytes_needed({**CASE, **changes})


def test_records_that_are_read_back_are_all_counted() -> None:
    bare = needed(iterations=1, duration_ns=None, threads=1)

    assert needed(iterations=10_000, duration_ns=None) - bare == pytest.approx(50 * 10_000 * FRAME, rel=0.01)


def test_a_rate_and_a_simulated_latency_bound_what_a_second_can_bring() -> None:
    assert needed(rate=1000) < needed() / 10
    assert needed(device="serial:5ms") < needed() / 10
    assert needed(device="serial:5ms") == pytest.approx(50 / 0.005 * 5 * FRAME, rel=0.15)
    assert needed(device="serial:5ms", sync="none") > needed(), "without syncs there is nothing to wait for"


def test_a_log_that_is_checkpointed_as_it_goes_needs_no_more_for_a_longer_run() -> None:
    assert needed(verify=False, duration_ns=3600 * SECOND) == needed(verify=False)
    assert needed(verify=False) < needed()


def test_a_roll_of_few_records_costs_a_segment_each() -> None:
    assert needed(iterations=100, duration_ns=None, roll=100, threads=10) >= 10 * MIB


def test_a_run_that_does_not_fit_is_refused_with_what_it_needs(
    disk_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_room, "disk_room", lambda folder: (100 * GIB, 3 * GIB))
    require_room(disk_path, 2 * GIB)

    with pytest.raises(DiskTooFull) as raised:
        require_room(disk_path, 2 * GIB + 1)

    assert str(raised.value) == (
        f"{disk_path}: the run can need 2 GiB, 3 GiB are free and 1 GiB of them stay free; use a smaller run, "
        "or a larger disk with --path"
    )


def test_a_run_that_cannot_fit_this_disk_writes_nothing(disk_path: Path) -> None:
    result = run("run", "wal", "--threads", 1000, "--iterations", "1G", "--verify", "--path", disk_path / "log")

    assert result.exit_code == 1
    assert "the run can need" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (disk_path / "log").exists()


def test_a_disk_that_fills_up_meanwhile_ends_the_run(disk_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal_room, "disk_room", lambda folder: (10 * GIB, 400 * MIB))

    assert (
        RoomGuard(disk_path).trouble()
        == f"{disk_path}: stopped with 400 MiB free; a run leaves 512 MiB of this disk alone"
    )


def test_the_disk_is_looked_at_now_and_then_only(disk_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(wal_room, "disk_room", lambda folder: looks.append(folder) or (10 * GIB, 5 * GIB))
    guard = RoomGuard(disk_path)

    assert [guard.trouble() for _ in range(100)] == [None] * 100

    assert len(looks) < 10
