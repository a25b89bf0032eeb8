"""A lock that is handed over in the order it was asked for.

A pthread mutex may be taken again by the thread that just released it while others sleep for it. Where the order is
the point (a disk's queue, a lock that waiters are meant to find changed) each takes a ticket and waits for its turn.
A record has the fields `mutex` and `turns` (TURNS) for it, and int64 fields for the next ticket and the one served.
"""

from __future__ import annotations

import numpy as np

from engine.native.atomics import load, store
from engine.native.kernel import inner
from engine.native.locks import CONDITION, broadcast_at, lock, unlock, wait_at

TURN_SLOTS = 64
TURNS = np.dtype((CONDITION, (TURN_SLOTS,)))


@inner
def take_turn(record, mutex, turns, next_ticket, served):  # type: ignore[no-untyped-def]
    """Wait until it is this thread's turn. Fields by literal name; `mutex` is not held."""
    lock(record, mutex)
    ticket = load(record, next_ticket)
    store(record, next_ticket, ticket + 1)
    while load(record, served) != ticket:
        wait_at(record, turns, ticket % TURN_SLOTS, mutex)
    unlock(record, mutex)


@inner
def pass_turn(record, mutex, turns, served):  # type: ignore[no-untyped-def]
    """End this thread's turn and wake the next. `mutex` is not held."""
    lock(record, mutex)
    following = load(record, served) + 1
    store(record, served, following)
    broadcast_at(record, turns, following % TURN_SLOTS)
    unlock(record, mutex)
