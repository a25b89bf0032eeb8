"""The dashboard in memory: fake engine, fake clock, no timers; a test moves time and reads the screen as text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from dashboard.app import TideApp
from dashboard.frame_meter import FrameMeter
from dashboard.sources import ImageControls, RamdiskControls, WalControls
from dashboard.starter import Starting
from dashboard.terminal import Terminal
from engine.snapshot import Snapshot
from tests.fakes.fake_clock import FakeClock
from tests.fakes.fake_engine import FakeEngine

STEP_SECONDS = 0.25


class HandSource:
    """A source whose newest snapshot is taken when the test says so."""

    name = "local"

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.taken = 0
        self._latest: Snapshot | None = None

    @property
    def controls(self) -> WalControls | None:
        return self.engine.wal

    @property
    def ramdisk(self) -> RamdiskControls | None:
        return self.engine.ramdisk

    @property
    def image(self) -> ImageControls | None:
        return self.engine.image

    def latest(self) -> Snapshot | None:
        return self._latest

    def take(self) -> None:
        self._latest = self.engine.sample()
        self.taken += 1

    def close(self, timeout: float) -> bool:
        return True


class Stage:
    """One running app and what it stands on."""

    def __init__(self, *, terminal: Terminal, theme: str | None, without_wal: str, without_ramdisk: str = "") -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine(clock=self.clock, without_wal=without_wal, without_ramdisk=without_ramdisk)
        self.source = HandSource(self.engine)
        self.starting: Starting | None = None
        meter = FrameMeter(busy_ns=lambda: self.clock.monotonic_ns() // 30, now_ns=self.clock.monotonic_ns)
        self.app = TideApp(
            lambda: self.starting or self.source,
            terminal=terminal,
            theme=theme,
            clock=self.clock,
            meter=meter,
            ticking=False,
        )
        self.pilot: Pilot[int] | None = None

    def pass_time(self, seconds: float) -> None:
        """Let the engine work and the app tick, four times a second."""
        for _ in range(round(seconds / STEP_SECONDS)):
            self.clock.advance(STEP_SECONDS)
            self.source.take()
            self.app.tick()

    def let_work(self, seconds: float) -> None:
        """Let the engine work and History learn of it, undrawn."""
        for _ in range(round(seconds / STEP_SECONDS)):
            self.clock.advance(STEP_SECONDS)
            self.source.take()
            self.app.history.add(self.source.latest())

    async def press(self, *keys: str) -> None:
        """Press keys and wait until their effects are drawn."""
        assert self.pilot is not None
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()
        await self.pilot.pause()

    async def settle(self) -> None:
        """Draw everything."""
        assert self.pilot is not None
        self.app.draw_now()
        await self.pilot.pause()

    async def resize(self, width: int, height: int) -> None:
        """Give the terminal another size."""
        assert self.pilot is not None
        await self.pilot.resize_terminal(width, height)
        await self.pilot.pause()
        await self.pilot.pause()

    def text(self) -> str:
        """Return what the terminal shows."""
        strips = self.app.screen._compositor.render_strips()  # there is no public way to read one
        return "\n".join(strip.text.rstrip() for strip in strips) + "\n"

    @property
    def calls(self) -> list[tuple[object, ...]]:
        """What the engine was asked for."""
        return self.engine.wal.calls


Play = Callable[[Stage], Awaitable[None]]
