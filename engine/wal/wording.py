"""Words that several reports about a log share."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return `1 record`, `9 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
