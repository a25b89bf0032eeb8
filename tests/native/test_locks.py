"""Mutex and condition of the native substrate, with real threads inside kernels."""

from __future__ import annotations

import errno
import time

import numpy as np
import pytest

from engine.native.clock import monotonic_ns
from engine.native.kernel import inner
from engine.native.locks import (
    CONDITION,
    MUTEX,
    broadcast,
    lock,
    make_condition,
    make_mutex,
    sched_yield,
    signal,
    unlock,
    wait,
    wait_until,
)
from tests.waiting import run_threads, wait_for

STATE = np.dtype([("mutex", MUTEX), ("changed", CONDITION), ("tokens", "i8"), ("inside", "i8"), ("clashes", "i8")])
SECOND = 1_000_000_000


@pytest.fixture
def state() -> np.void:
    record = np.zeros(1, STATE)[0]
    make_mutex(record["mutex"])
    make_condition(record["changed"])
    return record


@inner
def count_under_lock(state, rounds):
    """Add `rounds` to tokens, one at a time, giving the processor away where another thread would interfere."""
    for _ in range(rounds):
        lock(state, "mutex")
        state.inside += 1
        seen = state.tokens
        sched_yield()
        state.tokens = seen + 1
        if state.inside != 1:
            state.clashes += 1
        state.inside -= 1
        unlock(state, "mutex")


@inner
def take_token(state, deadline):
    """Wait for a token and take it; return 0, or ETIMEDOUT at the deadline."""
    lock(state, "mutex")
    state.inside += 1
    result = 0
    while state.tokens == 0 and result == 0:
        result = wait_until(state, "changed", "mutex", deadline)
    if state.tokens > 0:
        state.tokens -= 1
        result = 0
    state.inside -= 1
    unlock(state, "mutex")
    return result


@inner
def take_token_without_deadline(state):
    lock(state, "mutex")
    state.inside += 1
    while state.tokens == 0:
        wait(state, "changed", "mutex")
    state.tokens -= 1
    state.inside -= 1
    unlock(state, "mutex")


@inner
def give_token_to_one(state):
    lock(state, "mutex")
    state.tokens += 1
    signal(state, "changed")
    unlock(state, "mutex")


@inner
def give_tokens_to_all(state, count):
    lock(state, "mutex")
    state.tokens += count
    broadcast(state, "changed")
    unlock(state, "mutex")


@inner
def waiting(state):
    lock(state, "mutex")
    count = state.inside
    unlock(state, "mutex")
    return count


@inner
def clock():
    return monotonic_ns()


def test_a_mutex_lets_one_thread_in_at_a_time(state: np.void) -> None:
    rounds, threads = 20_000, 4

    run_threads(*[lambda: count_under_lock(state, rounds)] * threads)

    assert (state["tokens"], state["clashes"]) == (rounds * threads, 0)


def test_a_timed_wait_ends_at_its_deadline_on_the_monotonic_clock(state: np.void) -> None:
    deadline = clock() + SECOND // 20

    result = take_token(state, deadline)

    assert result == errno.ETIMEDOUT
    assert clock() >= deadline  # on the wall clock's scale this deadline lies decades back and ends the wait at once


def test_a_deadline_in_the_past_ends_the_wait(state: np.void) -> None:
    assert take_token(state, 1) == errno.ETIMEDOUT


def test_a_timed_wait_is_woken_before_its_deadline(state: np.void) -> None:
    far = clock() + 3600 * SECOND

    def give() -> None:
        wait_for(lambda: waiting(state) == 1)
        give_token_to_one(state)

    result, _ = run_threads(lambda: take_token(state, far), give)

    assert result == 0
    assert clock() < far


def test_python_runs_while_a_kernel_waits_without_deadline(state: np.void) -> None:
    def give() -> None:
        wait_for(lambda: waiting(state) == 1)
        sum(range(100_000))
        give_token_to_one(state)

    run_threads(lambda: take_token_without_deadline(state), give)

    assert state["tokens"] == 0


def test_broadcast_wakes_every_waiter(state: np.void) -> None:
    waiters, far = 8, clock() + 3600 * SECOND

    def give() -> None:
        wait_for(lambda: waiting(state) == waiters)
        give_tokens_to_all(state, waiters)

    results = run_threads(*[lambda: take_token(state, far)] * waiters, give)

    assert results[:waiters] == [0] * waiters
    assert state["tokens"] == 0


def test_one_signal_a_token_wakes_enough_waiters(state: np.void) -> None:
    waiters, far = 5, clock() + 3600 * SECOND

    def give() -> None:
        wait_for(lambda: waiting(state) == waiters)
        for _ in range(waiters):
            give_token_to_one(state)

    results = run_threads(*[lambda: take_token(state, far)] * waiters, give)

    assert results[:waiters] == [0] * waiters


def test_the_kernel_clock_is_the_one_of_python() -> None:
    before = time.monotonic_ns()
    inside = clock()
    after = time.monotonic_ns()

    assert before <= inside <= after
