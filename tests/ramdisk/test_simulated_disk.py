"""The limit that simulates a slow disk holds for everything that becomes durable, fallbacks too."""

from __future__ import annotations

from pathlib import Path

from engine.ramdisk.core import StoreSettings
from engine.ramdisk.store import Store
from engine.units import MIB
from tests.fakes.fake_clock import FakeClock
from tests.ramdisk.store_kit import ram_parent
from tests.waiting import wait_for


def test_a_fallback_is_durable_no_sooner_than_a_slow_disk_would_have_it(disk_path: Path) -> None:
    clock = FakeClock()
    with ram_parent() as ram:
        settings = StoreSettings(
            ram_dir=ram, disk_dirs=(disk_path / "volume",), ram_capacity=0, block_size=MIB, persist_rate=MIB // 10
        )
        with Store.open(settings, clock=clock) as store:
            with store.create("a") as file:
                file.write(bytes(MIB))

            wait_for(lambda: clock.waiters == 1, what="the lazy writer to wait for its turn")
            assert store.core.meters.fallback_blocks == 1
            assert store.core.meters.persisted_blocks == 0

            clock.advance(11)
            wait_for(lambda: store.core.meters.persisted_blocks == 1)
