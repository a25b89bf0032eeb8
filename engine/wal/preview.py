"""Payload bytes as one short piece of text: whatever they are, nothing of them reaches a terminal raw."""

from __future__ import annotations

SHOWN_BYTES = 32


def preview(payload: bytes, shown: int = SHOWN_BYTES) -> str:
    r"""Return a payload quoted with escapes (`'put a=1\n'`), or as hex where most of it is not text; cut to `shown`."""
    start = payload[:shown]
    more = "" if len(payload) <= shown else "..."
    text_like = sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in start)
    if text_like * 2 >= len(start):
        return repr(start)[1:] + more
    return f"hex {start.hex()}{more}"
