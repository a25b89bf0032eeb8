"""Writes small protobuf images field by field, well-formed or not: what a test does not ask for is right."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = 16385
PERMISSION = 1 << 40 | 2 << 16 | 0o755
STRINGS = (b"hdfs", b"supergroup")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def delimited(message: bytes) -> bytes:
    return varint(len(message)) + message


def fixed64(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def directory(inode_id: int, name: bytes, extra: bytes = b"") -> bytes:
    body = field(1, 5) + field(2, -1) + field(3, -1) + fixed64(4, PERMISSION) + extra
    return field(1, 2) + field(2, inode_id) + field(3, name) + field(5, body)


def file(inode_id: int, name: bytes, blocks: Iterable[tuple[int, int, int]] = (), extra: bytes = b"") -> bytes:
    body = field(1, 3) + field(2, 5) + field(3, 6) + field(4, 1 << 27) + fixed64(5, PERMISSION)
    for block_id, generation, length in blocks:
        body += field(6, field(1, block_id) + field(2, generation) + field(3, length))
    return field(1, 1) + field(2, inode_id) + field(3, name) + field(4, body + extra)


def entry(parent: int, children: Sequence[int], references: Sequence[int] = ()) -> bytes:
    out = field(1, parent) + field(2, b"".join(map(varint, children)))
    return out + (field(3, b"".join(map(varint, references))) if references else b"")


def write_image(
    path: Path,
    inodes: Sequence[bytes],
    entries: Sequence[bytes],
    *,
    stated: int | None = None,
    layout: int = -67,
    codec: str = "",
    compress=lambda data: data,
    more: Sequence[tuple[bytes, bytes]] = (),
    replace: dict[bytes, bytes] | None = None,
    order=lambda sections: sections,
) -> Path:
    """Write an image. more: further sections; replace: sections' bytes instead of ours; order: of the summary."""
    count = len(inodes) if stated is None else stated
    strings = delimited(field(1, len(STRINGS)) + field(2, 0))
    strings += b"".join(delimited(field(1, k + 1) + field(2, text)) for k, text in enumerate(STRINGS))
    sections = {
        b"NS_INFO": delimited(field(1, 42) + field(6, 7)),
        b"INODE": delimited(field(1, 20000) + field(2, count)) + b"".join(map(delimited, inodes)),
        b"INODE_DIR": b"".join(map(delimited, entries)),
        b"STRING_TABLE": strings,
        **dict(more),
        **(replace or {}),
    }
    out, listed = b"HDFSIMG1", []
    for name, data in sections.items():
        stored = compress(data)
        listed.append(field(4, field(1, name) + field(2, len(stored)) + field(3, len(out))))
        out += stored
    head = field(1, 1) + field(2, layout & 0xFFFFFFFF) + (field(3, codec.encode()) if codec else b"")
    summary = delimited(head + b"".join(order(listed)))
    path.write_bytes(out + summary + struct.pack(">I", len(summary)))
    return path
