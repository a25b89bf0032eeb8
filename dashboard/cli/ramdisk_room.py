"""Room for `run ramdisk`: what memory and disks can hold, and sizes scaled down to it.

memory   capacity = what was asked for (8 GiB), at most nine tenths of what the RAM directory has free and half of the
         memory that is available: the page cache needs the other half, or the baseline would not be one
         files    = all of them together fill at most four fifths of it, so that the experiment fits as in the report
disk     each case writes its files once, and other data where the state asks for it, and removes them
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dashboard.cli.ramdisk_flags import DEFAULT_CAPACITY, RamdiskFlags
from engine.environment import memory_available_bytes
from engine.errors import TidegaugeError, printable
from engine.storage.page_cache import dirty_limit
from engine.storage.space import disk_room, kept_free
from engine.units import MIB, Bytes, format_size

SMALLEST_FILE = MIB
_JOURNAL = 32 * MIB  # of a store: segments of 8 MiB, one in use, one prepared, and as many while it is compacted


class Sizes(NamedTuple):
    """What a run uses. notes: what was scaled, in words."""

    capacity: int
    file_size: int
    largest_block: int
    notes: tuple[str, ...]


class TooLittleRoom(TidegaugeError):
    """Nothing that is worth measuring fits."""


def scale(flags: RamdiskFlags, disks: tuple[Path, ...]) -> Sizes:
    """Return the sizes to run with. Raises TooLittleRoom, FileTrouble."""
    notes = []
    asked = DEFAULT_CAPACITY if flags.ram_capacity is None else flags.ram_capacity
    free = disk_room(flags.ram_dir)[1]
    available = memory_available_bytes() or free * 2
    capacity = min(asked, free * 9 // 10, available // 2)
    if capacity < asked:
        notes.append(
            f"RAM capacity {format_size(capacity)} instead of {format_size(asked)}: "
            f"{printable(str(flags.ram_dir))} has {format_size(free)} free, "
            f"the machine {format_size(available)} of memory available"
        )
    file_size = flags.file_size
    if flags.rate is None:
        limits = [_disk_limit(flags, disk) * len(disks) for disk in disks]
        if flags.ram_capacity is None and "lazy" in flags.policy:
            limits.append(Bytes(capacity * 4 // 5))
        most = min(limits) // flags.files
        if file_size > most:
            if most < SMALLEST_FILE:
                raise TooLittleRoom(
                    f"{flags.files} files of 1 MiB do not fit: memory for {format_size(capacity)}, "
                    f"room on disk for {format_size(min(limits))}; free some, or use --files with fewer"
                )
            file_size = most // MIB * MIB
            notes.append(
                f"file size {format_size(file_size)} instead of {format_size(flags.file_size)}: {flags.files} files "
                f"must fit memory ({format_size(capacity)}) and disk together"
            )
    elif (short := min(_disk_limit(flags, disk) for disk in disks)) < 2 * capacity:
        raise TooLittleRoom(
            f"a stream keeps up to {format_size(2 * capacity)} on disk, there is room for {format_size(short)}; "
            "use --ram-capacity with less"
        )
    largest = max(-(-file_size // 4096) * 4096, 4096)
    if any(block > largest for block in flags.block_size) and flags.rate is None:
        notes.append(f"blocks of at most {format_size(largest)}: a file is no larger")
    return Sizes(capacity, file_size, largest, tuple(notes))


def _disk_limit(flags: RamdiskFlags, disk: Path) -> Bytes:
    """Return the bytes that files may take on a disk."""
    total, free = disk_room(disk)
    other = dirty_limit() if "dirty-cache" in flags.state else 0
    filler = (flags.ram_capacity or DEFAULT_CAPACITY) if "full-ram" in flags.state else 0
    return Bytes(max(free - kept_free(total) - other - filler - _JOURNAL, 0))
