"""Which kind of image a file is, and where its sections lie. The first bytes decide, never the file's name.

Protobuf (layout -52 and on, Hadoop 2.4 and later):

    "HDFSIMG1"  sections ...  FileSummary, delimited  BE32 bytes of that

The summary lists sections by name, absolute offset and length, in any order: STRING_TABLE is last in the file and
needed first. `*_SUB` entries name parts of INODE, INODE_DIR, INODE_REFERENCE and SNAPSHOT_DIFF, which tile their
parent; with a codec every section, or every part of it, is a stream of its own.

Legacy (-1 to -51): the layout version as BE32, then a header and records without any index.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.fsimage.codecs import CodecError, Tick, decompress, is_known
from engine.fsimage.columns import U8
from engine.fsimage.errors import CodecMissing, ImageDamaged, NotAnImage
from engine.fsimage.wire import WireError, read_delimited
from engine.storage.mapping import map_file

MAGIC = b"HDFSIMG1"
FIRST_PROTOBUF = -52
ON_DISK_VERSION = 1
SUMMARY = "FileSummary"
_MAX_SUMMARY = 64 << 20

SPLIT_SECTIONS = ("INODE", "INODE_DIR", "INODE_REFERENCE", "SNAPSHOT_DIFF")  # those that may have parts
KNOWN_SECTIONS = (
    "NS_INFO",
    "STRING_TABLE",
    "EXTENDED_ACL",
    "ERASURE_CODING",
    "SNAPSHOT",
    "FILES_UNDERCONSTRUCTION",
    "SECRET_MANAGER",
    "CACHE_MANAGER",
    *SPLIT_SECTIONS,
    *(f"{name}_SUB" for name in SPLIT_SECTIONS),
)


@dataclass(frozen=True, slots=True)
class Section:
    """A named byte range of the file, as stored (compressed where the image has a codec)."""

    name: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Container:
    """An image's bytes and outline. `data` is mapped and read-only; a legacy image has no sections."""

    path: Path
    data: U8
    layout_version: int
    codec: str
    sections: tuple[Section, ...]
    is_protobuf: bool

    def find(self, name: str) -> Section | None:
        """Return the section of that name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def parts(self, name: str) -> tuple[Section, ...]:
        """Return the parts that tile a section, in file order: its `_SUB` entries, or the section alone.

        Entries that leave a gap or overlap are not to be trusted: the section is then taken whole.
        """
        whole = self.find(name)
        if whole is None:
            return ()
        subs = sorted((s for s in self.sections if s.name == f"{name}_SUB"), key=lambda s: (s.offset, s.length))
        at = whole.offset
        for sub in subs:
            if sub.offset != at:
                return (whole,)
            at += sub.length
        return tuple(s for s in subs if s.length) if subs and at == whole.offset + whole.length else (whole,)

    def read(self, section: Section, tick: Tick = lambda consumed: None) -> U8:
        """Return a section's bytes, decompressed. Raises ImageDamaged."""
        stored = self.data[section.offset : section.offset + section.length]
        if not self.codec:
            return stored
        try:
            return decompress(self.codec, stored.data, tick)
        except CodecError as error:
            raise self.damage(f"{section.name} (compressed)", error.offset, error.found, error.allowed) from error

    def read_named(self, name: str) -> U8 | None:
        """Return the bytes of a section, or None where the image has none."""
        section = self.find(name)
        return None if section is None else self.read(section)

    def damage(self, section: str, offset: int, found: str, allowed: str) -> ImageDamaged:
        """Return the error for bytes of this image."""
        return ImageDamaged(path=self.path, section=section, offset=offset, found=found, allowed=allowed)


def open_container(path: Path) -> Container:
    """Map an image and read its outline: no inode is touched.

    Raises FileTrouble, NotAnImage, CodecMissing, or ImageDamaged where the outline contradicts the file.
    """
    data = map_file(path)
    head = data[:8].tobytes()
    if head == MAGIC:
        return _protobuf(path, data)
    version = int.from_bytes(head[:4], "big", signed=True) if len(head) >= 4 else 0
    if FIRST_PROTOBUF < version < 0:
        return Container(path, data, version, "", (), is_protobuf=False)
    shown = ascii(head.decode("latin-1")) if head else "nothing: the file is empty"
    raise NotAnImage(path=path, found=shown)


def _protobuf(path: Path, data: U8) -> Container:
    def damaged(offset: int, found: str, allowed: str) -> ImageDamaged:
        return ImageDamaged(path=path, section=SUMMARY, offset=offset, found=found, allowed=allowed)

    size = int(data.size)
    if size < len(MAGIC) + 4:
        raise damaged(0, f"a file of {size} bytes", f"{len(MAGIC) + 4} or more")
    length = int.from_bytes(data[-4:].tobytes(), "big")
    room = min(size - len(MAGIC) - 4, _MAX_SUMMARY)
    if not 0 < length <= room:
        raise damaged(0, f"a summary of {length:,} bytes", f"1 to {room:,}; the file may have been cut")
    start = size - 4 - length
    try:
        message, end = read_delimited(data[start : size - 4].data, 0, length)
        if end != length:
            raise WireError(end, f"{length - end} bytes behind the summary", "none")
        on_disk, version = message.number(1), message.number(2)
        codec = message.text(3)
        entries = [(m.text(1), m.number(3), m.number(2)) for m in message.messages(4)]
    except WireError as error:
        raise damaged(error.offset, error.found, error.allowed) from error
    if on_disk != ON_DISK_VERSION:
        raise damaged(0, f"on-disk version {on_disk}", f"{ON_DISK_VERSION}")
    layout = (version & 0xFFFFFFFF) - (1 << 32)
    if layout > FIRST_PROTOBUF:
        raise damaged(0, f"layout version {layout if version >> 31 else version}", f"{FIRST_PROTOBUF} or below")
    if codec and not is_known(codec):
        raise CodecMissing(path=path, codec=codec)
    sections = tuple(Section(name, offset, stored) for name, offset, stored in entries)
    seen: set[str] = set()
    for section in sections:
        if not len(MAGIC) <= section.offset <= start or section.length > start - section.offset:
            found = f"section {section.name[:40]!r} at {section.offset:,} of {section.length:,} bytes"
            raise damaged(0, found, f"between {len(MAGIC)} and {start:,}")
        if section.name in seen and not section.name.endswith("_SUB"):
            raise damaged(0, f"section {section.name[:40]!r} twice", "once")
        seen.add(section.name)
    return Container(path, data, layout, codec, sections, is_protobuf=True)


def freeze(data: bytes | bytearray) -> U8:
    """Return bytes as the read-only array that kernels take."""
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array
