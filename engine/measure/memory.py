"""How much memory of its own this process holds: anonymous pages in RAM, what no file could give back."""

from __future__ import annotations

from pathlib import Path

from engine.units import Bytes

_STATUS = Path("/proc/self/status")
_FIELD = "RssAnon:"


def anonymous_bytes() -> Bytes:
    """Return the process's anonymous resident bytes; mapped files are not among them. 0 where the kernel is silent."""
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(_FIELD):
            return Bytes(int(line.split()[1]) << 10)
    return Bytes(0)
