"""Starting the engine behind the first frame: a thread of ours loads numba, compiles the kernels and makes the engine.

    screen                                starter's thread
    first frame, "starting"               make_engine(progress)
    reads `state` while it draws      <-  progress(12, 40): "compiling kernels, once: 12/40"
    takes `engine`, or raises `error` <-  done

It is not a Textual worker: those run in asyncio's executor, which is joined when the program ends, so one that
compiles would hold the exit up. Asked to stop, it ends at its next report; if it makes an engine after that, it
stops it itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from dashboard.sources.local import EngineLike


@dataclass(frozen=True, slots=True)
class Starting:
    """How far the start has come. total is 0 where there is nothing to count."""

    text: str
    done: int = 0
    total: int = 0


class StartCancelled(Exception):
    """The program ends before its engine was made. Raised inside make_engine by its progress."""


class Progress:
    """What make_engine reports to. Called with (ready, of all), as compile_all does."""

    def __init__(self) -> None:
        self.state = Starting("loading the engine")  # replaced whole by the starter's thread, read by the screen's
        self.notes: list[str] = []  # lines for the event log; appended by the starter's thread
        self._cancelled = threading.Event()
        self._counted = "compiling kernels, once"

    def __call__(self, done: int, total: int) -> None:
        """Report kernels that are ready. Raises StartCancelled once the program ends."""
        self._report(Starting(self._counted, done, total))

    def say(self, text: str) -> None:
        """Report what is being done now. Raises StartCancelled once the program ends."""
        self._report(Starting(text))

    def note(self, text: str) -> None:
        """Leave a line in the event log, for what is worth knowing and stops nothing, such as a port in use."""
        self.notes.append(text)

    def cancel(self) -> None:
        """Make the next report raise."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the program ends."""
        return self._cancelled.is_set()

    def _report(self, state: Starting) -> None:
        if self._cancelled.is_set():
            raise StartCancelled
        self.state = state


MakeEngine = Callable[[Progress], EngineLike]


class Starter:
    """Makes and starts one engine in a thread of its own."""

    def __init__(self, make_engine: MakeEngine) -> None:
        self.progress = Progress()
        self._make_engine = make_engine
        self._thread = threading.Thread(target=self._run, name="starter", daemon=True)
        self._settled = threading.Lock()  # guards which side stops the engine: one of the two below wins
        # Written once by the thread, at its end.
        self._engine: EngineLike | None = None
        self._error: BaseException | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def engine(self) -> EngineLike | None:
        """The engine, once it runs."""
        return self._engine

    @property
    def error(self) -> BaseException | None:
        """What make_engine or the engine's start raised."""
        return self._error

    def close(self, timeout: float) -> EngineLike | None:
        """Ask the thread to end and wait at most `timeout` seconds; return the engine if there is one to stop."""
        with self._settled:
            self.progress.cancel()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return self._engine

    def _run(self) -> None:
        try:
            engine = self._make_engine(self.progress)
            with self._settled:
                if not self.progress.is_cancelled:
                    engine.start()
                    self._engine = engine
                    return
            engine.stop()
        except StartCancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the program ends
            self._error = error
