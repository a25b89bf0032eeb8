"""Atomic fields and cells: seen across threads, and no addition lost."""

from __future__ import annotations

import numpy as np
import pytest

from engine.native.atomics import add, add_cell, load, load_cell, store, store_cell, swap
from engine.native.kernel import inner
from tests.waiting import run_threads, wait_for

STATE = np.dtype([("started", "i8"), ("stop", "i8"), ("total", "i8")])


@inner
def spin_until_stopped(state):
    """Loop while stop is 0. With a plain read of `stop` LLVM hoists the test and the loop never ends."""
    store(state, "started", 1)
    turns = 0
    while load(state, "stop") == 0:
        turns += 1
    return turns


@inner
def spin_on_cell(cells):
    store_cell(cells, 0, 1)
    while load_cell(cells, 1) == 0:
        pass
    return load_cell(cells, 1)


@inner
def add_many(state, rounds, step):
    for _ in range(rounds):
        add(state, "total", step)


@inner
def add_many_to_cell(cells, index, rounds):
    for _ in range(rounds):
        add_cell(cells, index, 1)


@inner
def add_once(state, cells):
    return add(state, "total", 5), add_cell(cells, 0, -3)


@inner
def take_what_is_put(state, rounds):
    """Take what stands in `total` again and again; return the sum of all that was taken."""
    taken = 0
    for _ in range(rounds):
        taken += swap(state, "total", 0)
    return taken


@inner
def put_ones(state, rounds):
    """Put a one whenever the last one was taken; return how many."""
    for _ in range(rounds):
        while load(state, "total") != 0:
            pass
        store(state, "total", 1)


def test_a_kernel_that_spins_on_a_flag_ends_when_python_sets_it() -> None:
    state = np.zeros(1, STATE)[0]

    def stop() -> None:
        wait_for(lambda: state["started"] == 1)
        state["stop"] = 1

    turns, _ = run_threads(lambda: spin_until_stopped(state), stop)

    assert turns >= 0


def test_a_kernel_that_spins_on_a_cell_ends_when_python_sets_it() -> None:
    cells = np.zeros(2, np.int64)

    def stop() -> None:
        wait_for(lambda: cells[0] == 1)
        cells[1] = 7

    seen, _ = run_threads(lambda: spin_on_cell(cells), stop)

    assert seen == 7


@pytest.mark.parametrize("step", [1, -3, 1 << 40], ids=["one", "negative", "beyond-32-bits"])
def test_no_addition_to_a_field_is_lost(step: int) -> None:
    state = np.zeros(1, STATE)[0]
    rounds, threads = 100_000, 4

    run_threads(*[lambda: add_many(state, rounds, step)] * threads)

    assert state["total"] == rounds * threads * step


def test_no_addition_to_a_cell_is_lost_and_its_neighbours_stay() -> None:
    cells = np.zeros(3, np.int64)

    run_threads(*[lambda: add_many_to_cell(cells, 1, 100_000)] * 4)

    assert cells.tolist() == [0, 400_000, 0]


def test_add_returns_what_was_there_before() -> None:
    state, cells = np.zeros(1, STATE)[0], np.array([10], np.int64)
    state["total"] = 2

    assert add_once(state, cells) == (2, 10)
    assert (state["total"], cells[0]) == (7, 7)


def test_what_is_swapped_out_is_had_by_one_thread_alone() -> None:
    state = np.zeros(1, STATE)[0]
    put = 3_000
    taken = [0]

    def take() -> None:
        mine = 0
        while load_stop(state) == 0:
            mine += take_what_is_put(state, 100)
        taken.append(mine)

    def give() -> None:
        put_ones(state, put)
        wait_for(lambda: state["total"] == 0)
        state["stop"] = 1

    run_threads(take, take, give)

    assert sum(taken) == put


@inner
def load_stop(state):
    return load(state, "stop")
