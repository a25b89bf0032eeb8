"""A test that hangs inside a kernel, where no signal is handled, is named and ends the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

HANGING = """
import numpy as np
from engine.native.atomics import load_cell
from engine.native.kernel import inner

@inner
def never_ends(cells):
    while load_cell(cells, 0) == 0:
        pass

def test_that_hangs_in_a_kernel():
    never_ends(np.zeros(1, np.int64))
"""


def test_the_watchdog_names_a_test_that_hangs_in_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "--timeout=3", f"--config-file={ROOT / 'pyproject.toml'}", str(tmp_path)]

    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)

    assert run.returncode != 0
    assert "Timeout" in run.stdout + run.stderr
    assert "in test_that_hangs_in_a_kernel" in run.stdout + run.stderr
