"""Running the command line in tests: in this process, or as the program a person starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner, Result

from dashboard.cli.main import tidegauge

ROOT = Path(__file__).resolve().parents[2]

# A test runner in the background ignores some signals, and what it starts inherits that.
_AS_FROM_A_SHELL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from dashboard.cli.main import main
main()
"""


def run(*words: object, environment: Mapping[str, str] | None = None) -> Result:
    """Run one command line in this process; stdout and stderr apart."""
    return CliRunner().invoke(tidegauge, [str(word) for word in words], env=environment, prog_name="tidegauge")


def program(*words: object) -> list[str]:
    """Return the command line of the program itself."""
    return [sys.executable, "-P", "-m", "dashboard", *map(str, words)]


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which the program finds this checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def start(*words: object) -> subprocess.Popen[str]:
    """Start the program with its output on pipes, and with signals as a person's shell would have them."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _AS_FROM_A_SHELL, *map(str, words)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*words: object, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    child = start(*words)
    try:
        out, err = child.communicate(timeout=timeout)
    finally:
        child.kill()
        child.wait()
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)
