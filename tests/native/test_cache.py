"""The kernel cache: stale kernels are never run, and nothing needs a folder that can be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.native import cache
from tests.programs import copy_engine, printed_by

pytestmark = pytest.mark.slow  # it compiles in processes of its own, which no other way of running it makes different

CALLER = """
from engine.callee import inside
from engine.native.kernel import i64_array, kernel
from numba import types

@kernel(types.int64(types.int64))
def outside(value):
    return inside(value) + 1
"""
CALLEE = """
from engine.native.kernel import inner

STEP = 10

@inner
def inside(value):
    return value + STEP
"""
CALL = """
from engine.caller import outside
print(outside(0), sum(outside.stats.cache_hits.values()))
"""
READ_PAST_THE_END = """
import numpy as np
from engine.native.kernel import inner

@inner
def read(data, index):
    return data[index]

try:
    read(np.zeros(1, np.int64), 1000)
    print("not caught")
except IndexError:
    print("caught")
"""


@pytest.fixture
def engine_copy(tmp_path: Path) -> Path:
    return copy_engine(tmp_path / "copy", caller=CALLER, callee=CALLEE)


def test_a_second_process_loads_what_the_first_compiled(engine_copy: Path) -> None:
    assert printed_by(CALL, root=engine_copy) == "11 0"
    assert printed_by(CALL, root=engine_copy) == "11 1"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("return value + STEP", "return value - STEP", "-9 0", id="code"),
        pytest.param("STEP = 10", "STEP = 70", "71 0", id="constant"),
    ],
)
def test_an_edit_in_a_callee_of_another_module_is_seen(
    engine_copy: Path, before: str, after: str, expected: str
) -> None:
    printed_by(CALL, root=engine_copy)
    callee = engine_copy / "engine" / "callee.py"

    callee.write_text(callee.read_text().replace(before, after))

    assert printed_by(CALL, root=engine_copy) == expected


def test_kernels_lie_beside_the_package_where_that_can_be_written(engine_copy: Path) -> None:
    printed_by(CALL, root=engine_copy)

    assert list((engine_copy / ".kernels").glob("caller-*/**/*.nbi"))


def test_kernels_lie_in_the_named_folder(engine_copy: Path, tmp_path: Path) -> None:
    printed_by(CALL, root=engine_copy, settings={cache.FOLDER: str(tmp_path / "named")})

    assert list((tmp_path / "named").glob("caller-*/**/*.nbi"))
    assert not (engine_copy / ".kernels").exists()


def test_kernels_lie_in_the_users_cache_where_the_package_cannot_be_written(engine_copy: Path, tmp_path: Path) -> None:
    (engine_copy / ".kernels").write_text("a file: no folder can be made here, not even by root")

    printed_by(CALL, root=engine_copy, settings={"XDG_CACHE_HOME": str(tmp_path / "cache")})

    assert list((tmp_path / "cache" / "tidegauge" / "kernels").glob("caller-*/**/*.nbi"))


def test_a_private_folder_serves_where_no_cache_can_be_written_and_is_removed(
    engine_copy: Path, tmp_path: Path
) -> None:
    (engine_copy / ".kernels").write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    settings = {"XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(temporary)}

    assert printed_by(CALL, root=engine_copy, settings=settings) == "11 0"

    assert list(temporary.iterdir()) == []


def test_kernels_run_where_nothing_at_all_can_be_written(engine_copy: Path) -> None:
    (engine_copy / ".kernels").write_text("")
    nowhere = "import tempfile; tempfile.tempdir = '/dev/null'\n"

    assert printed_by(nowhere + CALL, root=engine_copy, settings={"XDG_CACHE_HOME": "/dev/null"}) == "11 0"


def test_two_processes_may_fill_an_empty_cache_at_once(engine_copy: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(engine_copy)!r})\n{CALL}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]

    results = [process.communicate(timeout=60)[0].split()[0] for process in processes]

    assert results == ["11", "11"]


def test_an_out_of_bounds_kernel_is_caught_with_bounds_checks_even_after_it_ran_without(tmp_path: Path) -> None:
    copy = copy_engine(tmp_path / "copy", reader=READ_PAST_THE_END)
    run = "import engine.reader"

    assert printed_by(run, root=copy) == "not caught"
    assert printed_by(run, root=copy, settings={cache.BOUNDS_CHECK: "1"}) == "caught"
    assert printed_by(run, root=copy) == "not caught"


def test_a_fingerprint_follows_imports_of_imports(engine_copy: Path) -> None:
    names = printed_by(
        "from pathlib import Path; from engine.native.cache import source_closure\n"
        "print(*sorted(path.stem for path in source_closure(Path('engine/caller.py'))))",
        root=engine_copy,
    )

    assert {"caller", "callee", "kernel", "cache"} <= set(names.split())


def _short(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _empty(_: bytes) -> bytes:
    return b""


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x10]) + content[middle + 1 :]


@pytest.mark.parametrize("kind", ["nbi", "nbc"], ids=["index", "code"])
@pytest.mark.parametrize("damage", [_short, _empty, _flipped], ids=["short", "empty", "flipped"])
def test_kept_kernels_that_a_crash_left_damaged_are_compiled_anew(engine_copy: Path, damage, kind: str) -> None:
    printed_by(CALL, root=engine_copy)
    for file in (engine_copy / ".kernels").glob(f"cal*-*/**/*.{kind}"):
        file.write_bytes(damage(file.read_bytes()))

    assert printed_by(CALL, root=engine_copy).split()[0] == "11"
    assert printed_by(CALL, root=engine_copy) == "11 1"


def test_kernels_run_where_the_disk_has_no_room_to_keep_them(engine_copy: Path) -> None:
    no_room = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"

    assert printed_by(no_room + CALL, root=engine_copy) == "11 0"
