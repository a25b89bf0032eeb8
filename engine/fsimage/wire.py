"""Protocol Buffers wire format for small messages, in plain Python: bounds-checked, and lenient about unknown fields.

A message is a run of fields, each a tag (field number << 3 | wire type) and a value: 0 varint, 1 eight bytes,
2 length and bytes, 5 four bytes. Sections hold delimited messages: a varint length, then the message. The inode and
directory sections, which are big, have kernels instead. Source: Protocol Buffers encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MAX_VARINT_BYTES = 10


class WireError(Exception):
    """Bytes that do not decode; whoever knows path and section turns it into an ImageDamaged."""

    def __init__(self, offset: int, found: str, allowed: str) -> None:
        super().__init__(f"byte {offset}: {found}, allowed {allowed}")
        self.offset, self.found, self.allowed = offset, found, allowed


@dataclass(frozen=True, slots=True)
class Message:
    """One decoded message: values by field number, in the order they stood. `start` is its first byte's offset."""

    values: dict[int, list[int | memoryview]]
    start: int

    def number(self, field: int, default: int = 0) -> int:
        """Return a varint or fixed field's last value, as unsigned; `default` where it is absent."""
        found = self.values.get(field)
        if not found:
            return default
        if not isinstance(found[-1], int):
            raise WireError(self.start, f"bytes in field {field}", "a number")
        return found[-1]

    def signed(self, field: int, default: int = 0) -> int:
        """Return an int64 that was written as its unsigned twin."""
        value = self.number(field, default & 0xFFFFFFFFFFFFFFFF)
        return value - (1 << 64) if value >= 1 << 63 else value

    def optional(self, field: int) -> int | None:
        """Return a number, or None where the field is absent."""
        return self.number(field) if field in self.values else None

    def data(self, field: int) -> memoryview:
        """Return a length-delimited field's last value; empty where it is absent."""
        found = self.values.get(field)
        if not found:
            return memoryview(b"")
        if isinstance(found[-1], int):
            raise WireError(self.start, f"a number in field {field}", "bytes")
        return found[-1]

    def text(self, field: int) -> str:
        """Return a string field; bytes that are no UTF-8 show as escapes."""
        return str(self.data(field), "utf-8", "backslashreplace")

    def messages(self, field: int) -> Iterator[Message]:
        """Yield a repeated field's values as messages. Their offsets count from their own start."""
        for value in self.values.get(field, ()):
            if isinstance(value, int):
                raise WireError(self.start, f"a number in field {field}", "a message")
            yield decode(value, 0, len(value))

    def numbers(self, field: int) -> Iterator[int]:
        """Yield a repeated varint field's values, packed or not."""
        for value in self.values.get(field, ()):
            if isinstance(value, int):
                yield value
            else:
                at = 0
                while at < len(value):
                    number, at = read_uvarint(value, at, len(value))
                    yield number


def read_uvarint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return the varint at `at` and the offset behind it. Raises WireError where it is cut or over 64 bits."""
    value = 0
    for index in range(MAX_VARINT_BYTES):
        if at + index >= end:
            raise WireError(at, "a number cut short", "more bytes")
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >> 64:
                break
            return value, at + index + 1
    raise WireError(at, "a number over 64 bits", "64 bits")


def read_delimited(data: memoryview, at: int, end: int) -> tuple[Message, int]:
    """Return the delimited message at `at` and the offset behind it."""
    length, start = read_uvarint(data, at, end)
    if length > end - start:
        raise WireError(at, f"a message of {length:,} bytes", f"{end - start:,}")
    return decode(data, start, start + length), start + length


def decode(data: memoryview, start: int, end: int) -> Message:
    """Decode the message data[start:end]. Raises WireError with the offset where it stops making sense."""
    values: dict[int, list[int | memoryview]] = {}
    at = start
    while at < end:
        tag, after = read_uvarint(data, at, end)
        wire, number = tag & 7, tag >> 3
        if number == 0:
            raise WireError(at, "field number 0", "1 or more")
        value: int | memoryview
        if wire == 0:
            value, after = read_uvarint(data, after, end)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if end - after < size:
                raise WireError(at, f"{end - after} bytes of field {number}", f"{size}")
            value, after = int.from_bytes(data[after : after + size], "little"), after + size
        elif wire == 2:
            length, after = read_uvarint(data, after, end)
            if length > end - after:
                raise WireError(at, f"field {number} of {length:,} bytes", f"{end - after:,}")
            value, after = data[after : after + length], after + length
        else:
            raise WireError(at, f"wire type {wire}", "0, 1, 2 or 5")
        values.setdefault(number, []).append(value)
        at = after
    return Message(values, start)
