"""The sync probe: what it measures, and what its figures mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.environment import Mount
from engine.errors import FileTrouble
from engine.storage.probes import SyncProbe, judge_sync, probe_sync
from engine.units import Nanoseconds

DISK = Mount("/", "ext4", "/dev/sda", frozenset({"rw"}), "8:0")
MEMORY = Mount("/dev/shm", "tmpfs", "tmpfs", frozenset({"rw"}), "0:9")
US, MS = 1_000, 1_000_000


def probed(*, cached: int = 2 * US, synced: int, direct: int | None, refused: str = "") -> SyncProbe:
    return SyncProbe(
        40, Nanoseconds(cached), Nanoseconds(synced), None if direct is None else Nanoseconds(direct), refused
    )


@pytest.mark.parametrize(
    ("probe", "mount", "virtual", "level", "words"),
    [
        (probed(synced=5 * MS, direct=5 * MS), DISK, False, "ok", "it waits for the device"),
        (probed(synced=40 * US, direct=35 * US), DISK, False, "ok", "it waits for the device"),
        (probed(synced=90 * US, direct=80 * US), DISK, True, "warn", "the disk is virtual and this fast"),
        (probed(synced=5 * MS, direct=5 * MS), DISK, True, "ok", "it waits for the device"),
        (probed(synced=3 * US, direct=5 * MS), DISK, False, "fail", "fdatasync returns without waiting for the device"),
        (probed(synced=1 * MS, direct=8 * MS), DISK, False, "warn", "does much less than a durable write should"),
        (probed(synced=3 * US, direct=4 * US), DISK, False, "warn", "sooner than any device answers"),
        (
            probed(synced=4 * MS, direct=None, refused="Invalid argument"),
            DISK,
            False,
            "warn",
            "no direct write to compare with: Invalid argument",
        ),
        (probed(synced=3 * US, direct=3 * US), MEMORY, False, "warn", "/dev/shm is tmpfs: memory"),
    ],
    ids=[
        *("slow-disk", "drive-with-power-loss-protection", "fast-virtual-disk", "slow-virtual-disk", "lying-sync"),
        *("weak-sync", "everything-in-memory", "no-direct-writes", "tmpfs"),
    ],
)
def test_figures_are_judged(probe: SyncProbe, mount: Mount, virtual: bool, level: str, words: str) -> None:
    found, why = judge_sync(probe, mount, virtual=virtual)

    assert found == level
    assert words in why


def test_a_sync_takes_longer_than_a_write_into_memory(disk_path: Path) -> None:
    probe = probe_sync(disk_path, rounds=5)

    assert probe.rounds == 5
    assert 0 < probe.cached_ns < probe.synced_ns
    assert (probe.direct_ns is None) == bool(probe.direct_refused)
    assert not list(disk_path.iterdir()), "its file is gone"


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with pytest.raises(FileTrouble, match=r"^/proc: cannot probe its syncs: "):
        probe_sync(Path("/proc"))
