"""Turns: a lock handed over in the order it was asked for."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engine.native.kernel import inner
from engine.native.locks import MUTEX, make_condition, make_mutex, sched_yield
from engine.native.turns import TURN_SLOTS, TURNS, pass_turn, take_turn
from tests.waiting import run_threads, wait_for

QUEUE = np.dtype(
    [("mutex", MUTEX), ("turns", TURNS), ("next", "i8"), ("served", "i8"), ("count", "i8"), ("inside", "i8"),
     ("clashes", "i8")]
)  # fmt: skip


@pytest.fixture
def queue() -> np.void:
    record = np.zeros(1, QUEUE)[0]
    make_mutex(record["mutex"])
    for slot in range(TURN_SLOTS):
        make_condition(record["turns"][slot])
    return record


@inner
def take(queue):
    take_turn(queue, "mutex", "turns", "next", "served")


@inner
def give(queue):
    pass_turn(queue, "mutex", "turns", "served")


@inner
def count_in_turn(queue, rounds):
    """Count without any other lock, giving the processor away where another thread would interfere."""
    for _ in range(rounds):
        take_turn(queue, "mutex", "turns", "next", "served")
        queue.inside += 1
        seen = queue.count
        sched_yield()
        queue.count = seen + 1
        if queue.inside != 1:
            queue.clashes += 1
        queue.inside -= 1
        pass_turn(queue, "mutex", "turns", "served")


def test_one_thread_at_a_time_has_the_turn(queue: np.void) -> None:
    run_threads(*[lambda: count_in_turn(queue, 2000)] * 5)

    assert (queue["count"], queue["clashes"]) == (10_000, 0)
    assert queue["next"] == queue["served"] == 10_000


@pytest.mark.parametrize("threads", [5, TURN_SLOTS + 9], ids=["few", "more-than-slots"])
def test_turns_come_in_the_order_they_were_asked_for(queue: np.void, threads: int) -> None:
    served: list[int] = []

    def run(number: int) -> None:
        take(queue)
        served.append(number)
        give(queue)

    take(queue)
    waiting = []
    for number in range(threads):
        waiting.append(threading.Thread(target=run, args=(number,), name=f"waiting-{number}"))
        waiting[-1].start()
        wait_for(lambda number=number: queue["next"] == number + 2, what="it to take its ticket")
    give(queue)
    for thread in waiting:
        thread.join(20)

    assert served == list(range(threads))


def test_a_thread_that_gives_its_turn_back_does_not_get_it_again_before_those_who_wait(queue: np.void) -> None:
    order: list[str] = []

    def wait_for_turn() -> None:
        take(queue)
        order.append("waiter")
        give(queue)

    take(queue)
    waiter = threading.Thread(target=wait_for_turn, name="waiter")
    waiter.start()
    wait_for(lambda: queue["next"] == 2)
    give(queue)
    take(queue)  # a mutex would be taken again before the waiter has woken
    order.append("first again")
    give(queue)
    waiter.join(20)

    assert order == ["waiter", "first again"]
