"""Where compiled kernels are kept, and when they are out of date.

Numba keeps a compiled function until the function's own file changes. It sees neither an edit in a
callee or a constant of another module, nor a change of NUMBA_BOUNDSCHECK, and `cache=True` raises at
import where no folder can be written. So each kernel file has a folder of its own, named by a hash of
that file and of every module of ours that it imports, directly or not, of numba's version and of the
bounds-check setting: in the folder that TIDEGAUGE_KERNELS names, else beside the package if that can be
written, else in the user's cache folder, else in a private temporary one that goes with the process, and
where not even that can be made, nowhere: kernels are then compiled for this process alone.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import platformdirs

ROOT = Path(__file__).resolve().parents[2]
BOUNDS_CHECK = "NUMBA_BOUNDSCHECK"
FOLDER = "TIDEGAUGE_KERNELS"

_IMPORT = re.compile(r"^\s*(?:from\s+(engine[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+(engine[\w.]*))", re.M)
_private: list[tempfile.TemporaryDirectory[str]] = []  # kept alive until the process ends


@functools.cache  # a file has many kernels, and what they are made from was read when it was imported
def kernel_folder(source: Path) -> Path | None:
    """Return the folder for the compiled kernels of `source`, which can be written, or None where none can."""
    root = kernel_root()
    if root is None:
        return None
    folder = root / f"{source.stem}-{fingerprint(source)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # the disk is full
        return None
    return folder


@functools.cache
def kernel_root() -> Path | None:
    """Return the first folder that can be written: the named one, beside the package, the user's, a private one."""
    named = [Path(os.environ[FOLDER])] if os.environ.get(FOLDER) else []
    for candidate in (*named, ROOT / ".kernels", platformdirs.user_cache_path("tidegauge") / "kernels"):
        if _can_write(candidate):
            return candidate
    try:
        private = tempfile.TemporaryDirectory(prefix="tidegauge-kernels-")
    except OSError:
        return None
    _private.append(private)
    return Path(private.name)


def fingerprint(source: Path) -> str:
    """Return 16 hex digits that change with anything the compiled kernels of `source` were made from."""
    digest = hashlib.sha256()
    bounds = os.environ.get(BOUNDS_CHECK, "")
    digest.update(f"numba {version('numba')} numpy {version('numpy')} bounds {bounds}".encode())
    for path in sorted(source_closure(source)):
        digest.update(str(path.name).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def source_closure(source: Path) -> frozenset[Path]:
    """Return `source` and every file of ours that it imports, directly or not."""
    seen: set[Path] = set()
    pending = [source.resolve()]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending.extend(_imported(path))
    return frozenset(seen)


@functools.cache
def _imported(path: Path) -> tuple[Path, ...]:
    return tuple(_find_imported(path))


def _find_imported(path: Path) -> Iterator[Path]:
    for match in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        package, names, plain = match.groups()
        module = package or plain
        candidates = [module, *(f"{module}.{name}" for name in re.findall(r"\w+", names or ""))]
        for candidate in candidates:
            base = ROOT.joinpath(*candidate.split("."))
            for file in (base.with_suffix(".py"), base / "__init__.py"):
                if file.is_file():
                    yield file


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
