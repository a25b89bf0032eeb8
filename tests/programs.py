"""Running Python programs of their own in tests: on the engine as it stands, or on a copy that a test may change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 100  # seconds; below pytest's own, so that a hang shows the program's output

# What decides where kernels are kept and how they are made; a program gets only what its test sets.
_KERNEL_SETTINGS = ("TIDEGAUGE_KERNELS", "NUMBA_BOUNDSCHECK", "NUMBA_CACHE_DIR")


def run_python(
    source: str, *, root: Path = ROOT, settings: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> subprocess.CompletedProcess[str]:
    """Run `source` as a program that imports from `root`; return what it printed and its exit code."""
    environment = {name: value for name, value in os.environ.items() if name not in _KERNEL_SETTINGS}
    environment |= {"PYTHONPATH": str(root), **(settings or {})}
    return subprocess.run(
        [sys.executable, "-P", "-c", source],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def printed_by(source: str, *, root: Path = ROOT, settings: Mapping[str, str] | None = None) -> str:
    """Run `source` as above; return what it printed, and fail with its errors where it did not end well."""
    done = run_python(source, root=root, settings=settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def copy_engine(folder: Path, **modules: str) -> Path:
    """Copy the substrate to `folder`/engine, with `modules` (name=source) added beside it; return `folder`."""
    native = folder / "engine" / "native"
    native.mkdir(parents=True)
    for module in ("__init__", "units", "errors"):
        shutil.copy(ROOT / "engine" / f"{module}.py", folder / "engine")
    for source in (ROOT / "engine" / "native").glob("*.py"):
        shutil.copy(source, native)
    for name, text in modules.items():
        (folder / "engine" / f"{name}.py").write_text(text, encoding="utf-8")
    return folder
