"""Steps and choices of the keys."""

from __future__ import annotations

import pytest

from dashboard.keys import DEVICES, MODELS, SYNCS, next_choice, next_handlers
from engine.storage.device import parse_device


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
