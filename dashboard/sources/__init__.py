"""Sources: where snapshots come from. Whoever shows them pulls the newest and cannot tell one source from another."""

from __future__ import annotations

from typing import Protocol

from engine.snapshot import Snapshot


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

    def stall_next_sync(self, nanoseconds: int, /) -> None:
        """Make the next sync take that much longer."""

    def fail_next_sync(self) -> None:
        """Make the next sync fail with an I/O error."""


class Source(Protocol):
    """One origin of snapshots."""

    @property
    def name(self) -> str:
        """What it is called on the screen."""

    @property
    def controls(self) -> WalControls | None:
        """How to control its log, or None where that cannot be done from here."""

    @property
    def taken(self) -> int:
        """How many snapshots it has given so far."""

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, None before the first. Costs nothing: call it as often as you like."""

    def close(self, timeout: float) -> bool:
        """Stop, waiting at most `timeout` seconds; return whether it has ended."""
