"""The verdict on the RAM disk: whether the lazy writer keeps up, and how long memory lasts if it does not.

A pure function of one window. It looks, in order:

    is the store there?             absent, closed
    is anything going wrong?        blocks that do not persist, corrupt or lost ones
    does memory still take blocks?  fallbacks to disk
    does anything come?             idle, draining
    does the backlog grow?          full in how long, catching up, keeping up
"""

from __future__ import annotations

from dashboard.ramdisk_window import RamdiskWindow
from dashboard.verdict import Verdict
from engine.errors import printable
from engine.snapshot import Absent, RamdiskSnapshot
from engine.units import format_count, format_duration, format_size

# A backlog that changes by less than this share of what is written stands still: blocks come and go whole.
STEADY = 0.05
# How long ahead, in seconds, it is worth saying when memory is full.
FORESEEN = 900.0


def ramdisk_verdict(window: RamdiskWindow | Absent) -> Verdict:
    """Say how the RAM disk does over a window."""
    if isinstance(window, Absent):
        return Verdict("dim", printable(window.reason))
    if window.last.state == "closed":
        return Verdict("dim", "closed: the RAM disk takes nothing")
    return _wrong(window) or _full(window) or _idle(window) or _backlog(window)


def _wrong(window: RamdiskWindow) -> Verdict | None:
    ram = window.last
    if ram.failing_blocks > 0:
        return Verdict("bad", f"cannot persist {_blocks(ram.failing_blocks)}: at risk until it works, see the events")
    corrupt, lost = window.grown("corrupt_blocks"), window.grown("lost_blocks")
    if corrupt:
        return Verdict("bad", f"corrupt in memory: {_blocks(corrupt)}, kept from the disk")
    if ram.lost_files > 0 and window.before is None:
        return Verdict(
            "bad", f"the reboot took {_many(ram.lost_files, 'file')} that were at risk; the events name them"
        )
    if lost:
        return Verdict("bad", f"lost: {_blocks(lost)} that only memory had")
    return None


def _full(window: RamdiskWindow) -> Verdict | None:
    fallbacks, kept = window.grown("fallback_blocks"), window.grown("ram_blocks_written")
    if not fallbacks:
        return None
    share = fallbacks / (fallbacks + kept)
    text = f"RAM disk full: {share * 100:.0f} % of blocks fall back to disk{_limit(window.last)}"
    return Verdict("bad", text, "press - to slow the stream")


def _idle(window: RamdiskWindow) -> Verdict | None:
    ram = window.last
    if ram.state == "streaming":
        if window.seconds >= 1 and window.grown("ram_bytes_written", "disk_bytes_written") == 0:
            return Verdict("warn", f"nothing written for {window.seconds:.0f} s though the stream runs")
        return None
    if ram.backlog_bytes <= 0:
        return Verdict("dim", "idle: nothing is at risk", "press s to start the stream")
    return Verdict("good", f"draining: {format_size(ram.backlog_bytes)} at risk, {_drained(window)}{_limit(ram)}")


def _backlog(window: RamdiskWindow) -> Verdict:
    ram, growth, written = window.last, window.backlog_growth, window.written_per_second
    if isinstance(growth, Absent) or isinstance(written, Absent):
        return Verdict("good", "the stream has begun")
    behind = format_duration(max(ram.oldest_at_risk_ns, 0))
    noise = 2 * max(ram.block_size_bytes, 0) / window.seconds  # two blocks more or less are no trend
    if growth > max(written * STEADY, noise):
        left = window.room_bytes / growth
        rates = f"{format_size(written)}/s come, {_persisted(window)} leave{_limit(ram)}"
        if left <= FORESEEN:
            return Verdict("warn", f"RAM disk full in {format_duration(left * 1e9)} at this rate: {rates}")
        return Verdict("warn", f"the lazy writer falls behind, {behind} so far: {rates}")
    if growth < -max(written * STEADY, noise):
        return Verdict("good", f"the lazy writer catches up: {behind} behind, {_drained(window)}{_limit(ram)}")
    if ram.backlog_bytes <= 0:
        return Verdict("good", f"the lazy writer keeps up: nothing is at risk{_limit(ram)}")
    return Verdict("good", f"the lazy writer keeps up: {behind} behind{_limit(ram)}")


def _drained(window: RamdiskWindow) -> str:
    seconds, growth = window.drain_seconds, window.backlog_growth
    if window.last.state == "streaming" and not isinstance(growth, Absent) and growth < 0:
        seconds = window.last.backlog_bytes / -growth  # what still comes slows it
    return "not drained yet" if isinstance(seconds, Absent) else f"drained in {format_duration(seconds * 1e9)}"


def _persisted(window: RamdiskWindow) -> str:
    rate = window.persisted_per_second
    return "none" if isinstance(rate, Absent) else f"{format_size(rate)}/s"


def _limit(ram: RamdiskSnapshot) -> str:
    """Name the simulated disk wherever its figures are judged."""
    if ram.persist_rate_bytes <= 0:
        return ""
    return f" (simulated slow disk, {format_size(ram.persist_rate_bytes)}/s)"


def _blocks(number: int) -> str:
    return _many(number, "block")


def _many(number: int, what: str) -> str:
    return f"{format_count(number)} {what}{'' if number == 1 else 's'}"
