"""What an image says about itself, without loading it: header, sections, counts. Instant, whatever its size.

The first bytes of a section hold its counts, so only they are decompressed; no inode is read, and no kernel is loaded.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cramjam
import numpy as np

from engine.fsimage.checksum import read_sidecar
from engine.fsimage.codecs import codec_name
from engine.fsimage.container import Container, Section, open_container
from engine.fsimage.layout_names import layout_name
from engine.fsimage.legacy_layout import Feature, features_of
from engine.fsimage.legacy_reader import LegacyError, LegacyReader
from engine.fsimage.sections import read_header
from engine.fsimage.wire import Message, WireError, decode, read_uvarint

_HEAD = 4096  # raw bytes of a section that its counts stand in
_STREAM = 1 << 20  # compressed bytes that hold so many: bzip2 needs a whole block, 900 kB


@dataclass(frozen=True, slots=True)
class SectionLine:
    """One section: `stored` bytes of the file; how many parts its `_SUB` entries name."""

    name: str
    offset: int
    stored: int
    parts: int


@dataclass(frozen=True, slots=True)
class Outline:
    """An image's header and contents."""

    path: Path
    size_bytes: int
    layout_version: int
    layout: str  # by name
    is_protobuf: bool
    codec: str  # class name, "" for none
    md5: str | None  # as the .md5 file states it; nothing was hashed
    header: Mapping[str, int]
    counts: Mapping[str, int]
    sections: tuple[SectionLine, ...]
    has_full_paths: bool  # each inode with its whole path, uncompressed: what the object strategies load

    def to_json(self) -> dict[str, Any]:
        """Return the outline as one JSON object."""
        return {
            "schema": "tidegauge.image-info/1",
            "path": str(self.path),
            "image_bytes": self.size_bytes,
            "layout_version": self.layout_version,
            "layout": self.layout,
            "format": "protobuf" if self.is_protobuf else "legacy",
            "codec": self.codec,
            "md5": self.md5,
            "header": dict(self.header),
            "counts": dict(self.counts),
            "sections": [
                {"name": s.name, "offset": s.offset, "stored_bytes": s.stored, "parts": s.parts} for s in self.sections
            ],
        }


def read_outline(path: Path) -> Outline:
    """Read an image's outline. Raises FileTrouble, NotAnImage, CodecMissing or ImageDamaged."""
    container = open_container(path)
    try:
        md5 = read_sidecar(path)
    except ValueError:
        md5 = None
    header, counts, codec = _protobuf(container) if container.is_protobuf else _legacy(container)
    return Outline(
        path=path,
        size_bytes=int(container.data.size),
        layout_version=container.layout_version,
        layout=layout_name(container.layout_version),
        is_protobuf=container.is_protobuf,
        codec=codec,
        md5=md5,
        header={name: value for name, value in header.items() if value is not None},
        counts=counts,
        sections=tuple(
            SectionLine(s.name, s.offset, s.length, len(container.parts(s.name)))
            for s in sorted(container.sections, key=lambda s: s.offset)
            if not s.name.endswith("_SUB")
        ),
        has_full_paths=not (container.is_protobuf or codec)
        and not features_of(container.layout_version) & Feature.LOCAL_NAMES,
    )


def _protobuf(container: Container) -> tuple[dict[str, int | None], dict[str, int], str]:
    heads = {section.name: _first_message(container, section) for section in container.sections}
    inode = heads.get("INODE") or Message({}, 0)
    name_system = container.find("NS_INFO")
    if name_system is None:
        raise container.damage("NS_INFO", 0, "no such section in the image", "one")
    try:
        h = read_header(container, container.read(name_system).data, inode.number(2), inode.number(1))
        counts = {"inodes": inode.number(2)}
        for section, field, what in _COUNTS:
            message = heads.get(section)
            if message is not None:
                counts[what] = message.number(field)
        policies = heads.get("ERASURE_CODING")
        if policies is not None:
            counts["erasure coding policies"] = len(policies.values.get(1, ()))
    except WireError as error:
        raise container.damage("NS_INFO", error.offset, error.found, error.allowed) from error
    header = {
        "namespace id": h.namespace_id,
        "transaction id": h.txid,
        "last inode id": h.last_inode_id,
        "last block id": h.last_block_id,
        "last striped block id": h.last_striped_block_id,
        "generation stamp": h.generation_v2,
        "generation stamp v1": h.generation_v1,
        "rolling upgrade since": h.rolling_upgrade_start,
    }
    return header, counts, container.codec


_COUNTS = (
    ("SNAPSHOT", 3, "HDFS snapshots"),
    ("SECRET_MANAGER", 3, "delegation keys"),
    ("SECRET_MANAGER", 4, "delegation tokens"),
    ("CACHE_MANAGER", 2, "cache pools"),
    ("CACHE_MANAGER", 3, "cache directives"),
    ("STRING_TABLE", 1, "strings"),
)


def _first_message(container: Container, section: Section) -> Message | None:
    """Return the first message of a section, as far as its head holds it; None where there is none."""
    stored = container.data[section.offset : section.offset + section.length].data
    head = memoryview(first_bytes(container.codec, stored))
    try:
        length, start = read_uvarint(head, 0, len(head))
        return decode(head, start, start + length) if length <= len(head) - start else None
    except WireError:
        return None  # an empty section, or one that a load would complain about


def first_bytes(codec: str, stored: memoryview) -> bytes:
    """Return the first bytes behind a stream, _HEAD at most; b"" where it does not decompress."""
    data = stored[:_STREAM]
    if not codec:
        return bytes(data[:_HEAD])
    try:
        return _FIRST[codec_name(codec)](data)
    except (zlib.error, OSError, ValueError, EOFError, cramjam.DecompressionError):
        return b""


def _first_zstd(data: memoryview) -> bytes:
    out = np.zeros(_HEAD, np.uint8)
    try:
        return out[: cramjam.zstd.decompress_into(data, out.data)].tobytes()
    except cramjam.DecompressionError:  # there is more: the array is full
        return out.tobytes()


def _first_block(decode_chunk: Callable[[memoryview, int], Any]) -> Callable[[memoryview], bytes]:
    def first(data: memoryview) -> bytes:
        raw, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
        if not raw or raw > _STREAM or size > len(data) - 8:
            return b""
        return bytes(decode_chunk(data[8 : 8 + size], raw))[:_HEAD]

    return first


def _first_zlib(window: int) -> Callable[[memoryview], bytes]:
    return lambda data: zlib.decompressobj(window).decompress(data, _HEAD)


_FIRST: dict[str, Callable[[memoryview], bytes]] = {
    "default": _first_zlib(zlib.MAX_WBITS),
    "deflate": _first_zlib(zlib.MAX_WBITS),
    "gzip": _first_zlib(zlib.MAX_WBITS | 16),
    "bzip2": lambda data: bz2.BZ2Decompressor().decompress(data, _HEAD),
    "lz4": _first_block(lambda chunk, raw: cramjam.lz4.decompress_block(chunk, output_len=raw)),
    "snappy": _first_block(lambda chunk, raw: cramjam.snappy.decompress_raw(chunk)),
    "zstandard": _first_zstd,
    "zstd": _first_zstd,
}


def _legacy(container: Container) -> tuple[dict[str, int | None], dict[str, int], str]:
    features, reader = features_of(container.layout_version), LegacyReader(container.data[:_HEAD].data, 4)
    header: dict[str, int | None] = {}
    try:
        if features & Feature.LAYOUT_FLAGS:
            header["layout flags"] = reader.i32()
        if features & Feature.NAMESPACE_ID:
            header["namespace id"] = reader.i32()
        counts = {"inodes": reader.i64() if features & Feature.LONG_COUNT else reader.i32()}
        for feature, names in _LEGACY_FIELDS:
            if features & feature:
                header |= {name: reader.i64() for name in names}
        codec = ""
        if features & Feature.COMPRESSION and not features & Feature.SNAPSHOTS and reader.u8():
            codec = reader.text()
    except LegacyError as error:
        raise container.damage("", error.offset, error.found, error.allowed) from error
    return header, counts, codec


_LEGACY_FIELDS = (
    (Feature.LAST_GENERATION, ("generation stamp",)),
    (Feature.BLOCK_IDS, ("generation stamp v2", "first generation stamp v2", "last block id")),
    (Feature.TXID, ("transaction id",)),
    (Feature.INODE_ID, ("last inode id",)),
)
