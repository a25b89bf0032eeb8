"""Images: real ones with their oracles, and a builder for small protobuf images that a test can break."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.fsimage.load import Loaded, load_image
from engine.measure.clock import SystemClock
from engine.native.kernel import compile_all


@pytest.fixture(scope="session", autouse=True)
def kernels() -> None:
    """Compile before the first test, so that none pays for it."""
    compile_all()


@pytest.fixture(scope="session")
def images(shared: Path) -> Path:
    """Return the folder of reference images."""
    return shared / "data"


@pytest.fixture
def load() -> Callable[..., Loaded]:
    """Return load_image with a clock, the MD5 thread joined."""

    def run(path: Path, **options: object) -> Loaded:
        loaded = load_image(path, clock=SystemClock(), **options)  # type: ignore[arg-type]
        loaded.wait_for_checksum(30)
        return loaded

    return run


@pytest.fixture
def unpacked(tmp_path: Path) -> Callable[[Path], Path]:
    """Return a function that unpacks a .gz reference file."""

    def unpack(path: Path) -> Path:
        out = tmp_path / path.name.removesuffix(".gz")
        out.write_bytes(gzip.decompress(path.read_bytes()))
        return out

    return unpack
