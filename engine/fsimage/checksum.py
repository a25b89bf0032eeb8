"""The MD5 beside an image: `fsimage_42.md5` holds `<32 hex digits> *fsimage_42`.

Hashing 2.5 GB takes about as long as loading it, so it runs on a thread of its own, beside the load (HDFS-13694),
and may end later.
"""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from engine.errors import FileTrouble
from engine.fsimage.columns import U8
from engine.measure.clock import Clock
from engine.units import Nanoseconds

STEP = 4 << 20  # bytes hashed between two looks at the stop flag
_SIDECAR = re.compile(r"\s*([0-9a-fA-F]{32})[ \t]+[* ]?(.*?)\s*")
_MAX_SIDECAR = 4096


@dataclass(frozen=True, slots=True)
class ChecksumResult:
    """What the check found: `expected` is None without a sidecar; `problem` is "" where all is well."""

    expected: str | None
    actual: str | None
    elapsed: Nanoseconds
    problem: str

    @property
    def is_match(self) -> bool:
        """Whether a sidecar is there and agrees."""
        return self.expected is not None and self.expected == self.actual


def sidecar_of(path: Path) -> Path:
    """Return the path of an image's MD5 file."""
    return path.with_name(path.name + ".md5")


def read_sidecar(path: Path) -> str | None:
    """Return the MD5 that the sidecar of an image states, in lower case; None where there is no sidecar.

    Raises FileTrouble, or ValueError where the sidecar does not read as one.
    """
    sidecar = sidecar_of(path)
    try:
        with sidecar.open("rb") as file:
            text = file.read(_MAX_SIDECAR).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileTrouble(sidecar, "read it", error) from error
    match = _SIDECAR.fullmatch(text.partition("\n")[0])
    if match is None:
        raise ValueError("the .md5 file does not start with 32 hex digits and a name")
    return match[1].lower()


class ChecksumThread(threading.Thread):
    """Hash `data` beside whatever else happens. One owner starts it, may stop it, and asks for the result."""

    def __init__(self, path: Path, data: U8, clock: Clock) -> None:
        super().__init__(name="fsimage-md5", daemon=True)
        self.hashed_bytes = 0  # written by this thread, read by anyone
        self._path, self._data, self._clock = path, data, clock
        self._stop_asked = threading.Event()
        self._result: ChecksumResult | None = None

    def run(self) -> None:
        """Read the sidecar, hash piece by piece, compare."""
        begin = self._clock.monotonic_ns()
        expected, actual, problem = None, None, ""
        try:
            expected = read_sidecar(self._path)
        except (FileTrouble, ValueError) as error:
            problem = str(error)
        if expected is not None:
            digest = hashlib.md5(usedforsecurity=False)
            for at in range(0, self._data.size, STEP):
                if self._stop_asked.is_set():
                    break
                digest.update(self._data[at : at + STEP].data)
                self.hashed_bytes = min(at + STEP, int(self._data.size))
            else:
                actual = digest.hexdigest()
                if actual != expected:
                    problem = f"MD5 is {actual}, the .md5 file says {expected}"
        self._result = ChecksumResult(expected, actual, Nanoseconds(self._clock.monotonic_ns() - begin), problem)

    def stop(self) -> None:
        """Ask it to end early; `result` then says nothing about the bytes."""
        self._stop_asked.set()

    def result(self, timeout: float | None = None) -> ChecksumResult | None:
        """Wait for the end, at most `timeout` seconds; return None where it still runs."""
        self.join(timeout)
        return self._result
