"""Parking and waking on words of a shared record, with real threads inside kernels."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engine.native.atomics import add, load
from engine.native.kernel import inner
from engine.native.locks import MUTEX, lock, make_mutex, unlock
from engine.native.parking import EVERYONE, park, unpark
from tests.waiting import run_threads, wait_for

STATE = np.dtype([("mutex", MUTEX), ("words", "i8", (4,)), ("turn", "i8"), ("parked", "i8"), ("woken", "i8")])
WRAP = 1 << 32


@pytest.fixture
def state() -> np.void:
    record = np.zeros(1, STATE)[0]
    make_mutex(record["mutex"])
    return record


@inner
def park_until_turn(state, index, turn):
    """Park on a word until `turn` has come."""
    lock(state, "mutex")
    while state.turn < turn:
        seen = state.words[index]
        add(state, "parked", 1)
        unlock(state, "mutex")
        park(state, "words", index, seen)
        lock(state, "mutex")
    unlock(state, "mutex")
    add(state, "woken", 1)


@inner
def park_once(state, index, seen):
    """Park on a word that is `seen`; count the return."""
    add(state, "parked", 1)
    park(state, "words", index, seen)
    add(state, "woken", 1)


@inner
def bump(state, index, count):
    """Change the word, and wake at most `count`."""
    lock(state, "mutex")
    state.words[index] += 1
    unlock(state, "mutex")
    unpark(state, "words", index, count)


@inner
def pass_turns(state, index, partner, rounds):
    """Take `rounds` turns of two: each bump comes while the other parks, or is about to."""
    for turn in range(index, 2 * rounds, 2):
        lock(state, "mutex")
        while load(state, "turn") != turn:
            seen = state.words[index]
            unlock(state, "mutex")
            park(state, "words", index, seen)
            lock(state, "mutex")
        state.turn += 1
        state.words[partner] += 1
        unlock(state, "mutex")
        unpark(state, "words", partner, EVERYONE)


def start(function: object, *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def test_a_bump_wakes_everyone_on_that_word_and_nobody_on_another(state: np.void) -> None:
    park_once(state, 0, 1)  # compiled, and returns at once: the word is 0
    state["parked"] = state["woken"] = 0
    here = [start(park_once, state, 1, 0) for _ in range(3)]
    there = start(park_once, state, 2, 0)
    wait_for(lambda: int(state["parked"]) == 4)

    bump(state, 1, EVERYONE)
    for thread in here:
        thread.join(10)

    assert not any(thread.is_alive() for thread in here)
    assert there.is_alive()
    bump(state, 2, EVERYONE)
    there.join(10)
    assert int(state["woken"]) == 4


def test_a_word_that_changed_before_the_park_is_not_slept_on(state: np.void) -> None:
    bump(state, 3, EVERYONE)

    thread = start(park_once, state, 3, 0)
    thread.join(10)

    assert not thread.is_alive()


def test_words_are_compared_past_two_to_the_thirty_two(state: np.void) -> None:
    state["words"][0] = WRAP + 5

    thread = start(park_once, state, 0, WRAP + 4)
    thread.join(10)

    assert not thread.is_alive()


def test_no_wake_is_lost_when_two_threads_hand_a_turn_back_and_forth(state: np.void) -> None:
    rounds = 20_000

    run_threads(lambda: pass_turns(state, 0, 1, rounds), lambda: pass_turns(state, 1, 0, rounds))

    assert int(state["turn"]) == 2 * rounds


def test_a_waiter_woken_too_early_parks_again(state: np.void) -> None:
    thread = start(park_until_turn, state, 0, 1)
    wait_for(lambda: int(state["parked"]) == 1)

    bump(state, 0, EVERYONE)
    wait_for(lambda: int(state["parked"]) >= 2)
    assert int(state["woken"]) == 0
    state["turn"] = 1
    bump(state, 0, EVERYONE)
    thread.join(10)

    assert int(state["woken"]) == 1
