"""Writes small legacy images of any layout up to -42: the layouts' description, once more, from the writing side."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from engine.fsimage.columns import Kind
from engine.fsimage.legacy_layout import Feature, features_of

OWNER = (b"hdfs", b"supergroup", 0o755)
_COMPRESS = {"Default": zlib.compress, "Gzip": gzip.compress, "BZip2": bz2.compress}


@dataclass
class Dir:
    path: bytes
    owner: tuple[bytes, bytes, int] = OWNER
    quota: tuple[int, int] = (-1, -1)
    kind = Kind.DIRECTORY


@dataclass
class File:
    path: bytes
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    replication: int = 3
    owner: tuple[bytes, bytes, int] = OWNER
    kind = Kind.FILE


@dataclass
class Link:
    path: bytes
    target: bytes = b""
    owner: tuple[bytes, bytes, int] = OWNER
    kind = Kind.SYMLINK


ROOT = Dir(b"", quota=(2147483647, -1))


def utf8(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def text(data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([len(data)]) + data


def owner_bytes(owner: tuple[bytes, bytes, int]) -> bytes:
    return text(owner[0]) + text(owner[1]) + struct.pack(">H", owner[2])


def record(node: Dir | File | Link, features: Feature, number: int) -> bytes:
    out = struct.pack(">q", 16385 + number) if features & Feature.INODE_ID else b""
    out += struct.pack(">h", node.replication if isinstance(node, File) else 0)
    out += struct.pack(">q", 1_000_000 + number) if features & Feature.MTIME else b""
    out += struct.pack(">q", 0) if features & Feature.ATIME else b""
    out += struct.pack(">q", 1 << 26) if features & Feature.BLOCK_SIZE else b""
    if isinstance(node, File):
        out += struct.pack(">i", len(node.blocks))
        for block_id, length, generation in node.blocks:
            out += struct.pack(">qq", block_id, length)
            out += struct.pack(">q", generation) if features & Feature.GENERATION else b""
    elif isinstance(node, Dir):
        out += struct.pack(">i", -1)
        out += struct.pack(">q", node.quota[0]) if features & Feature.NAMESPACE_QUOTA else b""
        out += struct.pack(">q", node.quota[1]) if features & Feature.SPACE_QUOTA else b""
    else:
        out += struct.pack(">i", -2) + text(node.target)
    return out + (owner_bytes(node.owner) if features & Feature.PERMISSION else b"")


def write_legacy(
    path: Path,
    version: int,
    tree: list[Dir | File | Link],
    *,
    codec: str = "",
    open_files: list[tuple[bytes, bytes, bytes]] | None = None,
) -> Path:
    """Write an image of `tree`, parents before children; return its path."""
    features = features_of(version)
    head = struct.pack(">i", version)
    head += struct.pack(">i", 0) if features & Feature.LAYOUT_FLAGS else b""
    head += struct.pack(">i", 42) if features & Feature.NAMESPACE_ID else b""
    head += struct.pack(">q" if features & Feature.LONG_COUNT else ">i", len(tree))
    head += struct.pack(">q", 1000) if features & Feature.LAST_GENERATION else b""
    head += struct.pack(">qqq", 1001, 0, 1 << 30) if features & Feature.BLOCK_IDS else b""
    head += struct.pack(">q", 77) if features & Feature.TXID else b""
    head += struct.pack(">q", 16385 + len(tree)) if features & Feature.INODE_ID else b""
    if features & Feature.COMPRESSION:
        name = f"org.apache.hadoop.io.compress.{codec}Codec".encode()
        head += b"\x01" + text(name) if codec else b"\x00"
    body = b""
    if features & Feature.LOCAL_NAMES:
        numbered = {node.path: (number, node) for number, node in enumerate(tree)}
        body += utf8(b"") + record(tree[0], features, 0)
        for parent in tree:
            children = [n for n in tree[1:] if n.path.rpartition(b"/")[0] == parent.path]
            if children:
                body += utf8(parent.path or b"/") + struct.pack(">i", len(children))
                for child in children:
                    number, node = numbered[child.path]
                    body += utf8(child.path.rpartition(b"/")[2]) + record(node, features, number)
    else:
        for number, node in enumerate(tree):
            body += utf8(node.path) + record(node, features, number)
    if features & Feature.OPEN_FILES:
        body += struct.pack(">i", len(open_files or []))
        for name, client, machine in open_files or []:
            body += utf8(name) + (struct.pack(">q", 1) if features & Feature.INODE_ID else b"")
            body += struct.pack(">hqqi", 3, 1, 1 << 26, 0) + owner_bytes(OWNER) + utf8(client) + utf8(machine)
            body += struct.pack(">i", 0)
    elif version <= -3:
        body += struct.pack(">i", 0)  # datanodes
    if features & Feature.TOKENS:
        body += struct.pack(">iiii", 1, 0, 0, 0)
    path.write_bytes(head + (_COMPRESS[codec](body) if codec else body))
    return path
