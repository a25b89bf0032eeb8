"""The verdict on the RAM disk says what a person would, of windows made by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dashboard.ramdisk_verdict import ramdisk_verdict
from dashboard.ramdisk_window import RamdiskWindow
from engine.measure.buckets import LADDER_BUCKETS
from engine.snapshot import Absent, Histogram, RamdiskSnapshot
from engine.units import GIB, MIB, SECOND

SECONDS = 5.0


def ram(**changes: Any) -> RamdiskSnapshot:
    """A RAM disk of 1 GiB that has done nothing yet."""
    zeros = {f.name: Histogram((0,) * LADDER_BUCKETS, 0) if f.type is Histogram else 0
             for f in msgspec.structs.fields(RamdiskSnapshot)}  # fmt: skip
    words = {"ram_dir": "/dev/shm", "ram_label": "tmpfs", "disk": "/d", "policy": "lazy", "checksum": "on"}
    plain = {"state": "streaming", "copy_mode": "direct", "replicas": (), "capacity_bytes": GIB}
    return RamdiskSnapshot(**(zeros | words | plain | {"block_size_bytes": 8 * MIB} | changes))  # type: ignore[arg-type]


def after(**changes: Any) -> RamdiskWindow:
    """Five seconds in which 500 MiB were written and persisted, with `changes` at their end."""
    steady = {"ram_bytes_written": 500 * MIB, "persisted_bytes": 500 * MIB, "persist_busy_ns": SECOND,
              "ram_blocks_written": 60, "persisted_blocks": 60}  # fmt: skip
    return RamdiskWindow(ram(**(steady | changes)), ram(backlog_bytes=100 * MIB), SECONDS)


KEEPS_UP = {"backlog_bytes": 100 * MIB, "oldest_at_risk_ns": 2_100_000_000}


@pytest.mark.parametrize(
    ("changes", "mood", "text"),
    [
        (KEEPS_UP, "good", "the lazy writer keeps up: 2.1 s behind"),
        (KEEPS_UP | {"backlog_bytes": 114 * MIB}, "good", "the lazy writer keeps up: 2.1 s behind"),
        (
            {"backlog_bytes": 400 * MIB, "persisted_bytes": 200 * MIB},
            "warn",
            "RAM disk full in 10.4 s at this rate: 100 MiB/s come, 40 MiB/s leave",
        ),
        (
            {"backlog_bytes": 400 * MIB, "persisted_bytes": 100 * MIB, "persist_rate_bytes": 20 * MIB},
            "warn",
            "RAM disk full in 10.4 s at this rate: 100 MiB/s come, 20 MiB/s leave (simulated slow disk, 20 MiB/s)",
        ),
        (
            {"backlog_bytes": 400 * MIB, "capacity_bytes": 1024 * GIB, "oldest_at_risk_ns": 9 * SECOND},
            "warn",
            "the lazy writer falls behind, 9 s so far: 100 MiB/s come, 100 MiB/s leave",
        ),
        (
            {"backlog_bytes": 20 * MIB, "oldest_at_risk_ns": SECOND, "ram_bytes_written": 100 * MIB},
            "good",
            "the lazy writer catches up: 1 s behind, drained in 1.25 s",
        ),
        (
            {"fallback_blocks": 20, "backlog_bytes": 900 * MIB},
            "bad",
            "RAM disk full: 25 % of blocks fall back to disk",
        ),
        ({"failing_blocks": 3}, "bad", "cannot persist 3 blocks: at risk until it works, see the events"),
        ({"corrupt_blocks": 1}, "bad", "corrupt in memory: 1 block, kept from the disk"),
        ({"lost_blocks": 2}, "bad", "lost: 2 blocks that only memory had"),
        ({"state": "idle"}, "dim", "idle: nothing is at risk"),
        (
            {"state": "idle", "backlog_bytes": 250 * MIB},
            "good",
            "draining: 250 MiB at risk, drained in 500 ms",
        ),
        ({"state": "closed"}, "dim", "closed: the RAM disk takes nothing"),
        ({"ram_bytes_written": 0}, "warn", "nothing written for 5 s though the stream runs"),
    ],
    ids=[
        "keeps-up",
        "two-blocks-more-are-no-trend",
        "fills",
        "fills-on-a-simulated-disk",
        "falls-behind-with-much-room",
        "catches-up",
        "full",
        "failing",
        "corrupt",
        "lost",
        "idle",
        "draining",
        "closed",
        "stuck",
    ],
)  # fmt: skip
def test_the_verdict(changes: dict[str, Any], mood: str, text: str) -> None:
    verdict = ramdisk_verdict(after(**changes))

    assert (verdict.mood, verdict.text) == (mood, text)


def test_after_a_reboot_its_losses_are_the_news() -> None:
    verdict = ramdisk_verdict(RamdiskWindow(ram(lost_files=2), None, 1.0))

    assert (verdict.mood, verdict.text) == ("bad", "the reboot took 2 files that were at risk; the events name them")


def test_a_store_that_is_not_there_says_why() -> None:
    assert ramdisk_verdict(Absent("/dev/shm is full\x1b")).text == "/dev/shm is full\\x1b"
