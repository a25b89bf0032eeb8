"""Keeping compiled kernels: numba's cache, less trusting and less demanding.

Numba loads what lies in a cache file, and fails where it cannot read or write one. A file that a power cut left short
would then end every later run, and one with a flipped bit would run as machine code. So each file of code is kept
behind a checksum; what is missing, short or changed is compiled anew; and a kernel that cannot be kept, for want of
space, serves this process all the same.

    offset  size  field
         0    16  BLAKE2b of the rest
        16     n  what numba keeps of one compiled function
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

_DIGEST_BYTES = 16


class KernelCache(FunctionCache):  # type: ignore[misc]  # numba publishes no types
    """The cache of one function; set as its dispatcher's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFile(
            cache_path=self._cache_path, filename_base=self._impl.filename_base, source_stamp=stamp
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function that was kept, or None."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function where that can be done: a full disk costs the next run the time, not this one."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one function: an index, and a file of code for each signature."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except Exception:  # noqa: BLE001 - a damaged pickle raises anything; the index is written anew
            return {}

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(_digest(content) + content)

    def _load_data(self, name: str) -> Any:
        kept = Path(self._data_path(name)).read_bytes()
        if _digest(kept[_DIGEST_BYTES:]) != kept[:_DIGEST_BYTES]:
            raise OSError(f"{name} is not what was written")  # which `load` takes as it takes a missing file
        return pickle.loads(kept[_DIGEST_BYTES:])


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
