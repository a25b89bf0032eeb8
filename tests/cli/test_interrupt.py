"""Signals: the first asks, the second insists, and afterwards everything is as before."""

from __future__ import annotations

import os
import signal

import pytest

from dashboard.cli.interrupt import SIGNALS, raise_on_signals, stop_on_signals
from tests.waiting import run_threads


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_sets_the_event_and_the_second_raises(number: signal.Signals) -> None:
    told = []
    before = signal.getsignal(number)
    signal.signal(number, signal.default_int_handler)
    try:
        with stop_on_signals(lambda: told.append(1)) as stop:
            assert not stop.is_set()
            os.kill(os.getpid(), number)
            assert stop.wait(20)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
                stop.wait(0)
        assert told == [1]
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.wait(0)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_nothing_is_installed() -> None:
    def use() -> object:
        with stop_on_signals() as stop:
            return stop.is_set()

    assert run_threads(use) == [False]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_can_end_the_program_as_an_interrupt_does(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), raise_on_signals():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
