"""What importing a room loads: the linter reads the static graph; sys.modules proves that a deferred import defers.

The command line's own promises (a light --help) are tested in tests/cli.
"""

from __future__ import annotations

import pkgutil
import tomllib
from pathlib import Path

import pytest

from tests.programs import ROOT, printed_by

SCREEN = ("textual", "rich", "plotext")
SERVER = ("prometheus_client", "http.server")
PEERS = ("plyvel", "lmdb", "rocksdict")
WITHOUT_SCREEN = ("cli", "exporter", "recording", "sources")  # rooms of dashboard; those that exist are tested


def modules_of(room: str) -> list[str]:
    folder = ROOT / room.replace(".", "/")
    if not folder.is_dir():
        return [room]
    return [room, *(module.name for module in pkgutil.walk_packages([str(folder)], f"{room}."))]


def loaded_by(modules: list[str], unwanted: tuple[str, ...]) -> str:
    return printed_by(
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        f"print(*[name for name in {unwanted!r} if name in sys.modules])"
    )


def existing_rooms() -> list[str]:
    dashboard = ROOT / "dashboard"
    return [name for name in WITHOUT_SCREEN if (dashboard / name).is_dir() or (dashboard / f"{name}.py").is_file()]


def test_the_whole_engine_loads_no_screen_server_or_command_line() -> None:
    assert loaded_by(modules_of("engine"), (*SCREEN, *SERVER, *PEERS, "click", "dashboard", "themes")) == ""


@pytest.mark.parametrize("room", existing_rooms())
def test_a_room_for_machines_loads_no_screen(room: str) -> None:
    assert loaded_by(modules_of(f"dashboard.{room}"), SCREEN[:1]) == ""


def test_snapshots_and_metrics_load_no_numba() -> None:
    modules = ["engine.snapshot", "engine.metrics", "engine.measure.buckets", "engine.measure.phases"]

    assert loaded_by(modules, ("numba", "llvmlite")) == ""


def test_themes_load_neither_engine_nor_screen() -> None:
    assert loaded_by(modules_of("themes"), (*SCREEN, "engine", "dashboard", "numpy")) == ""


def test_the_linter_watches_every_room_that_does_without_the_screen() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

    (watched,) = [
        contract["source_modules"] for contract in contracts if contract.get("forbidden_modules") == ["textual"]
    ]

    assert watched == [f"dashboard.{room}" for room in existing_rooms()]


@pytest.mark.parametrize("room", ["engine", "dashboard", "themes"])
def test_every_module_opens_with_what_it_is(room: str) -> None:
    files = [path for path in (ROOT / room).rglob("*.py") if path.stat().st_size]

    silent = [str(path.relative_to(ROOT)) for path in files if not _opens_with_docstring(path)]

    assert silent == []


def _opens_with_docstring(path: Path) -> bool:
    return (
        path.read_text(encoding="utf-8").removeprefix("#!/usr/bin/env python3\n").lstrip().startswith(('"""', 'r"""'))
    )
