"""A protobuf image from parts: small sections as bytes, INODE and INODE_DIR as pieces that kernels write.

    HDFSIMG1  NS_INFO  ERASURE_CODING  INODE  INODE_DIR  FILES_UNDERCONSTRUCTION  SNAPSHOT  [SNAPSHOT_DIFF]
    INODE_REFERENCE  SECRET_MANAGER  CACHE_MANAGER  STRING_TABLE  FileSummary

A piece is some thousand messages; pieces are written on all threads and leave in order (save_pipeline). A *part* is
what an index entry `INODE_SUB` names: with a codec each part is a stream of its own, and parts are compressed on all
threads (HDFS-17573). Who makes the pieces does not show here: a namespace (save), or a plan of one (synth).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine.fsimage.columns import U8, Namespace
from engine.fsimage.container import MAGIC, SPLIT_SECTIONS, Section
from engine.fsimage.save_codecs import Compressor, compress, compressor
from engine.fsimage.save_directories import DirectoryWriter, make_directory_writer
from engine.fsimage.save_errors import SaveCancelled
from engine.fsimage.save_inodes import InodeWriter, sparse_arrays
from engine.fsimage.save_output import ImageOutput
from engine.fsimage.save_pipeline import Pipeline, Slot
from engine.fsimage.save_sections import (
    EMPTY_POLICIES,
    EMPTY_SNAPSHOTS,
    cache_section,
    inode_header,
    namespace_section,
    open_files_section,
    secret_section,
    string_section,
    summary,
)
from engine.measure.phases import Phase

INODE, INODE_DIR = "INODE", "INODE_DIR"
PIECE_ROWS, PIECE_DIRECTORY_ROWS = 1 << 14, 1 << 16
_MOST_ROOM = 64 << 20  # bytes a piece may need; a single row may need more
_POLICIES_SINCE = -64


@dataclass(frozen=True, slots=True)
class Piece:
    """Some messages: `write` puts them at the end of an array of `room` bytes and returns where they begin."""

    rows: int
    room: int
    write: Callable[[U8], int]


Part = Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Parts:
    """All that an image is made of. `after` stands behind INODE_DIR, in that order."""

    layout_version: int
    codec: str  # class name, or ""
    is_split: bool  # index the parts as *_SUB sections
    before: Sequence[tuple[str, bytes | memoryview]]
    inode_head: bytes
    inodes: Sequence[Part]
    directories: Sequence[Part]
    after: Sequence[tuple[str, bytes | memoryview]]


def parts_of(namespace: Namespace, *, layout_version: int, codec: str, sub_sections: int) -> Parts:
    """Cut a namespace into pieces.

    sub_sections: how many parts INODE and INODE_DIR get; 0 for none of their own. A NameNode cuts the same way: INODE
    by inodes, INODE_DIR by children, behind the entry that fills a part.
    """
    rows = namespace.rows
    inodes = InodeWriter(namespace, sparse_arrays(namespace.sparse), layout_version)
    directories = make_directory_writer(namespace)
    each = max(-(-rows // max(sub_sections, 1)), 1)
    inode_cuts = [*range(0, rows, each), rows]
    child_start = namespace.tree.child_start
    directory_cuts = [0]
    while sub_sections > 1 and int(child_start[directory_cuts[-1]]) + each < int(child_start[rows]):
        filled = int(np.searchsorted(child_start, child_start[directory_cuts[-1]] + np.int32(each)))
        directory_cuts.append(filled)
    if directory_cuts[-1] < rows:
        directory_cuts.append(rows)
    raw = namespace.extras.raw
    header = namespace.header
    last_id = header.last_inode_id or int(namespace.inodes.inode_id.max(initial=0))
    before: list[tuple[str, bytes | memoryview]] = [("NS_INFO", namespace_section(header, layout_version))]
    if layout_version <= _POLICIES_SINCE:
        before.append(("ERASURE_CODING", raw.get("ERASURE_CODING", EMPTY_POLICIES)))
    after: list[tuple[str, bytes | memoryview]] = [
        ("FILES_UNDERCONSTRUCTION", open_files_section(namespace)),
        ("SNAPSHOT", raw.get("SNAPSHOT", EMPTY_SNAPSHOTS)),
    ]
    if "SNAPSHOT_DIFF" in raw:
        after.append(("SNAPSHOT_DIFF", raw["SNAPSHOT_DIFF"]))
    after += [
        ("INODE_REFERENCE", raw.get("INODE_REFERENCE", b"")),
        ("SECRET_MANAGER", secret_section(namespace)),
        ("CACHE_MANAGER", raw["CACHE_MANAGER"] if "CACHE_MANAGER" in raw else cache_section(namespace)),
        ("STRING_TABLE", raw["STRING_TABLE"] if "STRING_TABLE" in raw else string_section(namespace.strings)),
    ]
    return Parts(
        layout_version=layout_version,
        codec=codec,
        is_split=sub_sections > 0,
        before=before,
        inode_head=inode_header(last_id, rows),
        inodes=[_cut(inodes, start, end, PIECE_ROWS) for start, end in pairwise(inode_cuts)],
        directories=[_cut(directories, start, end, PIECE_DIRECTORY_ROWS) for start, end in pairwise(directory_cuts)],
        after=after,
    )


def _cut(writer: InodeWriter | DirectoryWriter, start: int, end: int, step: int) -> list[Piece]:
    pieces: list[Piece] = []
    at = start
    while at < end:
        count = min(step, end - at)
        room = writer.room(at, at + count)
        while room > _MOST_ROOM and count > 1:
            count //= 2
            room = writer.room(at, at + count)
        pieces.append(Piece(count, room, _bound(writer, at, at + count)))
        at += count
    return pieces


def _bound(writer: InodeWriter | DirectoryWriter, start: int, end: int) -> Callable[[U8], int]:
    return lambda out: writer.write(out, start, end)


@dataclass(slots=True)
class ProtobufSaver:
    """Writes one image. `sections` grows as they are written."""

    output: ImageOutput
    parts: Parts
    threads: int
    cancel: threading.Event
    sections: list[Section]

    def write(self, saving: Phase, rows: int) -> None:
        """Write everything, as steps of `saving`. Raises SaveCancelled; OSError where the file refuses."""
        parts = self.parts
        self.output.write(MAGIC)
        for name, raw in parts.before:
            self._small(name, raw)
        with saving.phase("Inodes", total=rows) as step:
            self._big(INODE, parts.inode_head, parts.inodes, step)
        with saving.phase("directory entries", total=rows) as step:
            self._big(INODE_DIR, b"", parts.directories, step)
        for name, raw in parts.after:
            self._small(name, raw)
        self.output.write(summary(parts.layout_version, parts.codec, self.sections))

    def _small(self, name: str, raw: bytes | memoryview) -> None:
        start = self.output.offset
        self.output.write(compress(self.parts.codec, raw))
        length = self.output.offset - start
        if self.parts.is_split and len(raw) and name in SPLIT_SECTIONS and name != "INODE_REFERENCE":
            self.sections.append(Section(f"{name}_SUB", start, length))
        self.sections.append(Section(name, start, length))

    def _big(self, name: str, head: bytes, parts: Sequence[Part], step: Phase) -> None:
        start = self.output.offset
        write = self._streams if self.parts.codec and len(parts) > 1 else self._pieces
        subs = write(head, parts or [[]], step)
        at = start
        for length in subs:
            if self.parts.is_split and length:
                self.sections.append(Section(f"{name}_SUB", at, length))
            at += length
        self.sections.append(Section(name, start, at - start))

    def _pieces(self, head: bytes, parts: Sequence[Part], step: Phase) -> list[int]:
        """Write pieces one by one; compress here, where there is one stream and so one order."""
        jobs = [self._piece_job(piece) for part in parts for piece in part]
        lengths, index = [], 0
        with Pipeline(jobs, threads=self.threads, cancel=self.cancel) as pipeline:
            for number, part in enumerate(parts):
                start = self.output.offset
                stream = compressor(self.parts.codec) if self.parts.codec else None
                if number == 0:
                    self.output.write(head if stream is None else stream.feed(head))
                for piece in part:
                    slot, view = pipeline.result(index)
                    index += 1
                    if stream is None:
                        self.output.write(view, slot.release)
                    else:
                        self.output.write(stream.feed(view))
                        slot.release()
                    step.advance(piece.rows, read=len(view))
                if stream is not None:
                    self.output.write(stream.finish())
                lengths.append(self.output.offset - start)
        return lengths

    def _streams(self, head: bytes, parts: Sequence[Part], step: Phase) -> list[int]:
        """Write parts one by one, each compressed by the thread that made it."""
        jobs = [self._part_job(head if number == 0 else b"", part) for number, part in enumerate(parts)]
        lengths = []
        with Pipeline(jobs, threads=self.threads, cancel=self.cancel) as pipeline:
            for index, part in enumerate(parts):
                slot, (compressed, raw) = pipeline.result(index)
                slot.release()
                start = self.output.offset
                for piece in compressed:
                    self.output.write(piece)
                lengths.append(self.output.offset - start)
                step.advance(sum(piece.rows for piece in part), read=raw)
        return lengths

    def _piece_job(self, piece: Piece) -> Callable[[Slot], memoryview]:
        return lambda slot: fill(piece, slot)

    def _part_job(self, head: bytes, part: Part) -> Callable[[Slot], tuple[list[bytes], int]]:
        def run(slot: Slot) -> tuple[list[bytes], int]:
            stream: Compressor = compressor(self.parts.codec)
            out, raw = [stream.feed(head)], len(head)
            for piece in part:
                if self.cancel.is_set():
                    raise SaveCancelled
                view = fill(piece, slot)
                raw += len(view)
                out.append(stream.feed(view))
            return [*out, stream.finish()], raw

        return run


def fill(piece: Piece, slot: Slot) -> memoryview:
    """Write a piece into its slot's buffer; return the bytes."""
    buffer = slot.memory.get("buffer")
    if not isinstance(buffer, np.ndarray) or buffer.size < piece.room:
        buffer = slot.memory["buffer"] = np.empty(piece.room, np.uint8)
    out = buffer[: piece.room]
    at = piece.write(out)
    if at < 0:
        raise AssertionError("a piece needs more room than was counted")  # a mistake of ours, not of the image
    return out[at:].data
