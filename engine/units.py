"""Units that cross rooms: their types, and reading and writing them as people do.

Sizes are binary (KiB, MiB, GiB) or decimal (kB, MB, GB), durations carry a unit (us, ms, s, m, h), counts
may end in k, M or G. A bare number is accepted only where its unit cannot be mistaken: 0, and counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import NewType

from engine.errors import BadValue

Nanoseconds = NewType("Nanoseconds", int)
Bytes = NewType("Bytes", int)
Txid = NewType("Txid", int)
Offset = NewType("Offset", int)
InodeRow = NewType("InodeRow", int)

SECOND = Nanoseconds(1_000_000_000)
KIB, MIB, GIB = Bytes(1 << 10), Bytes(1 << 20), Bytes(1 << 30)

_NUMBER = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*([a-zA-Zµ/]*)\s*")
_SIZES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_DURATIONS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def parse_size(text: str) -> Bytes:
    """Read a size such as `64MiB`. Raises BadValue with the units that are allowed."""
    return Bytes(_parse(text, "size", _SIZES, "64MiB"))


def parse_duration(text: str) -> Nanoseconds:
    """Read a duration such as `5s` or `1.5ms`. Raises BadValue with the units that are allowed."""
    return Nanoseconds(_parse(text, "duration", _DURATIONS, "5s"))


def parse_count(text: str) -> int:
    """Read a whole number such as `50` or `20M`. Raises BadValue."""
    return _parse(text, "count", _COUNTS, "20M")


def parse_rate(text: str) -> int:
    """Read a rate in operations (`5000`, `20k/s`) or bytes (`200MB/s`) per second. Raises BadValue."""
    return _parse(text.strip().removesuffix("/s"), "rate", {**_COUNTS, **_SIZES}, "20k/s")


def format_size(count: float) -> str:
    """Write bytes for a person: `512 B`, `1.5 KiB`, `64 MiB`."""
    for name, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= scale:
            return f"{_three_digits(count / scale)} {name}"
    return f"{count:.0f} B"


def format_duration(nanoseconds: float) -> str:
    """Write a duration for a person: `0 ns`, `85 us`, `1.25 ms`, `5 s`, `3 m 20 s`."""
    if abs(nanoseconds) >= 120e9:
        minutes, seconds = divmod(round(nanoseconds / 1e9), 60)
        return f"{minutes} m {seconds} s" if seconds else f"{minutes} m"
    for name, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= scale:
            return f"{_three_digits(nanoseconds / scale)} {name}"
    return f"{nanoseconds:.0f} ns"


def format_count(number: float) -> str:
    """Write a number in at most six characters: `0.12`, `950`, `8.41k`, `81.3k`, `1.02M`."""
    for name, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale:
            return f"{_three_digits(number / scale)}{name}"
    return _three_digits(number)


def _three_digits(value: float) -> str:
    size = abs(value)
    text = f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _parse(text: str, what: str, units: Mapping[str, int], example: str) -> int:
    match = _NUMBER.fullmatch(text)
    allowed = ", ".join(unit for unit in units if unit and unit != "µs")
    if match is None:
        raise BadValue(what=what, given=text, allowed=f"a number with a unit ({allowed})", example=example)
    digits, unit = match.groups()
    number = Decimal(digits.replace(",", "").replace("_", ""))  # exact: a float would round sizes beyond 2^53
    scale = units.get(unit)
    if scale is None:
        scale = {name.lower(): size for name, size in units.items()}.get(unit.lower()) if unit else None
    if scale is None:
        if number == 0 and not unit:
            return 0
        missing = f"the unit {unit!r} is not one of" if unit else "it needs a unit:"
        raise BadValue(what=what, given=text, allowed=f"a number with a unit ({missing} {allowed})", example=example)
    value = number * scale
    if value >= 1 << 62:
        raise BadValue(what=what, given=text, allowed="less than 2^62", example=example)
    return round(value)
