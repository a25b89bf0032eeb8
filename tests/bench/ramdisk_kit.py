"""What the RAM-disk benchmarks share: a store with private folders, and a buffer to write."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from engine.ramdisk.core import StoreSettings
from engine.ramdisk.store import Store
from engine.units import MIB
from tests.bench.rounds import Plan, say

RAM = Path("/dev/shm")
PIECE = 8 * MIB
FILE = 512 * MIB  # four blocks of 128 MiB


@contextmanager
def ram_folder() -> Iterator[Path]:
    """Yield a private folder on tmpfs."""
    folder = Path(tempfile.mkdtemp(prefix="tidegauge-bench-", dir=RAM))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def a_store(how: Plan, *, held: bool = False, **settings: Any) -> Iterator[Store]:
    """Yield a new store."""
    plain: dict[str, Any] = {"ram_capacity": 1152 * MIB, "block_size": 128 * MIB, "low_watermark": 0}
    with ram_folder() as ram, how.place("store") as disk:
        disk.mkdir()
        made = StoreSettings(ram_dir=ram, disk_dirs=(disk / "volume",), **(plain | settings))
        with Store.open(made, held=held, report=lambda severity, text: say(f"{severity}: {text}")) as store:
            yield store


def a_piece() -> memoryview:
    """Return bytes that do not compress."""
    return memoryview(bytearray(np.random.default_rng(1).bytes(PIECE)))


def show(found: dict[str, list[float]], against: str, unit: str = "GiB/s") -> None:
    """Print median, lowest, highest and the ratio to `against`, by rounds."""
    import statistics

    from tests.bench.rounds import ratio

    say(f"{'':40}{unit:>10}{'lowest':>10}{'highest':>10}{'ratio':>8}  to {against}")
    for name, values in found.items():
        line = f"{name:40}{statistics.median(values):10.3f}{min(values):10.3f}{max(values):10.3f}"
        say(line + f"{ratio(values, found[against]):8.2f}")
