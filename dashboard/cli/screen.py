"""Opening the dashboard on a local engine: the one place of the command line that loads the screen, when asked for."""

from __future__ import annotations

import importlib

from dashboard.cli.engine_flags import EngineFlags
from dashboard.cli.exits import Exit
from dashboard.terminal import why_no_screen
from engine.errors import TidegaugeError

_APP = "dashboard.app"  # by name: the command line must not depend on the screen


class NoTerminal(TidegaugeError):
    """The dashboard was asked for where nobody could see it."""


def open_dashboard(flags: EngineFlags, *, port: int, bind: str, exporter: bool) -> int:
    """Run the dashboard until it is left; return its exit code. Raises NoTerminal."""
    if problem := why_no_screen():
        raise NoTerminal(problem)
    app = importlib.import_module(_APP)
    return int(app.run_dashboard(flags, port=port, bind=bind, exporter=exporter) or Exit.DONE)
