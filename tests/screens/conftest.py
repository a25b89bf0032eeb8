"""The fixture that performs a play on a stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from dashboard.terminal import Terminal
from tests.screens.stage import Play, Stage

Run = Callable[..., None]


@pytest.fixture
def perform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Return perform(play, size=, seconds=, ...): run the app, let it see `seconds` of work, then play."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    def run(
        play: Play,
        *,
        size: tuple[int, int] = (100, 30),
        seconds: float = 15.0,
        terminal: Terminal | None = None,
        theme: str | None = None,
        without_wal: str = "",
        without_ramdisk: str = "",
    ) -> None:
        async def session() -> None:
            stage = Stage(
                terminal=terminal or Terminal("truecolor", plain=False),
                theme=theme,
                without_wal=without_wal,
                without_ramdisk=without_ramdisk,
            )
            async with stage.app.run_test(size=size) as pilot:
                stage.pilot = pilot
                await pilot.pause()
                stage.let_work(seconds)
                await stage.settle()
                await play(stage)

        asyncio.run(session())

    yield run
    monkeypatch.undo()
    time.tzset()
