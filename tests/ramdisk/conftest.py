"""Fixtures of the RAM-disk tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ramdisk.store_kit import Kit, ram_parent


@pytest.fixture
def kit(disk_path: Path) -> Iterator[Kit]:
    """Return a kit for a store with one disk volume."""
    with ram_parent() as ram:
        kit = Kit(ram, disk_path)
        yield kit
        kit.close_all()


@pytest.fixture
def two_disks(disk_path: Path) -> Iterator[Kit]:
    """Return a kit for a store with two disk volumes."""
    with ram_parent() as ram:
        kit = Kit(ram, disk_path, volumes=2)
        yield kit
        kit.close_all()
