"""The verdict says what bounds the log, in words that a person can act on."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.verdict import Verdict, wal_verdict
from dashboard.wal_window import Quantiles, Stages, WalWindow
from engine.snapshot import Absent
from tests.snapshots import wal_snapshot

MS = 1_000_000.0


def quantiles(p50: float = 0.2 * MS, maximum: float = 0.9 * MS) -> Quantiles:
    return Quantiles(p50, p50, maximum, maximum, maximum, p50, 1_000)


def stages(queue: float = 0.2, write: float = 0.1, sync: float = 0.5, wake: float = 0.2) -> Stages:
    shares = (queue, write, sync, wake)
    return Stages(tuple(share * 400_000 for share in shares), shares)


def seen(window: dict[str, Any] | None = None, **wal: Any) -> Verdict:
    """The verdict of a busy log at 50 handlers, with changes to the window and to the log itself."""
    plain: dict[str, Any] = {
        "last": wal_snapshot(**({"handlers": 50, "waiting_handlers": 48} | wal)),
        "seconds": 5.0,
        "commits": 400_000,
        "ops_per_second": 80_000.0,
        "syncs_per_second": 3_333.0,
        "payload_bytes_per_second": 8e7,
        "written_bytes_per_second": 8e7,
        "ops_per_sync": 24.0,
        "ops_per_sync_counts": (1,) * 20,
        "commit": quantiles(),
        "sync": quantiles(),
        "sync_busy": 0.9,
        "write_mean_ns": 10_000.0,
        "stages": stages(),
        "slow_syncs": 0,
        "rolls": 0,
    }
    return wal_verdict(WalWindow(**(plain | (window or {}))))


@pytest.mark.parametrize(
    ("window", "wal", "mood", "text"),
    [
        ({}, {}, "good", "sync-bound: 24 ops per sync; more handlers will help"),
        ({"ops_per_sync": 1.0}, {"handlers": 1}, "good", "sync-bound: 1 op per sync; more handlers will help"),
        (
            {"ops_per_sync": 1.0},
            {"model": "handler"},
            "good",
            "sync-bound: 1 op per sync; each handler syncs for itself; a model that shares syncs will help",
        ),
        (
            {"sync_busy": 0.3},
            {},
            "good",
            "handler-bound: syncs wait for work, busy 30 % of the time; more handlers will help",
        ),
        (
            {"sync_busy": 0.3, "stages": stages(0.2, 0.1, 0.2, 0.5)},
            {},
            "warn",
            "wake-bound: 50 % of a commit is waking its handler; fewer handlers or more cores will help",
        ),
        (
            {"sync_busy": 0.3, "stages": stages(0.1, 0.6, 0.2, 0.1)},
            {},
            "warn",
            "write-bound: 60 % of a commit is writing; smaller records will help",
        ),
        (
            {"sync_busy": 0.0, "stages": stages(0.1, 0.8, 0.0, 0.1)},
            {"sync": "dsync"},
            "good",
            "sync-bound: 24 ops per sync; more handlers will help",
        ),
        ({}, {"sync": "none (not durable)"}, "warn", "not durable: records are written and never synced"),
        (
            {"sync": quantiles(maximum=512 * MS)},
            {},
            "warn",
            "stalled: one sync took 512 ms, its median is 200 us",
        ),
        (
            {"sync": quantiles(p50=400 * MS, maximum=512 * MS)},
            {},
            "good",
            "sync-bound: 24 ops per sync; more handlers will help",
        ),
        (
            {"commits": 0},
            {},
            "warn",
            "nothing committed for 5 s: 50 handlers (48 inside commit), no sync returned",
        ),
        (
            {"commits": 0},
            {"handlers": 1, "waiting_handlers": Absent("?")},
            "warn",
            "nothing committed for 5 s: 1 handler, no sync returned",
        ),
        ({"commits": 0}, {"handlers": 0}, "dim", "no handlers: nothing commits"),
        ({}, {"state": "stopped"}, "dim", "stopped: nothing commits"),
        ({}, {"state": "closed"}, "dim", "closed: nothing commits"),
        (
            {},
            {"state": "poisoned", "poison": "Input/output error (EIO)", "sync_errors": 1, "write_errors": 0},
            "bad",
            "poisoned: Input/output error (EIO) at sync",
        ),
        (
            {},
            {"state": "poisoned", "poison": "No space left on device (ENOSPC)", "sync_errors": 0, "write_errors": 1},
            "bad",
            "poisoned: No space left on device (ENOSPC) at write",
        ),
        (
            {},
            {"state": "poisoned", "poison": "Input/output error (EIO) at a sync", "sync_errors": 1, "write_errors": 0},
            "bad",
            "poisoned: Input/output error (EIO) at a sync",
        ),
        ({"sync_busy": Absent("no sums"), "stages": Absent("no stages")}, {}, "good", "24 ops per sync"),
    ],
    ids=[
        "sync-bound",
        "one-handler",
        "handler-model",
        "handler-bound",
        "wake-bound",
        "write-bound",
        "dsync",
        "not-durable",
        "stalled",
        "slow-but-even",
        "nothing-committed",
        "nothing-committed-by-one",
        "no-handlers",
        "stopped",
        "closed",
        "poisoned-at-sync",
        "poisoned-at-write",
        "poisoned-in-the-engine's-words",
        "little-known",
    ],
)
def test_the_verdict(window: dict[str, Any], wal: dict[str, Any], mood: str, text: str) -> None:
    verdict = seen(window, **wal)

    assert (verdict.mood, verdict.text) == (mood, text)


@pytest.mark.parametrize(
    ("wal", "hint"),
    [
        ({"state": "poisoned", "poison": "EIO"}, "press s to reopen"),
        ({"state": "stopped"}, "press s to start"),
        ({"handlers": 0}, "press + to start one"),
    ],
)
def test_what_to_press_is_a_hint_of_its_own(wal: dict[str, Any], hint: str) -> None:
    verdict = seen(**wal)

    assert verdict.hint == hint
    assert "press" not in verdict.text
    assert verdict.line() == f"{verdict.text}; {hint}"


def test_a_lane_that_is_not_there_says_why_with_nothing_a_terminal_acts_on() -> None:
    assert wal_verdict(Absent("no log: \x1b[31m")) == Verdict("dim", "no log: \\x1b[31m")
