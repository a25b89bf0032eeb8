"""Errors: one root whose text can be shown as it stands, and a class for each thing a caller does differently.

Text from outside is quoted with `quoted`: cut, and with control characters made visible, so that no file
or flag reaches the terminal raw.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

_QUOTED_LIMIT = 80


class TidegaugeError(Exception):
    """The root: its text says what, where and what is allowed, in one line."""


class BadValue(TidegaugeError):
    """A setting that cannot be used as it was given."""

    def __init__(self, *, what: str, given: str, allowed: str, example: str = "") -> None:
        hint = f"; for example {example}" if example else ""
        super().__init__(f"{what} {quoted(given)}: allowed is {allowed}{hint}")
        self.what, self.given, self.allowed = what, given, allowed


class UnknownChoice(BadValue):
    """A name that is none of a closed list; the text gives the nearest match."""

    def __init__(self, *, what: str, given: str, choices: Iterable[str]) -> None:
        known = tuple(choices)
        near = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.4)
        super().__init__(what=what, given=given, allowed=", ".join(known))
        if near:
            self.args = (f"{self.args[0]}; did you mean {near[0]}?",)


class FileTrouble(TidegaugeError):
    """The operating system refused something about a path."""

    def __init__(self, path: Path | str, doing: str, error: OSError) -> None:
        why = os.strerror(error.errno) if error.errno else str(error)
        super().__init__(f"{printable(str(path))}: cannot {doing}: {why}")
        self.path, self.errno = Path(path), error.errno


def error_text(code: int) -> str:
    """Return an errno in words and by name: `Input/output error (EIO)`."""
    return f"{os.strerror(code)} ({errno.errorcode.get(code, f'errno {code}')})"


def quoted(text: object) -> str:
    """Return outside text quoted, cut to a readable length, with nothing a terminal would act on."""
    whole = ascii(str(text)) if not str(text).isprintable() else repr(str(text))
    return whole if len(whole) <= _QUOTED_LIMIT else whole[: _QUOTED_LIMIT - 4] + "..." + whole[0]


def printable(text: str) -> str:
    """Return text with every control or unprintable character made visible as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
