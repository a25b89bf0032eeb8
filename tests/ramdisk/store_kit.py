"""Stores for tests: small, on a private folder of /dev/shm, with faults that strike where a test says."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.ramdisk.core import StoreSettings
from engine.ramdisk.store import Store
from engine.storage.file_calls import FileCalls, Place
from engine.units import MIB, Nanoseconds

SHM = Path("/dev/shm")
BLOCK = 256 << 10


@contextmanager
def ram_parent() -> Iterator[Path]:
    """Yield a private folder on tmpfs, gone afterwards."""
    if not os.access(SHM, os.W_OK):
        pytest.skip("no tmpfs to write to")
    folder = Path(tempfile.mkdtemp(prefix="tidegauge-test-", dir=SHM))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Kit:
    """Opens and reopens one store; keeps what it reported."""

    def __init__(self, ram: Path, disk: Path, *, volumes: int = 1) -> None:
        self.ram, self.disk = ram, disk
        self.reports: list[tuple[str, str]] = []
        self.faults = Faults()
        self.settings = StoreSettings(
            ram_dir=ram,
            disk_dirs=tuple(disk / f"volume-{k}" for k in range(volumes)),
            ram_capacity=8 * MIB,
            block_size=BLOCK,
            chunk=16 << 10,
            copy_mode="buffered",
            low_watermark=0,
            retry_first_ns=Nanoseconds(2_000_000),
            retry_last_ns=Nanoseconds(20_000_000),
        )
        self._stores: list[Store] = []

    def open(self, *, held: bool = False, **changes: object) -> Store:
        """Open the store, with other settings where given."""
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        store = Store.open(
            self.settings,
            calls=FileCalls(self.faults.strike),
            report=lambda severity, text: self.reports.append((severity, text)),
            held=held,
        )
        self._stores.append(store)
        return store

    def close_all(self) -> None:
        """Close every store; a test that failed leaves none open."""
        for store in self._stores:
            store.close()

    def ram_files(self, kind: str = "*.replica") -> list[Path]:
        """Return the files on the RAM disk."""
        return sorted(self.ram.glob(f"tidegauge-*/{kind}"))

    def disk_files(self, kind: str = "*") -> list[Path]:
        """Return the replica files on all volumes."""
        return sorted(self.disk.glob(f"*/replicas/{kind}"))

    def said(self, words: str) -> bool:
        """Whether something was reported that holds these words."""
        return any(words in text for _, text in self.reports)


class Faults:
    """Plans what happens at a place: `at(place, code)` fails it, once or always, until `clear`."""

    def __init__(self) -> None:
        self._plan: dict[Place, tuple[int, int, int]] = {}  # place -> (errno, skip, how often)
        self._guard = threading.Lock()
        self.seen: dict[Place, int] = dict.fromkeys(Place, 0)
        self.gates: dict[Place, threading.Event] = {}

    def at(self, place: Place, code: int = errno.EIO, *, skip: int = 0, times: int = 1 << 30) -> None:
        """Fail the calls after the first `skip` of a place, `times` times."""
        with self._guard:
            self._plan[place] = code, skip, times

    def clear(self) -> None:
        """Fail nothing any more."""
        with self._guard:
            self._plan.clear()

    def strike(self, place: Place) -> None:
        """Be asked before each call."""
        gate = self.gates.get(place)
        if gate is not None:
            gate.wait(20)
        with self._guard:
            self.seen[place] += 1
            if place not in self._plan:
                return
            code, skip, times = self._plan[place]
            if skip:
                self._plan[place] = code, skip - 1, times
                return
            if not times:
                return
            self._plan[place] = code, 0, times - 1
        raise OSError(code, os.strerror(code))


def content(seed: int, size: int) -> bytes:
    """Return bytes that no other seed has."""
    return np.random.default_rng(seed).bytes(size)


def put(store: Store, name: str, data: bytes, **how: object) -> None:
    """Write a whole file."""
    with store.create(name, **how) as file:  # type: ignore[arg-type]
        file.write(data)
