"""Help is light: it loads neither numba nor numpy nor the screen."""

from __future__ import annotations

import json

import pytest

from tests.programs import printed_by

HEAVY = ("numba", "llvmlite", "numpy", "textual", "rich", "plotext", "prometheus_client", "psutil")

_HELP = """
import json, sys
sys.argv = ["tidegauge", *{words!r}]
from dashboard.cli.main import main
real, sys.stdout = sys.stdout, open("/dev/null", "w")
try:
    main()
except SystemExit:
    pass
sys.stdout.close()
sys.stdout = real
print(json.dumps([name for name in {heavy!r} if name in sys.modules]))
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["run", "--help"], ["run", "wal", "--help"], ["doctor", "--help"], ["--version"], ["rnu"]]
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    assert json.loads(printed_by(_HELP.format(words=words, heavy=HEAVY))) == []


@pytest.mark.parametrize("room", ["dashboard.cli.main", "dashboard.cli.run_wal", "dashboard.exporter.server"])
def test_command_line_and_exporter_do_without_the_screen(room: str) -> None:
    found = printed_by(f"import json, sys, {room}; print(json.dumps('textual' in sys.modules))")

    assert json.loads(found) is False
