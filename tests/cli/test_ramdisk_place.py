"""The RAM disk of a local engine has its folders in memory and on disk, or a line that says why not; both go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from dashboard.cli import ramdisk_place as place_module
from dashboard.cli.engine_flags import EngineFlags
from dashboard.cli.ramdisk_place import STREAM_RATE, lane_settings, ramdisk_place
from dashboard.cli.serve import ramdisk_status_line
from engine.events import EventLog
from engine.measure.clock import SystemClock
from engine.snapshot import Absent
from engine.units import GIB, MIB
from engine.workloads.ramdisk_lane import RamdiskLane
from tests.cli.commands import run
from tests.ramdisk.store_kit import ram_parent
from tests.snapshots import ramdisk_snapshot, snapshot
from tests.waiting import wait_for


def flags(**changes: Any) -> EngineFlags:
    return EngineFlags(threads=1, model="group", device="real", value_size=100, sync="fdatasync", path=None, **changes)  # type: ignore[arg-type]


def test_the_folders_are_in_memory_and_on_disk_and_go_away(disk_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(disk_path))
    with ram_parent() as ram:
        with ramdisk_place(flags(ram_dir=ram, ram_capacity=64 * MIB)) as place:
            assert place.ram_dir.parent == ram and place.ram_dir.is_dir()
            assert disk_path in place.disk_dir.parents and place.disk_dir.parent.is_dir()
            assert (place.capacity, place.refused) == (64 * MIB, "")
            (place.ram_dir / "replica").write_bytes(b"x")

        assert list(ram.iterdir()) == []
        assert list(disk_path.iterdir()) == []


def test_a_machine_without_a_tmpfs_gets_a_lane_that_says_so(disk_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_module, "RAM_DIR", disk_path)

    with ramdisk_place(flags()) as place:
        events = EventLog(SystemClock())
        lane = RamdiskLane(lane_settings(flags(), place), SystemClock(), events)
        lane.start()
        wait_for(lambda: any("--ram-dir DIR names a tmpfs" in event.text for event in events.newest()))
        sample = lane.sample()
        lane.close()

    assert isinstance(sample, Absent)
    assert sample.reason.startswith(f"{disk_path} is on ") and "\n" not in sample.reason
    assert list(disk_path.iterdir()) == []


def test_too_little_memory_is_said_in_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_module, "memory_available_bytes", lambda: 100 * MIB)

    with ram_parent() as ram:
        monkeypatch.setattr(place_module, "RAM_DIR", ram)
        with ramdisk_place(flags()) as place:
            assert "the machine 100 MiB of memory; a RAM disk needs 64 MiB of it" in place.refused
        assert list(ram.iterdir()) == []


def test_a_folder_asked_for_that_cannot_be_is_an_error(disk_path: Path) -> None:
    place = ramdisk_place(flags(ram_dir=disk_path))
    with pytest.raises(click.UsageError, match=r"--ram-dir: .* a disk; --ram-dir DIR names a tmpfs"):
        place.__enter__()

    result = run("serve", "--ram-dir", disk_path / "nowhere")
    assert result.exit_code == 2
    assert "is no folder; --ram-dir DIR names another tmpfs" in result.stderr


@pytest.mark.parametrize(("rate", "streams", "set_to"), [(None, False, STREAM_RATE), (5 * MIB, True, 5 * MIB)])
def test_a_stream_runs_from_the_start_only_where_a_rate_was_asked_for(
    rate: int | None, streams: bool, set_to: int
) -> None:
    settings = lane_settings(
        flags(ram_rate=rate), place_module.RamdiskPlace(Path("/dev/shm/x"), Path("/var/tmp/x"), GIB)
    )

    assert (settings.starts_streaming, settings.rate) == (streams, set_to)


def test_serve_tells_of_a_ram_disk_at_work_and_not_of_an_idle_one() -> None:
    before = snapshot(monotonic_ns=0, ramdisk=ramdisk_snapshot(persisted_bytes=0, ram_bytes_written=0))
    work = {"persisted_bytes": 20 * MIB, "ram_bytes_written": 40 * MIB, "backlog_bytes": 20 * MIB}
    after = snapshot(monotonic_ns=2_000_000_000, ramdisk=ramdisk_snapshot(fallback_blocks=3, **work))
    idle = snapshot(monotonic_ns=2_000_000_000, ramdisk=ramdisk_snapshot(state="idle", backlog_bytes=0))

    line = "ramdisk: streaming, 20 MiB at risk, 3 fallbacks, 20 MiB/s written, 10 MiB/s persisted"
    assert ramdisk_status_line(before, after) == line
    assert ramdisk_status_line(before, idle) is None
