"""Steps and choices of the keys."""

from __future__ import annotations

import pytest

from dashboard.keys import DEVICES, MODELS, SYNCS, keys_on, next_choice, next_handlers, next_rate
from engine.storage.device import parse_device
from engine.units import MIB


@pytest.mark.parametrize(
    ("now", "up", "down"),
    [(1, 2, 1), (2, 5, 1), (3, 5, 2), (50, 100, 20), (200, 200, 100), (500, 500, 200), (0, 1, 0)],
)
def test_handlers_step_up_and_down(now: int, up: int, down: int) -> None:
    assert next_handlers(now, 1) == up
    assert next_handlers(now, -1) == down


@pytest.mark.parametrize(
    ("shown", "choices", "wanted"),
    [
        ("group", MODELS, "pipeline:1"),
        ("handler-recheck", MODELS, "group"),
        ("real", DEVICES, "serial:5ms"),
        ("serial 5 ms (simulated)", DEVICES, "serial:1ms"),
        ("parallel 1 ms (simulated)", DEVICES, "real"),
        ("parallel:1ms", DEVICES, "real"),
        ("serial 7 ms (simulated)", DEVICES, "real"),
        ("dsync", SYNCS, "none"),
        ("none (not durable)", SYNCS, "fdatasync"),
    ],
)
def test_the_next_choice_follows_the_one_shown(shown: str, choices: tuple[str, ...], wanted: str) -> None:
    assert next_choice(shown, choices) == wanted


def test_labels_of_the_engine_are_understood() -> None:
    for spec in DEVICES:
        shown = parse_device(spec).label
        assert next_choice(shown, DEVICES) == DEVICES[(DEVICES.index(spec) + 1) % len(DEVICES)]


@pytest.mark.parametrize(
    ("now", "faster", "slower"),
    [(100 * MIB, 200 * MIB, 50 * MIB), (MIB, 5 * MIB, MIB), (1000 * MIB, 0, 500 * MIB), (0, 0, 1000 * MIB),
     (123, MIB, 123)],
    ids=["between", "slowest", "fastest-with-a-number", "as-fast-as-it-goes", "no-step"],
)  # fmt: skip
def test_rates_step_up_to_as_fast_as_it_goes_and_down(now: int, faster: int, slower: int) -> None:
    assert (next_rate(now, 1), next_rate(now, -1)) == (faster, slower)


def test_a_screen_has_its_own_keys_before_those_of_all() -> None:
    on_ramdisk = {key.shown: key.action for key in keys_on("ramdisk")}

    assert on_ramdisk["m"] == "ramdisk('copy')" and on_ramdisk["t"] == "next_theme"
    assert {key.shown: key.action for key in keys_on("wal")}["m"] == "next('model')"
