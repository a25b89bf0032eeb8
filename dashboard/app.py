"""The dashboard: a Textual app over one source, and `run_dashboard`, which gives it an engine and a clean end.

    starter's thread    makes the engine (numba, kernels), then is done
    local-source        samples the engine four times a second
    main thread         this app: pulls the newest snapshot, feeds History, draws the open screen

Clocks: the app ticks four times a second. Text is drawn at each tick, plots at every second, tables at every fourth,
and only on the open screen. While the view is paused or the terminal has lost the focus it draws once a second.

Ends: q, Ctrl+C, SIGTERM and SIGHUP all leave through `exit`, so Textual restores the terminal; Textual itself does not
on those two signals. The source and the engine are stopped after that, when no loop is left that could wait for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

import click
from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen

from dashboard import keys
from dashboard.frame import Frame
from dashboard.frame_meter import FrameMeter
from dashboard.glyphs import PLAIN, RICH
from dashboard.history import SECOND_NS, History
from dashboard.image_keys import ImageKeys
from dashboard.palette import role_variables, textual_theme, theme_for, themes_for
from dashboard.pending import Pending
from dashboard.ramdisk_keys import RamdiskKeys
from dashboard.screens.dialogs import STALL_NS, ConfirmDialog, FaultDialog, HelpDialog
from dashboard.screens.image import ImageScreen
from dashboard.screens.lane import LaneScreen
from dashboard.screens.overview import OverviewScreen
from dashboard.screens.ramdisk import RamDiskScreen
from dashboard.screens.sources import SourcesScreen
from dashboard.screens.wal import WalScreen
from dashboard.sources import ImageControls, RamdiskControls, Source, WalControls
from dashboard.sources.local import EngineLike, LocalSource
from dashboard.starter import MakeEngine, Note, Progress, Starter, Starting
from dashboard.terminal import Terminal, find_terminal, why_no_screen
from dashboard.widgets.bars import Readings, footer_line, header_line
from dashboard.widgets.lines import Line, Span, gauge
from engine.errors import TidegaugeError
from engine.measure.clock import Clock, SystemClock
from engine.snapshot import Absent, Event, WalSnapshot
from engine.units import Nanoseconds

__all__ = ["EngineLike", "Progress", "TideApp", "run_dashboard"]

FRAMES_PER_SECOND = 4
PLOTS_EVERY, TABLES_EVERY = 2, 4
MESSAGE_SECONDS = 4.0
CLOSE_SECONDS = 0.7
LEAVING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl+C is a key here; SIGINT is `kill -INT`

DONE, FAILED, NO_TERMINAL, INTERRUPTED = 0, 1, 2, 130  # exit codes of the command line


class TideApp(App[int]):
    """The screen."""

    TITLE = "tidegauge"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.label, show=False, priority="ctrl" in key.keys)
        for key in keys.KEYS
        if not key.lane
    ]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        screen.LANE: screen for screen in (OverviewScreen, WalScreen, RamDiskScreen, ImageScreen, SourcesScreen)
    }
    DEFAULT_MODE = "wal"

    def __init__(
        self,
        starting: Callable[[], Source | Starting | BaseException],
        *,
        terminal: Terminal | None = None,
        theme: str | None = None,
        clock: Clock | None = None,
        meter: FrameMeter | None = None,
        notes: Callable[[], list[Note]] = list,
        ticking: bool = True,
        with_signals: bool = False,
    ) -> None:
        """Prepare the app.

        starting: says how far the start has come, then gives the source, or what went wrong; asked at each tick.
        ticking: whether a timer draws; tests call `tick` themselves. with_signals: leave on SIGTERM and SIGHUP.
        """
        self.terminal = terminal or find_terminal()
        # Without colours, pass as one who takes the terminal's own: Textual then drops every colour and keeps bold,
        # dim and reverse. Left to itself it would turn our colours to greys.
        self._themes = themes_for(self.terminal.colour)  # super().__init__ asks for their variables
        super().__init__(ansi_color=True if self.terminal.colour == "none" else None)
        self.history = History()
        self.glyphs = PLAIN if self.terminal.plain else RICH
        self.failure: BaseException | None = None
        self._first_theme = theme_for(self.terminal.colour, theme, tuple(self._themes))
        self._starting, self._notes = starting, notes
        self._source: Source | None = None
        self._clock = clock or SystemClock()
        self._meter = meter or FrameMeter()
        self._ticking, self._with_signals = ticking, with_signals
        self._ticks = 0
        self._noted = 0
        self._paused_at: int | None = None  # the instant looked at, on History's time line
        self._span = keys.SPANS[0]
        self._message, self._message_until = "", 0
        self.pending = Pending(self._clock)
        self._ramdisk_keys = RamdiskKeys(self)
        self._image_keys = ImageKeys(self)

    def on_mount(self) -> None:
        """Choose the theme, begin to tick."""
        for theme in self._themes.values():
            self.register_theme(textual_theme(theme))
        self.theme = self._first_theme
        if self._with_signals:
            for number in LEAVING_SIGNALS:
                if signal.getsignal(number) is signal.SIG_IGN:  # nohup asked for that
                    continue
                asyncio.get_running_loop().add_signal_handler(number, partial(self.exit, INTERRUPTED))
        if self._ticking:
            self.set_interval(1 / FRAMES_PER_SECOND, self.tick)
        self.call_after_refresh(self.draw_now)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Give every role a value under any theme: the panes' CSS is read before ours is put on."""
        return role_variables(next(iter(self._themes.values())))

    def tick(self) -> None:
        """Take what is new and draw what is due."""
        self._ticks += 1
        self._heed_size()
        self._take()
        calm = self._paused_at is not None or not self.app_focus
        if calm and self._ticks % FRAMES_PER_SECOND:
            return
        self._draw(
            plots=calm or self._ticks % PLOTS_EVERY == 0,
            tables=calm or self._ticks % TABLES_EVERY == 0,
        )

    def draw_now(self) -> None:
        """Draw everything, because a key was pressed or a screen opened."""
        self._take()
        self._draw(plots=True, tables=True)

    def on_resize(self) -> None:
        """Draw for the new size once it has settled."""
        self.call_after_refresh(self.draw_now)

    def _handle_exception(self, error: Exception) -> None:
        """Leave on a mistake of ours, without a traceback; run_dashboard raises it once the terminal is restored."""
        if not self._with_signals:  # in tests: as Textual does, so that the pilot sees it
            super()._handle_exception(error)
            return
        self.failure = self.failure or error
        self._return_code = FAILED
        self._close_messages_no_wait()

    def _heed_size(self) -> None:
        """Take the size as it is now: of many SIGWINCH in a row, the last may have come too early or not at all."""
        if not self._with_signals or self.is_headless:
            return
        with contextlib.suppress(OSError, ValueError):
            size = Size(*os.get_terminal_size(sys.__stdout__.fileno()))  # type: ignore[union-attr]
            if size and size != self.size:
                self.post_message(events.Resize(size, size))

    # What is shown.

    def _take(self) -> None:
        """Feed History; before there is a source, look how far the start has come."""
        if self._source is None:
            came = self._starting()
            if isinstance(came, BaseException):
                self.failure = came
                self.exit(FAILED)
            elif not isinstance(came, Starting):
                self._source = came
        if self._source is not None:
            snapshot = self._source.latest()
            if snapshot is not None and snapshot is not self.history.snapshot:
                self.history.add(snapshot)
        for text, severity in self._notes()[self._noted :]:
            self._noted += 1
            self.history.note(Event(0, Nanoseconds(self._clock.wall_ns()), severity, "screen", text))

    def _draw(self, *, plots: bool, tables: bool) -> None:
        lanes = [screen for screen in self.screen_stack if isinstance(screen, LaneScreen)]  # one, maybe under a dialog
        screen = lanes[-1] if lanes else None
        if screen is None:
            return
        self._meter.count_frame()
        glyphs, name = self.glyphs, self._source.name if self._source is not None else "starting"
        screen.draw_bars(
            lambda width: header_line(screen.LANE, width, glyphs, source=self._source_label()),
            lambda width: footer_line(
                self._badge(), self._readings(), self._shown_message(), width, glyphs, open_screen=screen.LANE
            ),
        )
        if self.history.newest is None:
            screen.draw_words(self._starting_words(), self._frame(name))
        else:
            screen.draw(self._frame(name), plots=plots, tables=tables)

    def _frame(self, name: str) -> Frame:
        taken = self._source.taken if self._source is not None else 0
        return Frame(self.history, self.glyphs, self._paused_at, self._span, name, taken)

    def _starting_words(self) -> list[Line]:
        came = self._starting() if self._source is None else Starting("waiting for the first snapshot")
        state = came if isinstance(came, Starting) else Starting("opening the log")
        count = f": {state.done}/{state.total}" if state.total else ""
        words: list[Line] = [((f"{self.glyphs.wave} tidegauge", "title"),), (), ((f"{state.text}{count}", "text"),)]
        if state.total:
            words.append(gauge(state.done / state.total, 40, "bar", self.glyphs))
        return words

    def _source_label(self) -> str:
        snapshot = self.history.snapshot
        return "starting" if snapshot is None else f"{snapshot.source_id} {self.glyphs.middle_dot} {snapshot.host}"

    def _badge(self) -> Span:
        if self._paused_at is None:
            return (" LIVE ", "badge-live")
        back = (self.history.newest_ns - self._paused_at) / SECOND_NS
        return (f" PAUSED {self.glyphs.minus}{back:.0f} s ", "badge-paused")

    def _readings(self) -> Readings:
        share = self.history.cpu_share(5.0)
        return Readings(self._meter.share, None if isinstance(share, Absent) else share, self._meter.frame_ms)

    def say(self, text: str) -> None:
        """Show a line in the footer for some seconds."""
        self._message = text
        self._message_until = self._clock.monotonic_ns() + round(MESSAGE_SECONDS * SECOND_NS)
        self.draw_now()

    def _shown_message(self) -> str:
        return self._message if self._clock.monotonic_ns() < self._message_until else ""

    # Keys: the view.

    def action_show(self, name: str) -> None:
        """Open a lane's screen."""
        self.switch_mode(name)
        self.call_after_refresh(self.draw_now)

    def action_pause(self) -> None:
        """Freeze the view where it is, or let it go on."""
        self._paused_at = self.history.newest_ns if self._paused_at is None and self.history.newest else None
        self.draw_now()

    def action_scrub(self, seconds: int) -> None:
        """Look at another instant, while paused."""
        if self._paused_at is None:
            self.say("press space to pause, then scrub")
            return
        wanted = self._paused_at + seconds * SECOND_NS
        self._paused_at = min(max(wanted, self.history.oldest_ns), self.history.newest_ns)
        self.draw_now()

    def action_scrub_to(self, end: str) -> None:
        """Look at one end of what is kept, while paused."""
        if self._paused_at is None:
            self.say("press space to pause, then scrub")
            return
        self._paused_at = self.history.oldest_ns if end == "oldest" else self.history.newest_ns
        self.draw_now()

    def action_span(self) -> None:
        """Let plots look further back."""
        self._span = keys.SPANS[(keys.SPANS.index(self._span) + 1) % len(keys.SPANS)]
        self.say(f"plots look back {self._span // 60} min")

    # Keys: the engine.

    def action_start_stop(self) -> None:
        """Start, stop or reopen the log, as its state asks."""
        controls, wal = self._controls(), self._wal()
        if controls is None or wal is None:
            return
        if wal.state == "poisoned":
            controls.reopen()
            self.say("reopening the log: recovery runs")
        elif wal.state == "running":
            controls.stop()
            self.say("stopping the handlers")
        else:
            controls.start()
            self.say("starting the handlers")

    def action_handlers(self, direction: int) -> None:
        """Run more handlers, or fewer."""
        controls, wal = self._controls(), self._wal()
        if controls is None or wal is None:
            return
        now = int(self.pending.get("handlers") or wal.handlers)
        wanted = keys.next_handlers(now, direction)
        if wanted == now:
            self.say(f"{now} handlers: {'no more' if direction > 0 else 'no fewer'}")
            return
        self.pending.ask("handlers", str(wanted))
        controls.set_handlers(wanted)
        self.say(f"handlers {self.glyphs.arrow} {wanted}")

    def action_next(self, what: str) -> None:
        """Choose the next model, device or sync mode."""
        controls, wal = self._controls(), self._wal()
        if controls is None or wal is None:
            return
        shown, choices, ask = {
            "model": (wal.model, keys.MODELS, controls.set_model),
            "device": (wal.device, keys.DEVICES, controls.set_device),
            "sync": (wal.sync, keys.SYNCS, controls.set_sync),
        }[what]
        wanted = keys.next_choice(self.pending.get(what) or shown, choices)
        self.pending.ask(what, wanted)
        ask(wanted)
        note = " (not durable)" if wanted == "none" else " (simulated)" if ":" in wanted and what == "device" else ""
        self.say(f"{what} {self.glyphs.arrow} {wanted}{note}")

    def action_faults(self) -> None:
        """Ask which fault to inject."""
        if self._controls() is not None and self._wal() is not None:
            self.push_screen(FaultDialog(self.glyphs), self._inject)

    def action_ramdisk(self, what: str) -> None:
        """Do what a key of the RAM disk screen asks for."""
        self._ramdisk_keys.press(what)

    def ramdisk_controls(self) -> RamdiskControls | None:
        """Return how to control the RAM disk, or None after saying why not."""
        controls = self._source.ramdisk if self._source is not None else None
        if controls is None:
            snapshot = self.history.snapshot
            self._say_uncontrolled("RAM disk", snapshot.ramdisk if snapshot is not None else None)
        return controls

    def action_image(self, what: str) -> None:
        """Do what a key of the Image screen asks for."""
        self._image_keys.press(what)

    def image_controls(self) -> ImageControls | None:
        """Return the image lane's controls, or None after saying why not."""
        controls = self._source.image if self._source is not None else None
        if controls is None:
            snapshot = self.history.snapshot
            self._say_uncontrolled("image lane", snapshot.image if snapshot is not None else None)
        return controls

    def _say_uncontrolled(self, what: str, lane: object) -> None:
        """Say why a lane, as its snapshot has it, cannot be controlled."""
        if self._source is None:
            self.say("the engine is starting")
        else:
            self.say(f"no {what}: {lane.reason}" if isinstance(lane, Absent) else "the source only shows")

    def _inject(self, fault: str | None) -> None:
        controls = self._controls()
        if fault == "stall" and controls is not None:
            controls.stall_next_sync(STALL_NS)
            self.say("the next sync stalls for 500 ms")
        elif fault == "fail":
            words = [
                "The next sync will fail with an I/O error. The log is then poisoned:",
                "every waiting handler gets the error and nothing more is acknowledged.",
                "After that, s reopens it: recovery runs.",
            ]
            self.push_screen(ConfirmDialog("fail the next sync?", words, self.glyphs), self._fail)

    def _fail(self, agreed: bool | None) -> None:
        controls = self._controls()
        if agreed and controls is not None:
            controls.fail_next_sync()
            self.say("the next sync fails with an I/O error")
        else:
            self.draw_now()

    def _controls(self) -> WalControls | None:
        if isinstance(self.screen, ImageScreen):  # what is changed should be seen
            self.say("that key is the log's: press 2 for its screen")
            return None
        controls = self._source.controls if self._source is not None else None
        if controls is None:
            self.say(
                "nothing to control: the source only shows" if self._source is not None else "the engine is starting"
            )
        return controls

    def _wal(self) -> WalSnapshot | None:
        snapshot = self.history.snapshot
        wal = snapshot.wal if snapshot is not None else Absent("no snapshot yet")
        if isinstance(wal, Absent):
            self.say(f"no log to control: {wal.reason}")
            return None
        return wal

    # Keys: the program.

    def action_next_theme(self) -> None:
        """Put on the next theme."""
        names = list(self._themes)
        if len(names) == 1:
            why = "NO_COLOR is set" if self.terminal.colour == "none" else "this terminal has 16 colours"
            self.say(f"{names[0]} is the only theme here: {why}")
            return
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.say(f"theme {self.theme}")

    def action_copy(self) -> None:
        """Copy the screen as text."""
        if isinstance(self.screen, LaneScreen):
            text = self.screen.as_text()
            self.copy_to_clipboard(text)
            self.say(f"copied {text.count(chr(10)) + 1} lines, if the terminal takes OSC 52")

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpDialog(self.glyphs), lambda _: self.draw_now())

    def action_leave(self) -> None:
        """Leave; the engine is stopped after the terminal is restored."""
        if self._source is not None and self._source.image is not None:
            self._source.image.cancel()  # a load in plain Python would share the interpreter with all that ends
        self.exit(DONE)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the palette's commands: the table of keys, and each theme by name."""
        for key in keys.KEYS:
            if key.action not in ("command_palette", "help") and not key.action.startswith("scrub"):
                yield SystemCommand(
                    f"{key.group}: {key.label}", f"{key.help} ({key.shown})", partial(self.run_action, key.action)
                )
        for name in self._themes:
            yield SystemCommand(f"Theme: {name}", f"put on {name}", partial(setattr, self, "theme", name))


def run_dashboard(
    make_engine: MakeEngine,
    *,
    theme: str | None = None,
    plain: bool | None = None,
    clock: Clock | None = None,
) -> int:
    """Show the dashboard on a local engine until it is left; return the exit code.

    make_engine: called once, in a thread of its own, with a Progress; returns the engine, not started. What it
    raises ends the dashboard: a TidegaugeError is one line on stderr and code 1, anything else is raised here.
    theme: by name; else what suits the terminal. plain: draw in ASCII; None looks at the terminal.

    Codes: 0 left by key, 1 the engine could not be made, 2 there is no terminal, 130 SIGTERM or SIGHUP.
    """
    if problem := why_no_screen():
        _complain(problem)
        return NO_TERMINAL
    terminal = find_terminal()
    if plain is not None:
        terminal = Terminal(terminal.colour, plain)
    starter = Starter(make_engine)
    sources: list[LocalSource] = []

    def starting() -> Source | Starting | BaseException:
        if starter.error is not None:
            return starter.error
        if starter.engine is None:
            return starter.progress.state
        if not sources:
            sources.append(LocalSource(starter.engine, clock))
            sources[0].start()
        return sources[0]

    app = TideApp(
        starting, terminal=terminal, theme=theme, clock=clock, notes=lambda: starter.progress.notes, with_signals=True
    )
    handlers = {number: signal.getsignal(number) for number in LEAVING_SIGNALS}
    starter.start()
    try:
        code = app.run(mouse=False)
    finally:
        for number, handler in handlers.items():  # asyncio leaves them at their default, which kills
            signal.signal(number, handler)
        for source in sources:
            source.close(CLOSE_SECONDS)
        engine = starter.close(CLOSE_SECONDS)
        if engine is not None:
            engine.stop()
    if isinstance(app.failure, TidegaugeError):
        _complain(str(app.failure))
        return FAILED
    if app.failure is not None:
        raise app.failure
    return FAILED if code is None else code


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # stderr is gone: the exit code says it
        click.echo(f"tidegauge: {text}", err=True)
