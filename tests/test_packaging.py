"""The wheel holds what an installed tidegauge needs: themes, licence, the command."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for room in ("engine", "dashboard", "themes"):  # a copy: setuptools leaves build folders beside its sources
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(out), str(source)], check=True, timeout=100)
    (path,) = out.glob("tidegauge-*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_module_and_every_theme(wheel: zipfile.ZipFile) -> None:
    expected = {
        str(path.relative_to(ROOT))
        for room in ("engine", "dashboard", "themes")
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".toml", ".tcss") and path.is_file()
    }

    assert expected - set(wheel.namelist()) == set()


def test_the_wheel_holds_no_test_and_no_compiled_kernel(wheel: zipfile.ZipFile) -> None:
    assert [name for name in wheel.namelist() if name.startswith(("tests", "docs")) or name.endswith(".nbi")] == []


def test_the_wheel_brings_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (folder,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}

    assert "tidegauge = dashboard.cli.main:main" in wheel.read(f"{folder}/entry_points.txt").decode()
    assert "Apache License" in wheel.read(f"{folder}/licenses/LICENSE").decode()
    assert "License-Expression: Apache-2.0" in wheel.read(f"{folder}/METADATA").decode()
