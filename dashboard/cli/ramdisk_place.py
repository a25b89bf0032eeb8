"""Where the RAM disk of a local engine lives: a temporary folder in memory, one on a disk, and how much it may take.

Both folders are the engine's own and gone when it ends. A machine without room or without a tmpfs still gets its
dashboard: the RAM disk then says why it is not there. Only what was asked for by a flag and cannot be is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from dashboard.cli.engine_flags import EngineFlags
from dashboard.cli.wal_folder import folder_on_disk, temporary_folder
from engine.environment import memory_available_bytes, mount_of
from engine.errors import TidegaugeError, printable
from engine.storage.space import disk_room, kept_free
from engine.units import MIB, format_size

if TYPE_CHECKING:
    from engine.workloads.ramdisk_lane import RamdiskSettings

RAM_DIR = Path("/dev/shm")
BLOCK_SIZE = 8 * MIB  # small enough that a backlog grows smoothly on the screen
FILE_SIZE = 64 * MIB
CAPACITY = 512 * MIB  # what is written must also be removed before the program ends
LEAST_CAPACITY = 64 * MIB
STREAM_RATE = 100 * MIB  # what the key starts with
_UNLINKERS = 4
_TIMES_ON_DISK = 2  # of the capacity: what the stream keeps there, at most


class RamdiskPlace(NamedTuple):
    """The folders and the capacity; `refused`: why there are none."""

    ram_dir: Path
    disk_dir: Path
    capacity: int
    refused: str = ""


class NoPlace(TidegaugeError):
    """There is no place for a RAM disk; the text says why and what to do."""


@contextlib.contextmanager
def ramdisk_place(flags: EngineFlags) -> Iterator[RamdiskPlace]:
    """Yield the place, gone afterwards. Raises UsageError where a flag asked for one that cannot be."""
    ram_dir = flags.ram_dir or RAM_DIR
    with contextlib.ExitStack() as folders:
        try:
            capacity = _capacity(flags, ram_dir)
            disk = folders.enter_context(temporary_folder(folder_on_disk(), keep=False))
            capacity = _that_fits_on(disk, capacity)
            ram = folders.enter_context(temporary_folder(ram_dir, keep=False))
        except TidegaugeError as problem:
            if flags.ram_dir is not None:
                raise click.UsageError(f"--ram-dir: {problem}") from problem
            place = RamdiskPlace(ram_dir, ram_dir, 0, refused=str(problem))
        else:
            place = RamdiskPlace(ram, disk / "volume", capacity)
            folders.callback(_unlink_all, ram, disk / "volume")
        yield place


def lane_settings(flags: EngineFlags, place: RamdiskPlace) -> RamdiskSettings:
    """Return what the lane is opened with. The stream runs from the start only where a rate was asked for."""
    from engine.workloads.ramdisk_lane import RamdiskSettings

    return RamdiskSettings(
        ram_dir=place.ram_dir,
        disk_dirs=(place.disk_dir,),
        ram_capacity=place.capacity,
        rate=STREAM_RATE if flags.ram_rate is None else flags.ram_rate,
        block_size=BLOCK_SIZE,
        file_size=FILE_SIZE,
        starts_streaming=flags.ram_rate is not None,
        refused=place.refused,
    )


def _unlink_all(*folders: Path) -> None:
    """Remove the files of some folders, several at a time: a gigabyte of pages takes a while to be given back."""
    paths = [path for folder in folders for path in folder.rglob("*") if not path.is_dir()]
    with ThreadPoolExecutor(_UNLINKERS, thread_name_prefix="unlink") as helpers:
        for outcome in [helpers.submit(path.unlink, missing_ok=True) for path in paths]:
            with contextlib.suppress(OSError):  # what is left over, the folder's own removal meets again
                outcome.result()


def _capacity(flags: EngineFlags, ram_dir: Path) -> int:
    """Return the bytes of memory to use: what was asked for, or what the machine can well spare. Raises NoPlace."""
    shown = printable(str(ram_dir))
    if not ram_dir.is_dir():
        raise NoPlace(f"{shown} is no folder; --ram-dir DIR names another tmpfs")
    mount = mount_of(ram_dir)
    if mount is not None and not mount.is_memory:
        raise NoPlace(f"{shown} is on {mount.file_system}, a disk; --ram-dir DIR names a tmpfs")
    free = disk_room(ram_dir)[1]
    available = memory_available_bytes() or 2 * free
    most = min(free * 9 // 10, available // 4 if flags.ram_capacity is None else available * 9 // 10)
    capacity = min(flags.ram_capacity or CAPACITY, most)
    if capacity < LEAST_CAPACITY:
        raise NoPlace(
            f"{shown} has {format_size(free)} free and the machine {format_size(available)} of memory; "
            f"a RAM disk needs {format_size(LEAST_CAPACITY)} of it"
        )
    return capacity


def _that_fits_on(disk: Path, capacity: int) -> int:
    """Return the capacity, less where the disk cannot take what the stream keeps there. Raises NoPlace."""
    total, free = disk_room(disk)
    room = max(free - kept_free(total), 0) // _TIMES_ON_DISK
    if room < LEAST_CAPACITY:
        raise NoPlace(f"{printable(str(disk.parent))} has {format_size(free)} free, too little for a RAM disk's copies")
    return min(capacity, room)
