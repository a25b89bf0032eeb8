"""What can be wrong with an image, each with the place where it shows."""

from __future__ import annotations

from pathlib import Path

from engine.errors import TidegaugeError, printable


class ImageError(TidegaugeError):
    """Any trouble with the bytes of an image."""


class NotAnImage(ImageError):
    """A file that starts like no image of any layout."""

    def __init__(self, *, path: Path, found: str) -> None:
        super().__init__(
            f"{printable(str(path))}: not an fsimage: it starts with {found}; "
            "allowed is HDFSIMG1, or a layout version from -1 to -51"
        )
        self.path = path


class ImageDamaged(ImageError):
    """Bytes that no image can hold: what was found where, and what is allowed there.

    `offset` counts from the start of the section, after decompression; in a legacy image, from the start of the file.
    """

    def __init__(self, *, path: Path, section: str, offset: int, found: str, allowed: str) -> None:
        where = f"{printable(section)} section" if section else "record"
        super().__init__(f"{printable(path.name)}: {where}, byte {offset:,}: {printable(found)}, allowed {allowed}")
        self.path, self.section, self.offset = path, section, offset


class CodecMissing(ImageError):
    """A compression that nothing here can undo."""

    def __init__(self, *, path: Path, codec: str) -> None:
        shown = printable(codec)[:120]
        super().__init__(
            f"{printable(path.name)}: compressed by {shown}; "
            "readable are Default, Deflate, Gzip, BZip2, Lz4, Snappy and ZStandard"
        )
        self.path, self.codec = path, codec


class LoadCancelled(ImageError):
    """The caller asked the load to stop."""

    def __init__(self) -> None:
        super().__init__("the load was cancelled")
