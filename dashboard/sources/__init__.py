"""Sources: where snapshots come from. Whoever shows them pulls the newest and cannot tell one source from another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.snapshot import Absent, Snapshot
from engine.units import Nanoseconds

if TYPE_CHECKING:
    from engine.workloads.image_tree import TreeListing


class WalControls(Protocol):
    """What can be asked of a running log. Each returns at once and is seen in later snapshots."""

    def set_handlers(self, count: int, /) -> None:
        """Run that many handlers."""

    def set_model(self, model: str, /) -> None:
        """Run another write-thread model."""

    def set_device(self, device: str, /) -> None:
        """Run on another device."""

    def set_sync(self, sync: str, /) -> None:
        """Sync in another way."""

    def start(self) -> None:
        """Start the handlers."""

    def stop(self) -> None:
        """Stop the handlers; the log stays open."""

    def reopen(self) -> None:
        """Open a poisoned log again."""

    def stall_next_sync(self, duration: Nanoseconds, /) -> None:
        """Make the next sync take that much longer."""

    def fail_next_sync(self) -> None:
        """Make the next sync fail with an I/O error."""


class RamdiskControls(Protocol):
    """What can be asked of a running RAM disk. Each returns at once and is seen in later snapshots."""

    def start(self) -> None:
        """Start the stream of files; where the store did not open, try again."""

    def stop(self) -> None:
        """Stop the stream; the lazy writers go on."""

    def set_rate(self, rate: int, /) -> None:
        """Write that many bytes a second; 0 is as fast as it goes."""

    def set_checksum(self, checksum: str, /) -> None:
        """Write new files with checksums on, deferred or off."""

    def set_copy_mode(self, mode: str, /) -> None:
        """Copy to disk in another way."""

    def set_persist_rate(self, rate: int, /) -> None:
        """Limit the lazy writers to that many bytes a second; 0 is no limit."""

    def fill(self) -> None:
        """Write as fast as it goes until memory is full."""

    def wipe(self) -> None:
        """Simulate a reboot: what is in memory only is lost."""


class ImageControls(Protocol):
    """What can be asked of the image lane. All but the last two return at once and are seen in later snapshots."""

    def start(self) -> None:
        """Load what was chosen."""

    def open(self, path: Path, /) -> None:
        """Choose an image and load it."""

    def open_synthetic(self, layout: str, /) -> None:
        """Choose a synthetic image and load it."""

    def set_strategy(self, strategy: str, /) -> None:
        """Load by another strategy from the next load on."""

    def set_threads(self, threads: int, /) -> None:
        """Load with that many threads from the next load on."""

    def cancel(self) -> None:
        """Cancel the load, or let go of the image."""

    def list_children(self, row: int | None, first: int, count: int, /) -> TreeListing | Absent:
        """Return a part of a directory of the loaded image; of the root where row is None."""

    def place_of(self, row: int, /) -> int:
        """Return which child of its directory an inode is."""


class Source(Protocol):
    """One origin of snapshots."""

    @property
    def name(self) -> str:
        """What it is called on the screen."""

    @property
    def controls(self) -> WalControls | None:
        """How to control its log, or None where that cannot be done from here."""

    @property
    def ramdisk(self) -> RamdiskControls | None:
        """How to control its RAM disk, or None where there is none or that cannot be done from here."""

    @property
    def image(self) -> ImageControls | None:
        """How to control its image lane and look into what it loaded, or None likewise."""

    @property
    def taken(self) -> int:
        """How many snapshots it has given so far."""

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, None before the first. Costs nothing: call it as often as you like."""

    def close(self, timeout: float) -> bool:
        """Stop, waiting at most `timeout` seconds; return whether it has ended."""
