"""Declaring kernels: nogil machine code with its signature written down, compiled before it is needed.

`@kernel(signature)` is an entry point that Python calls; `compile_all` compiles every declared one, with
progress, so that nothing compiles in the middle of a measurement. `@inner` is a function that kernels
call. Both release Python's lock and are kept on disk (see cache.py).

A kernel never raises, allocates or indexes unchecked while it holds a lock: an exception in nogil code
leaves the mutex locked for ever. It returns a code, and Python raises.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core import config

from engine.native.cache import kernel_folder
from engine.native.keeping import KernelCache

# numba publishes no types for its dispatchers and signatures: Any is all mypy could learn here.
type_of_record = numba.from_dtype

u8_array = types.Array(types.uint8, 1, "C")
u8_readonly = types.Array(types.uint8, 1, "C", readonly=True)  # np.frombuffer(bytes) is a type of its own
i64_array = types.Array(types.int64, 1, "C")
i64_matrix = types.Array(types.int64, 2, "C")
u8_matrix = types.Array(types.uint8, 2, "C")

# Without numba's runtime a kernel cannot make arrays, carray's views included, and counts no references to them. Those
# counts are atomic, and stay in loops that can end in several ways: they took four fifths of reading an image.
_BARE = {"_nrt": False}

_declared: list[tuple[Any, Any]] = []
_compiling = threading.Lock()  # guards the compile loop; held for seconds, never while a kernel runs


def kernel(*signatures: Any, bare: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Declare an entry kernel with every signature it will be called with.

    bare: without numba's runtime, for loops over arrays that make none; what it calls is `bare` or `inlined` too.
    """

    def declare(function: Callable[..., Any]) -> Any:
        dispatcher = _declare(function, **(_BARE if bare else {}))
        _declared.extend((dispatcher, signature) for signature in signatures)
        return dispatcher

    return declare


def inner(function: Callable[..., Any]) -> Any:
    """Declare a function that kernels call."""
    return _declare(function)


def bare(function: Callable[..., Any]) -> Any:
    """Declare a function that bare kernels call: it makes no array."""
    return _declare(function, **_BARE)


def inlined(function: Callable[..., Any]) -> Any:
    """Declare a small bare function that becomes part of every kernel that calls it, whatever LLVM estimates."""
    return _declare(function, forceinline=True, **_BARE)


def _declare(function: Callable[..., Any], **options: bool) -> Any:
    with _compiling:  # the cache folder is a global of numba's, read when the dispatcher is made
        folder = kernel_folder(Path(function.__code__.co_filename))
        dispatcher = numba.njit(nogil=True, **options)(function)
        if folder is None:
            return dispatcher
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder)
        try:
            dispatcher._cache = KernelCache(function)
        except (OSError, RuntimeError):
            pass  # the disk is full, or the folder went away: this process compiles for itself
        finally:
            config.CACHE_DIR = before
        return dispatcher


def compile_all(progress: Callable[[int, int], None] | None = None) -> int:
    """Compile or load every declared kernel; return how many signatures had to be compiled.

    progress: called with (kernels ready, kernels in all) before each one and at the end. Call this from
    one place, before threads run kernels: compiling holds Python's lock for seconds. From then on a call
    with other types than were declared converts or fails; it cannot compile in the middle of a run.
    """
    compiled = 0
    with _compiling:
        for ready, (dispatcher, signature) in enumerate(_declared):
            if progress is not None:
                progress(ready, len(_declared))
            before = _misses(dispatcher)
            dispatcher.disable_compile(False)
            dispatcher.compile(signature)
            compiled += _misses(dispatcher) - before
        for dispatcher, _ in _declared:
            dispatcher.disable_compile()
        if progress is not None:
            progress(len(_declared), len(_declared))
    return compiled


def declared_names() -> Iterable[str]:
    """Return the names of all declared kernels, as module.function."""
    return tuple(f"{d.py_func.__module__}.{d.py_func.__name__}" for d, _ in _declared)


def require_platform() -> str | None:
    """Return why this platform cannot run the kernels, or None: Linux with glibc on x86-64 or aarch64."""
    import platform

    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc" or platform.machine() not in ("x86_64", "aarch64"):
        found = f"{platform.system()} {platform.machine()} {platform.libc_ver()[0] or 'without glibc'}"
        return f"this is {found}; tidegauge runs on Linux with glibc, on x86_64 or aarch64"
    return None


def _misses(dispatcher: Any) -> int:
    return sum(dispatcher.stats.cache_misses.values())
