"""Make an image of any size, as a stream: a realistic tree that was never in memory.

    made = synthesise(Path("fsimage_0"), SynthOptions(inodes=20_000_000, layout="legacy"), clock=SystemClock())

The directories are planned (synth_plan: the distributions and their sources), then ranges of them are turned into
columns, written by the kernels that save a namespace, and forgotten. The same options give the same bytes, on any
number of threads and any machine. Memory: about 2 bytes an inode, and some buffers.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from engine.errors import BadValue, UnknownChoice
from engine.fsimage import inode_kernel as ik
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.columns import (
    MAX_ROWS,
    ROOT_ID,
    U8,
    UNSET_QUOTA,
    BlockColumns,
    Header,
    InodeColumns,
    Strings,
    make_block_columns,
    make_inode_columns,
)
from engine.fsimage.save import NEWEST_LEGACY, NEWEST_PROTOBUF, Layout, codec_class, finish, published
from engine.fsimage.save_errors import CannotSave
from engine.fsimage.save_inodes import BLOCK_ROOM, INODE_ROOM, put_inodes
from engine.fsimage.save_legacy import (
    LAYOUTS,
    buffer_of,
    header_bytes,
    text,
    texts_of,
    utf8,
)
from engine.fsimage.save_legacy_kernel import SINCE_ATIME, SINCE_SPACE_QUOTA, SLACK, Quotas
from engine.fsimage.save_output import ImageOutput
from engine.fsimage.save_pipeline import Pipeline, Slot
from engine.fsimage.save_protobuf import Part, Parts, Piece, ProtobufSaver
from engine.fsimage.save_sections import (
    EMPTY_CACHE,
    EMPTY_POLICIES,
    EMPTY_SECRETS,
    EMPTY_SNAPSHOTS,
    inode_header,
    namespace_section,
    string_section,
)
from engine.fsimage.synth_fill import (
    FIRST_BLOCK_ID,
    FIRST_GENERATION,
    GROUPS,
    LEGACY_ROOT_QUOTA,
    MOST_BLOCKS,
    MOST_NAME,
    NOW,
    OWNERS_BEFORE,
    ROOT_QUOTA,
    count_range,
    fill_range,
)
from engine.fsimage.synth_plan import FEWEST, Plan, plan_namespace
from engine.fsimage.synth_write import CHILD_ROOM, ENTRY_ROOM, MOST_PATH, put_plan_directories, put_plan_records
from engine.measure.clock import Clock
from engine.measure.phases import Phase, PhaseSnapshot, PhaseTree

_PIECE_ROWS = 1 << 14
_RECORD_ROOM = 2 + MOST_PATH + 64 + 64  # bytes of a legacy record without its blocks, at most
NAMESPACE_ID = 1234567


@dataclass(frozen=True, slots=True)
class SynthOptions:
    """What to make. sub_sections, codec: for protobuf; layout_version: -16 or -18, for legacy."""

    inodes: int
    layout: Layout = "protobuf"
    seed: int = 1
    codec: str = "none"
    sub_sections: int = 12
    layout_version: int | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Synthesised:
    """An image made, and what is in it."""

    path: Path
    size_bytes: int
    layout_version: int
    codec: str
    md5: str
    inodes: int
    files: int
    directories: int
    blocks: int
    content_bytes: int
    users: int
    phases: tuple[PhaseSnapshot, ...]


def synthesise(
    path: Path,
    options: SynthOptions,
    *,
    clock: Clock,
    threads: int = 2,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
) -> Synthesised:
    """Make an image with its MD5 beside it, atomically.

    Raises BadValue, UnknownChoice, CannotSave, FileTrouble, AlreadyThere, BeingWritten or SaveCancelled.
    """
    most = MAX_ROWS // 2
    if not FEWEST <= options.inodes <= most:
        raise BadValue(what="inodes", given=str(options.inodes), allowed=f"{FEWEST} to {most:,}")
    tree = PhaseTree(clock) if phases is None else phases
    stop, threads = cancel or threading.Event(), max(threads, 1)
    is_legacy = options.layout == "legacy"
    version = options.layout_version or (NEWEST_LEGACY if is_legacy else NEWEST_PROTOBUF)
    if is_legacy and version not in LAYOUTS:
        raise UnknownChoice(what="legacy layout", given=str(version), choices=map(str, LAYOUTS))
    codec = codec_class(options.codec)
    if is_legacy and codec:
        raise CannotSave(f"layout {version}", "legacy images have no codec")
    if not is_legacy and version != NEWEST_PROTOBUF:
        raise CannotSave(f"layout {version}", f"synthetic protobuf images are of layout {NEWEST_PROTOBUF}")
    with tree.phase("Plan"):
        maker = _Maker(options, *plan_namespace(options.inodes, options.seed))
    with published(path, options.replace, tree) as (file, output, saving):
        if is_legacy:
            with saving.phase("Inodes", total=options.inodes) as step:
                maker.write_legacy(version, output, step, threads, stop)
        else:
            parts = maker.parts(codec)
            ProtobufSaver(output, parts, threads, stop, []).write(saving, options.inodes)
        md5 = finish(path, file, output, saving)
    files, blocks, content = (int(total) for total in maker.totals)
    return Synthesised(
        path=path,
        size_bytes=file.size,
        layout_version=version,
        codec=codec,
        md5=md5,
        inodes=options.inodes,
        files=files,
        directories=options.inodes - files,
        blocks=blocks,
        content_bytes=content,
        users=maker.users,
        phases=tree.snapshot(),
    )


class _Maker:
    """One image being made from its plan."""

    def __init__(self, options: SynthOptions, plan: Plan, users: int) -> None:
        self.options, self.plan, self.users = options, plan, users
        self.seed = (options.seed & 0xFFFFFFFFFFFFFFFF ^ 1 << 63) - (1 << 63)
        self.strings = strings_of(users)
        self.ranges = _ranges(plan)
        self.counts = np.zeros((len(self.ranges), 3), np.int64)
        for index, (first, last) in enumerate(self.ranges):
            count_range(plan, self.seed, first, last, self.counts[index])
        self.totals: I64Array = self.counts.sum(axis=0)
        rows = options.inodes
        self.header = Header(
            layout_version=NEWEST_PROTOBUF,
            is_protobuf=True,
            codec="",
            namespace_id=NAMESPACE_ID,
            inode_count=rows,
            generation_v1=FIRST_GENERATION - 1,
            generation_v2=FIRST_GENERATION + rows,
            generation_v1_limit=0,
            last_block_id=FIRST_BLOCK_ID + rows * MOST_BLOCKS,
            last_inode_id=ROOT_ID + rows,
            txid=0,
        )

    def rows(self, first: int, last: int) -> int:
        """Return the rows of a range, the root's among them."""
        start = 0 if first == 0 else int(self.plan.first_child[first])
        return int(self.plan.first_child[last]) - start

    def fill(self, index: int, *, is_legacy: bool) -> tuple[InodeColumns, BlockColumns, U8, int]:
        """Make the rows of a range."""
        first, last = self.ranges[index]
        rows = self.rows(first, last)
        inodes, blocks = make_inode_columns(rows), make_block_columns(int(self.counts[index, 1]))
        names = np.empty(rows * MOST_NAME, np.uint8)
        fill_range(self.plan, self.seed, first, last, is_legacy, inodes, blocks, names)
        return inodes, blocks, names, rows

    def parts(self, codec: str) -> Parts:
        """Return a protobuf image as the saver takes it."""
        pieces, count = len(self.ranges), max(self.options.sub_sections, 1)
        each = -(-pieces // count)
        cuts = [*range(0, pieces, each), pieces]
        inodes: list[Part] = [[self._inode_piece(index) for index in range(a, b)] for a, b in pairwise(cuts)]
        directories: list[Part] = [[self._entry_piece(index) for index in range(a, b)] for a, b in pairwise(cuts)]
        return Parts(
            layout_version=NEWEST_PROTOBUF,
            codec=codec,
            is_split=self.options.sub_sections > 0,
            before=[("NS_INFO", namespace_section(self.header, NEWEST_PROTOBUF)), ("ERASURE_CODING", EMPTY_POLICIES)],
            inode_head=inode_header(ROOT_ID + self.options.inodes, self.options.inodes),
            inodes=inodes,
            directories=directories,
            after=[
                ("FILES_UNDERCONSTRUCTION", b""),
                ("SNAPSHOT", EMPTY_SNAPSHOTS),
                ("INODE_REFERENCE", b""),
                ("SECRET_MANAGER", EMPTY_SECRETS),
                ("CACHE_MANAGER", EMPTY_CACHE),
                ("STRING_TABLE", string_section(self.strings)),
            ],
        )

    def _inode_piece(self, index: int) -> Piece:
        rows = self.rows(*self.ranges[index])
        room = rows * (INODE_ROOM + MOST_NAME) + int(self.counts[index, 1]) * BLOCK_ROOM

        def write(out: U8) -> int:
            inodes, blocks, names, rows = self.fill(index, is_legacy=False)
            sparse, cursors = _root_quota() if index == 0 else _nothing()
            return int(put_inodes(inodes, blocks, names, sparse, cursors, 0, rows, NEWEST_PROTOBUF, out))

        return Piece(rows, room, write)

    def _entry_piece(self, index: int) -> Piece:
        first, last = self.ranges[index]
        rows = self.rows(first, last)
        room = ENTRY_ROOM * (last - first) + CHILD_ROOM * rows
        return Piece(rows, room, lambda out: int(put_plan_directories(self.plan, first, last, out)))

    def write_legacy(
        self, version: int, output: ImageOutput, step: Phase, threads: int, cancel: threading.Event
    ) -> None:
        """Write a legacy image."""
        output.write(header_bytes(self.header, version, self.options.inodes))
        output.write(_legacy_root(version))
        jobs = [self._legacy_job(index, version) for index in range(len(self.ranges))]
        with Pipeline(jobs, threads=threads, cancel=cancel) as pipeline:
            for index, (first, last) in enumerate(self.ranges):
                slot, view = pipeline.result(index)
                output.write(view, slot.release)
                step.advance(self.rows(first, last), read=len(view))
        output.write(struct.pack(">i", 0))  # no open files

    def _legacy_job(self, index: int, version: int) -> Callable[[Slot], memoryview]:
        first, last = self.ranges[index]
        texts = texts_of(self.strings)
        no_quotas = Quotas(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))

        def run(slot: Slot) -> memoryview:
            inodes, blocks, names, rows = self.fill(index, is_legacy=True)
            out = buffer_of(slot, rows * _RECORD_ROOM + 24 * int(self.counts[index, 1]) + SLACK)
            path = np.zeros(MOST_PATH, np.uint8)
            end = int(
                put_plan_records(
                    self.plan, self.seed, first, last, inodes, blocks, names, no_quotas, texts, version, path, out
                )
            )
            if end < 0:
                raise AssertionError("records need more room than was counted")  # a mistake of ours
            return out[:end].data

        return run


def strings_of(users: int) -> Strings:
    """Return the owners and groups of a namespace of so many users."""
    owners = {1: "hdfs"} | {OWNERS_BEFORE + user: f"u{user:06d}" for user in range(users)}
    groups = {1: "supergroup"} | {2 + group: f"g{group:02d}" for group in range(GROUPS)}
    return Strings(owners, groups, {}, {}, is_split=True)


def _ranges(plan: Plan) -> list[tuple[int, int]]:
    """Cut the directories into ranges of about _PIECE_ROWS children."""
    cuts, first, size = [], 0, int(plan.kind.size)
    while first < size:
        target = plan.first_child[first] + np.int32(_PIECE_ROWS)  # of the column's type: another would copy the column
        last = min(max(int(np.searchsorted(plan.first_child, target, "right")) - 1, first + 1), size)
        cuts.append((first, last))
        first = last
    return cuts


def _nothing() -> tuple[ik.SparseArrays, I64Array]:
    return ik.make_sparse_arrays(np.zeros(ik.CURSORS, np.int64)), np.zeros(6, np.int64)


def _root_quota() -> tuple[ik.SparseArrays, I64Array]:
    """Return the one sparse entry there is: a NameNode's root has a namespace quota."""
    counts, cursors = np.zeros(ik.CURSORS, np.int64), np.zeros(6, np.int64)
    counts[ik.QUOTAS] = 1
    sparse = ik.make_sparse_arrays(counts)
    sparse.quota_namespace[0], sparse.quota_space[0] = ROOT_QUOTA, UNSET_QUOTA
    cursors[2] = 1
    return sparse, cursors


def _legacy_root(version: int) -> bytes:
    out = utf8(b"") + struct.pack(">hq", 0, NOW)
    if version <= SINCE_ATIME:
        out += struct.pack(">q", 0)
    out += struct.pack(">qiq", 0, -1, LEGACY_ROOT_QUOTA)
    if version <= SINCE_SPACE_QUOTA:
        out += struct.pack(">q", UNSET_QUOTA)
    return out + text("hdfs") + text("supergroup") + struct.pack(">H", 0o755)
