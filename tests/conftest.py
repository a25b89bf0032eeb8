"""What every test gets: a check for leaked threads, hypothesis profiles, goldens, folders on a real disk."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
GOLDENS = ROOT / "tests" / "data" / "golden"
IN_MEMORY = {"tmpfs", "ramfs"}
LEAK_DEADLINE = 5.0  # seconds that a thread told to stop may still need

# No deadline: a kernel's first call compiles it. In CI the examples are the same each time, so that a red run is about
# the change and not about luck; `make fuzz` is where luck is looked for.
hypothesis.settings.register_profile(
    "tidegauge",
    deadline=None,
    max_examples=60,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("fuzz", parent=hypothesis.settings.get_profile("tidegauge"), max_examples=5000)
hypothesis.settings.load_profile("tidegauge")


# Under nohup, or behind a shell's &, these are ignored, here and in every program that a test starts: a test that
# sends one would wait.
for number, default in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-goldens."""
    parser.addoption("--update-goldens", action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """Fail a test that leaves a thread running."""
    before = set(threading.enumerate())
    yield
    give_up = time.monotonic() + LEAK_DEADLINE
    leaked = []
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("pytest_timeout"):
            thread.join(max(0.0, give_up - time.monotonic()))
            if thread.is_alive():
                leaked.append(thread.name)
    assert not leaked, f"the test left threads running: {', '.join(sorted(leaked))}"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return compare(name, text): text must equal tests/data/golden/NAME, which --update-goldens writes."""

    def compare(name: str, text: str) -> None:
        path = GOLDENS / name
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"no golden file {name} yet; run pytest --update-goldens and read what it wrote"
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; if that is right: pytest --update-goldens"

    return compare


@pytest.fixture
def disk_path(tmp_path: Path) -> Iterator[Path]:
    """Return an empty folder on a real file system: tmp_path, or one in the checkout where /tmp is memory."""
    if file_system_of(tmp_path) not in IN_MEMORY:
        yield tmp_path
        return
    scratch = ROOT / "scratch"
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        if file_system_of(Path(folder)) in IN_MEMORY:
            pytest.skip(f"both {tmp_path} and {scratch} are memory: no disk to write to")
        yield Path(folder)


def file_system_of(path: Path) -> str:
    """Return the type of the file system that holds `path`, as the kernel names it."""
    mounts = [mount for mount in psutil.disk_partitions(all=True) if path.resolve().is_relative_to(mount.mountpoint)]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else "unknown"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of captures and reference data that TIDEGAUGE_SHARED names; skip where there is none."""
    folder = Path(os.environ.get("TIDEGAUGE_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no reference data: TIDEGAUGE_SHARED is {folder}, which is no folder")
    return folder
