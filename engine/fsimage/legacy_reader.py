"""Legacy bytes one value at a time, in plain Python: headers, what follows the inodes, and the slow strategies."""

from __future__ import annotations

from dataclasses import dataclass


class LegacyError(Exception):
    """Bytes that do not decode; whoever knows the file turns it into an ImageDamaged."""

    def __init__(self, offset: int, found: str, allowed: str) -> None:
        super().__init__(f"byte {offset}: {found}, allowed {allowed}")
        self.offset, self.found, self.allowed = offset, found, allowed


@dataclass(slots=True)
class LegacyReader:
    """A position in the data. Every read checks that its bytes are there, and raises LegacyError where not."""

    data: memoryview
    at: int = 0

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes."""
        left = len(self.data) - self.at
        if count < 0 or count > left:
            raise LegacyError(self.at, f"a value of {count:,} bytes", f"{left:,}; the file may have been cut")
        self.at += count
        return self.data[self.at - count : self.at]

    def u8(self) -> int:
        """Return the next byte."""
        return self.take(1)[0]

    def i16(self) -> int:
        """Return a signed short."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def u16(self) -> int:
        """Return an unsigned short."""
        return int.from_bytes(self.take(2), "big")

    def i32(self) -> int:
        """Return an int."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def i64(self) -> int:
        """Return a long."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def count(self, smallest: int, what: str) -> int:
        """Return an int that counts things of `smallest` bytes or more each, which must fit in what is left."""
        at, number = self.at, self.i32()
        most = (len(self.data) - self.at) // smallest
        if not 0 <= number <= most:
            raise LegacyError(at, f"{number:,} {what}", f"0 to {most:,}")
        return number

    def vlong(self) -> int:
        """Return a number in Hadoop's variable length: -112 to 127 in one byte, else sign and size first."""
        first = int.from_bytes(self.take(1), "big", signed=True)
        if first >= -112:
            return first
        is_negative = first < -120
        value = int.from_bytes(self.take(-120 - first if is_negative else -112 - first), "big")
        return ~value if is_negative else value

    def utf8(self) -> memoryview:
        """Return the bytes of a UTF8: a short length, then they."""
        return self.take(self.u16())

    def text(self) -> str:
        """Return a Text: a variable length, then UTF-8; other bytes show as escapes."""
        return str(self.text_bytes(), "utf-8", "backslashreplace")

    def text_bytes(self) -> memoryview:
        """Return a Text's bytes."""
        return self.take(self.vlong())
