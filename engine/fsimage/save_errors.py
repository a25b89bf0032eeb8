"""Why an image is not saved."""

from __future__ import annotations

from engine.errors import TidegaugeError, printable


class SaveCancelled(TidegaugeError):
    """The caller asked the save to stop; nothing is left of it."""

    def __init__(self) -> None:
        super().__init__("the save was cancelled")


class CannotSave(TidegaugeError):
    """The layout that was asked for cannot hold what the namespace has."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"cannot save as {printable(what)}: {why}")
        self.what, self.why = what, why
