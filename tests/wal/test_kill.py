"""A writer that is killed at any moment has lost nothing that it acked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wal.kills import KilledWriters

KILLS = 100  # make bench kills a thousand: python -m tests.bench.kill_writer


@pytest.mark.slow
@pytest.mark.timeout(400)  # each writer waits for a disk that others may use
def test_a_hundred_killed_writers_lost_nothing_they_had_acked(disk_path: Path) -> None:
    with KilledWriters(disk_path, seed=8755) as writers:
        writers.kill(KILLS)

        assert writers.kills == KILLS
        assert writers.acks > 10 * KILLS
        assert 0 < writers.deaths_before_first_ack < KILLS // 2
