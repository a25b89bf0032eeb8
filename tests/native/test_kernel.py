"""Declared kernels are compiled before they are needed, with progress, and not twice."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from engine.native.kernel import inner, require_platform
from tests.programs import copy_engine, printed_by
from tests.waiting import run_threads, wait_for

THREE_SIGNATURES = """
from engine.native.kernel import i64_array, kernel, u8_array, u8_readonly
from numba import types

@kernel(types.int64(u8_array), types.int64(u8_readonly))
def size_of(data):
    return data.size

@kernel(types.int64(i64_array))
def first(cells):
    return cells[0]
"""
COMPILE_ALL = """
from engine.native import kernel
import engine.three
calls = []
compiled = kernel.compile_all(lambda ready, total: calls.append((ready, total)))
print(compiled, calls, *kernel.declared_names())
"""
NO_COMPILATION_IN_A_RUN = """
import numpy as np
from engine.native import kernel
from engine.three import size_of
kernel.compile_all()
before = len(size_of.signatures)
print(size_of(np.zeros(3, np.uint8)), size_of(np.frombuffer(b"four", np.uint8)), len(size_of.signatures) - before)
"""


@pytest.fixture
def engine_copy(tmp_path: Path) -> Path:
    return copy_engine(tmp_path / "copy", three=THREE_SIGNATURES)


def test_all_signatures_are_compiled_once_and_then_loaded(engine_copy: Path) -> None:
    names = "engine.three.size_of engine.three.size_of engine.three.first"
    progress = [(0, 3), (1, 3), (2, 3), (3, 3)]

    assert printed_by(COMPILE_ALL, root=engine_copy) == f"3 {progress} {names}"
    assert printed_by(COMPILE_ALL, root=engine_copy) == f"0 {progress} {names}"


def test_a_declared_kernel_takes_bytes_without_compiling_again(engine_copy: Path) -> None:
    assert printed_by(NO_COMPILATION_IN_A_RUN, root=engine_copy) == "3 4 0"


def test_a_kernel_can_be_compiled_while_another_runs() -> None:
    from engine.native.atomics import load_cell, store_cell

    @inner
    def spin(cells):
        store_cell(cells, 0, 1)
        turns = 0
        while load_cell(cells, 1) == 0:
            turns += 1
        return turns

    @inner
    def triple(value):
        return value * 3

    cells = np.zeros(2, np.int64)

    def compile_and_stop() -> int:
        wait_for(lambda: cells[0] == 1)
        result = triple(14)
        cells[1] = 1
        return result

    _, result = run_threads(lambda: spin(cells), compile_and_stop, deadline=60)

    assert result == 42


def test_this_platform_is_supported() -> None:
    assert require_platform() is None


@pytest.mark.parametrize(
    ("system", "machine", "libc"),
    [
        pytest.param("darwin", "arm64", ("", ""), id="macos"),
        pytest.param("linux", "riscv64", ("glibc", "2.36"), id="another-processor"),
        pytest.param("linux", "x86_64", ("", ""), id="musl"),
    ],
)
def test_another_platform_is_named_with_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, libc: tuple[str, str]
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)

    reason = require_platform()

    assert reason is not None
    assert machine in reason
    assert "tidegauge runs on Linux with glibc, on x86_64 or aarch64" in reason
