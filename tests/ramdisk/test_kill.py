"""Killed at any line, a store keeps its promises; `make bench` does the same a thousand times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT
from tests.ramdisk.store_kit import ram_parent


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_kills_break_no_promise(disk_path: Path) -> None:
    with ram_parent() as ram:
        done = subprocess.run(
            [sys.executable, "-m", "tests.ramdisk.kill_program", str(ram), str(disk_path), "100", "1"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=560,
            check=False,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "100 kills at 19 places, 0 mistakes" in done.stderr
