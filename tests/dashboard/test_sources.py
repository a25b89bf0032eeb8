"""The local source samples four times a second in a thread of its own, and ends when it is told to."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dashboard.sources.local import LocalSource
from dashboard.starter import Progress, StartCancelled, Starter, Starting
from engine.errors import TidegaugeError
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine
from tests.waiting import wait_for


def test_the_newest_snapshot_is_there_four_times_a_second() -> None:
    clock = FakeClock()
    engine = FakeEngine(clock=clock)
    source = LocalSource(engine, clock)
    assert source.latest() is None

    source.start()
    try:
        seen = []
        for taken in range(1, 5):
            wait_for(lambda taken=taken: source.taken == taken and clock.waiters == 1)
            seen.append(source.latest().monotonic_ns)
            clock.advance(0.2)
            assert source.latest().monotonic_ns == seen[-1], "not before its time"
            clock.advance(0.05)
    finally:
        assert source.close(timeout=10)

    assert [b - a for a, b in pairwise(seen)] == [250_000_000] * 3
    assert source.controls is engine.wal


def test_a_source_that_never_started_closes() -> None:
    assert LocalSource(FakeEngine()).close(timeout=1)


def test_the_starter_tells_how_far_it_is_and_gives_a_running_engine() -> None:
    engine = FakeEngine()
    states: list[Starting] = []

    def make_engine(progress: Progress) -> FakeEngine:
        states.append(progress.state)
        progress(12, 40)
        states.append(progress.state)
        progress.say("opening the log")
        states.append(progress.state)
        progress.note("port 9755 is in use", "warn")
        return engine

    starter = Starter(make_engine)
    starter.start()
    wait_for(lambda: starter.engine)

    assert [state.text for state in states] == ["loading the engine", "compiling kernels, once", "opening the log"]
    assert (states[1].done, states[1].total) == (12, 40)
    assert starter.progress.notes == [("port 9755 is in use", "warn")]
    assert engine.started
    assert starter.close(timeout=10) is engine
    assert not engine.stopped, "whoever takes it stops it"


def test_what_cannot_be_made_is_an_error_to_ask_for() -> None:
    trouble = TidegaugeError("disk full")

    def make_engine(_: Progress) -> FakeEngine:
        raise trouble

    starter = Starter(make_engine)
    starter.start()

    assert wait_for(lambda: starter.error) is trouble
    assert starter.close(timeout=10) is None


@pytest.mark.parametrize("ends", ["at its next report", "after its last"])
def test_a_start_that_is_no_longer_wanted_leaves_no_engine_behind(ends: str) -> None:
    engine = FakeEngine()
    reports: list[str] = []

    def make_engine(progress: Progress) -> FakeEngine:
        reports.append("began")
        wait_for(lambda: progress.is_cancelled)
        if ends == "at its next report":
            with pytest.raises(StartCancelled):
                progress(1, 40)
            progress(1, 40)
        return engine

    starter = Starter(make_engine)
    starter.start()
    wait_for(lambda: reports)

    assert starter.close(timeout=10) is None
    assert starter.engine is None
    assert starter.error is None
    assert not engine.started
    assert engine.stopped == (ends == "after its last")
