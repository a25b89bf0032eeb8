"""The verdict: what bounds the write-ahead log, in one line of words.

A pure function of one window, so that the screen and `run wal` say the same of the same figures. It looks, in order:

    is the log there and running?      poisoned, stopped, closed
    does anything commit?              no handlers, or handlers that wait and get no answer
    did one sync hold everyone up?     a stall in the window
    where does a commit's time go?     sync, write, wake, or waiting for work

`hint` is what a person at the screen can press; whoever has no keys leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dashboard.wal_window import STAGES, Stages, WalWindow
from engine.errors import printable
from engine.snapshot import Absent, WalSnapshot
from engine.units import format_count, format_duration

Mood = Literal["good", "warn", "bad", "dim"]

# Syncs that fill less of the time than this leave the disk waiting for work.
BUSY = 0.6
# One sync this long, inclusive, is a stall: a person sees the plot stop.
STALL_NS = 200_000_000
# A stage that takes at least this share of a commit, with syncs less, is what bounds it.
DOMINANT = 0.4


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line; `mood` says how good the news is."""

    mood: Mood
    text: str
    hint: str = ""

    def line(self) -> str:
        """Return text and hint together."""
        return f"{self.text}; {self.hint}" if self.hint else self.text


def wal_verdict(window: WalWindow | Absent) -> Verdict:
    """Say what bounds the log over a window."""
    if isinstance(window, Absent):
        return Verdict("dim", printable(window.reason))
    wal = window.last
    return _not_running(wal) or _not_committing(window) or _stalled(window) or _bound(window)


def _not_running(wal: WalSnapshot) -> Verdict | None:
    if wal.state == "poisoned":
        return Verdict("bad", f"poisoned: {_poison(wal)}", "press s to reopen")
    if wal.state in ("stopped", "closed"):
        return Verdict("dim", f"{wal.state}: nothing commits", "press s to start")
    return None


def _poison(wal: WalSnapshot) -> str:
    """Return the error that stopped the log, and at what."""
    error = printable(wal.poison) or "I/O error"
    if " at " in error or bool(wal.sync_errors) == bool(wal.write_errors):
        return error
    return f"{error} at {'sync' if wal.sync_errors else 'write'}"


def _not_committing(window: WalWindow) -> Verdict | None:
    wal = window.last
    if wal.handlers == 0:
        return Verdict("dim", "no handlers: nothing commits", "press + to start one")
    if window.commits == 0:
        waiting = "" if isinstance(wal.waiting_handlers, Absent) else f" ({wal.waiting_handlers} inside commit)"
        handlers = _many(wal.handlers, "handler")
        return Verdict("warn", f"nothing committed for {window.seconds:.0f} s: {handlers}{waiting}, no sync returned")
    return None


def _stalled(window: WalWindow) -> Verdict | None:
    if isinstance(window.sync, Absent) or window.sync.own_period is not None or window.sync.maximum < STALL_NS:
        return None
    if window.sync.p50 >= STALL_NS / 2:  # syncs are slow on this device: no single one stands out
        return None
    longest = format_duration(window.sync.maximum)
    return Verdict("warn", f"stalled: one sync took {longest}, its median is {format_duration(window.sync.p50)}")


def _bound(window: WalWindow) -> Verdict:
    """Say what a running log waits for. The device is busy when syncs fill the time."""
    wal, busy = window.last, window.sync_busy
    if wal.sync.startswith("none"):
        return Verdict("warn", "not durable: records are written and never synced")
    shares = dict(zip(STAGES, window.stages.shares, strict=True)) if isinstance(window.stages, Stages) else {}
    # With dsync the write is the sync.
    writes_are_syncs = wal.sync == "dsync" and shares.get("write", 0.0) >= DOMINANT
    if writes_are_syncs or (not isinstance(busy, Absent) and busy >= BUSY):
        return Verdict("good", f"sync-bound: {_group(window)}; {_more_handlers(window)}")
    if shares.get("wake", 0.0) >= DOMINANT:
        where = f"{_percent(shares['wake'])} of a commit is waking its handler"
        return Verdict("warn", f"wake-bound: {where}; fewer handlers or more cores will help")
    if shares.get("write", 0.0) >= DOMINANT:
        where = f"{_percent(shares['write'])} of a commit is writing"
        return Verdict("warn", f"write-bound: {where}; smaller records will help")
    if isinstance(busy, Absent):
        return Verdict("good", _group(window))
    return Verdict(
        "good", f"handler-bound: syncs wait for work, busy {_percent(busy)} of the time; more handlers will help"
    )


def _group(window: WalWindow) -> str:
    size = window.ops_per_sync
    if isinstance(size, Absent):
        return "syncs fill the time"
    shown = format_count(size) if size >= 1.05 else "1"
    return f"{shown} {'op' if shown == '1' else 'ops'} per sync"


def _more_handlers(window: WalWindow) -> str:
    """Say whether more handlers would share syncs, which depends on who syncs."""
    wal, size = window.last, window.ops_per_sync
    if wal.model == "handler" and not isinstance(size, Absent) and size < 1.5 and wal.handlers > 1:
        return "each handler syncs for itself; a model that shares syncs will help"
    return "more handlers will help"


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
