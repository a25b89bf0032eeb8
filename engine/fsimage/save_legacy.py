"""A legacy image, layout -16 (Hadoop 0.18) or -18 (0.19 and 0.20), from a namespace.

    i32 layout  i32 namespace id  i64 records  i64 generation stamp
    records: the root, then the children of each directory (save_legacy_kernel)
    i32 open files, a record each: UTF8 path ... UTF8 client name, UTF8 client machine, i32 0

These layouts know files, directories, owners, times and quotas. What else a namespace has is lost in them, so saving
it is refused unless the caller says that the rest may be dropped. Access times need -17, space quotas -18.
Source: FSImage.saveFSImage and FSNamesystem.saveFilesUnderConstruction of Apache Hadoop 0.18 (order of fields).
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.fsimage.columns import I32, U8, Flag, Header, Kind, Namespace, Strings
from engine.fsimage.columns import I64 as I64Array
from engine.fsimage.save_errors import CannotSave
from engine.fsimage.save_legacy_kernel import (
    MAX_PATH,
    NO_ROOM,
    PATH_TOO_LONG,
    SINCE_ATIME,
    SINCE_SPACE_QUOTA,
    SLACK,
    Quotas,
    Texts,
    list_directories,
    put_children,
)
from engine.fsimage.save_order import java_children
from engine.fsimage.save_output import ImageOutput
from engine.fsimage.save_pipeline import Pipeline, Slot
from engine.fsimage.tree import path_of
from engine.measure.phases import Phase

LAYOUTS = (-16, -18)
_PIECE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """The order and size of all records below the root."""

    children: I32
    order: I32
    prefix: I32
    sizes: I64Array
    records: int  # the root among them
    left_out: int


def text(value: str | bytes) -> bytes:
    """Return a Hadoop Text: the length as a WritableUtils vint, then UTF-8."""
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    size = len(data)
    if size < 128:
        return bytes([size]) + data
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([(-112 - len(digits)) & 0xFF]) + digits + data


def utf8(value: bytes) -> bytes:
    """Return a Hadoop UTF8: u16 length, bytes."""
    return struct.pack(">H", len(value)) + value


def texts_of(strings: Strings) -> Texts:
    """Return owners and groups as kernels take them."""
    owners, owner_start = _heap(strings.users)
    groups, group_start = _heap(strings.groups)
    return Texts(owners, owner_start, groups, group_start)


def _heap(table: Mapping[int, str]) -> tuple[U8, I64Array]:
    top = max(table, default=0)
    encoded = [text(table.get(key, "")) for key in range(top + 1)]
    start = np.zeros(top + 2, np.int64)
    np.cumsum([len(data) for data in encoded], out=start[1:])
    return np.frombuffer(b"".join(encoded), np.uint8).copy(), start


def losses(namespace: Namespace, layout_version: int) -> list[tuple[str, int]]:
    """Return what of a namespace the layout has no place for, with how many there are."""
    s, flags, extras = namespace.sparse, namespace.inodes.flags, namespace.extras
    found = [
        ("symbolic links", int(np.count_nonzero((flags & np.uint16(Flag.KIND)) == Kind.SYMLINK))),
        ("striped files", int(np.count_nonzero(flags & np.uint16(Flag.STRIPED)))),
        ("ACLs", int(s.acls.row.size)),
        ("extended attributes", int(s.xattrs.row.size)),
        ("quotas by storage type", int(s.type_quotas.row.size)),
        ("storage policies", int(np.count_nonzero(namespace.inodes.storage_policy))),
        ("HDFS snapshots", len(extras.snapshots.snapshots) if extras.snapshots else 0),
        ("cache pools", len(extras.cache.pools) if extras.cache else 0),
    ]
    if layout_version > SINCE_SPACE_QUOTA:
        found.append(("space quotas", int(np.count_nonzero(s.quotas.space != -1))))
    return [(name, count) for name, count in found if count]


def plan_of(namespace: Namespace, layout_version: int, *, drop: bool) -> Plan:
    """Put the directories in order and measure the records. Raises CannotSave."""
    if not drop and (lost := losses(namespace, layout_version)):
        what = ", ".join(f"{count:,} {name}" for name, count in lost)
        raise CannotSave(f"layout {layout_version}", f"it has no place for {what}; they can be dropped")
    child_start, inodes = namespace.tree.child_start, namespace.inodes
    parents = int(np.count_nonzero(np.diff(child_start)))
    children = java_children(namespace)
    order, prefix, sizes = np.zeros(parents, np.int32), np.zeros(parents, np.int32), np.zeros(parents, np.int64)
    stack, lengths, totals = np.zeros(parents + 1, np.int32), np.zeros(parents + 1, np.int32), np.zeros(2, np.int64)
    count = int(
        list_directories(
            inodes, child_start, children, namespace.root, layout_version, texts_of(namespace.strings),
            order, prefix, sizes, stack, lengths, totals,
        )
    )  # fmt: skip
    if count == PATH_TOO_LONG:
        size = len(path_of(namespace, int(totals[0])))
        raise CannotSave(f"layout {layout_version}", f"a path has {size:,} bytes, allowed are {MAX_PATH:,}")
    if count == NO_ROOM:
        raise AssertionError("directories met twice in a tree")  # the loader gives every row one parent
    return Plan(children, order[:count], prefix[:count], sizes[:count], int(totals[0]) + 1, int(totals[1]))


def header_bytes(header: Header, layout_version: int, records: int) -> bytes:
    """Return what the file begins with."""
    h = header
    stamp = max(h.generation_v1 or 0, h.generation_v2 or 0)
    namespace_id = ((h.namespace_id & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    return struct.pack(">iiqq", layout_version, namespace_id, records, stamp)


def root_record(namespace: Namespace, layout_version: int) -> bytes:
    """Return the first record."""
    return utf8(b"") + record(namespace, namespace.root, layout_version)


def record(namespace: Namespace, row: int, layout_version: int, *, is_open: bool = False) -> bytes:
    """Return what stands behind the path of a row's record, in plain Python; of an open file without its client."""
    inodes, strings = namespace.inodes, namespace.strings
    permission = int(inodes.permission[row])
    out = struct.pack(">Hq", int(inodes.replication[row]), int(inodes.mtime[row]))
    if layout_version <= SINCE_ATIME and not is_open:
        out += struct.pack(">q", int(inodes.atime[row]))
    out += struct.pack(">q", int(inodes.preferred_block_size[row]))
    if namespace.kind(row) is Kind.DIRECTORY:
        quotas = namespace.sparse.quotas
        at = int(np.searchsorted(quotas.row, row))
        is_set = at < quotas.row.size and int(quotas.row[at]) == row
        out += struct.pack(">iq", -1, int(quotas.namespace[at]) if is_set else -1)
        if layout_version <= SINCE_SPACE_QUOTA:
            out += struct.pack(">q", int(quotas.space[at]) if is_set else -1)
    else:
        first, last = int(inodes.block_start[row]), int(inodes.block_start[row + 1])
        out += struct.pack(">i", last - first)
        b = namespace.blocks
        for k in range(first, last):
            out += struct.pack(">qqq", int(b.block_id[k]), int(b.length[k]), int(b.generation[k]))
    out += text(strings.user(permission)) + text(strings.group(permission))
    return out + struct.pack(">H", permission & 0xFFFF)


def open_files(namespace: Namespace, layout_version: int) -> bytes:
    """Return the open files: how many, and their records."""
    names, machines = namespace.sparse.client_names, namespace.sparse.client_machines
    by_id = {int(namespace.inodes.inode_id[row]): k for k, row in enumerate(names.row.tolist())}
    out, count = b"", 0
    for file in namespace.extras.open_files:
        k = by_id.get(file.inode_id)
        if k is None or int(namespace.inodes.flags[names.row[k]]) & Flag.STRIPED:
            continue
        row = int(names.row[k])
        out += utf8(file.path) + record(namespace, row, layout_version, is_open=True)
        out += utf8(names.heap[names.start[k] : names.start[k + 1]].tobytes())
        out += utf8(machines.heap[machines.start[k] : machines.start[k + 1]].tobytes()) + struct.pack(">i", 0)
        count += 1
    return struct.pack(">i", count) + out


@dataclass(slots=True)
class LegacySaver:
    """Writes one image with kernels."""

    namespace: Namespace
    output: ImageOutput
    layout_version: int
    plan: Plan
    threads: int
    cancel: threading.Event

    def write(self, step: Phase) -> None:
        """Write everything. Raises SaveCancelled; OSError where the file refuses."""
        namespace, plan, layout = self.namespace, self.plan, self.layout_version
        self.output.write(header_bytes(namespace.header, layout, plan.records))
        self.output.write(root_record(namespace, layout))
        quotas, texts = Quotas(*namespace.sparse.quotas), texts_of(namespace.strings)
        cuts = cut_by_size(plan.sizes)
        jobs = [self._job(first, last, quotas, texts) for first, last in cuts]
        child_start = namespace.tree.child_start
        with Pipeline(jobs, threads=self.threads, cancel=self.cancel) as pipeline:
            for index, (first, last) in enumerate(cuts):
                slot, view = pipeline.result(index)
                self.output.write(view, slot.release)
                rows = plan.order[first:last]
                step.advance(int((child_start[rows + 1] - child_start[rows]).sum()), read=len(view))
        self.output.write(open_files(namespace, layout))

    def _job(self, first: int, last: int, quotas: Quotas, texts: Texts) -> Callable[[Slot], memoryview]:
        n, plan = self.namespace, self.plan
        size = int(plan.sizes[first:last].sum())

        def run(slot: Slot) -> memoryview:
            out = buffer_of(slot, size + SLACK)
            end = int(
                put_children(
                    n.inodes, n.blocks, n.names, n.tree.child_start, plan.children, quotas, texts,
                    self.layout_version, plan.order, plan.prefix, first, last, path_of_slot(slot), out,
                )
            )  # fmt: skip
            if end != size:
                raise AssertionError(f"records take {end} bytes, {size} were counted")  # a mistake of ours
            return out[:size].data

        return run


def cut_by_size(sizes: I64Array) -> list[tuple[int, int]]:
    """Cut a list of sizes into runs of about _PIECE_BYTES; one size may be more."""
    cuts, first = [], 0
    ends = np.cumsum(sizes)
    while first < sizes.size:
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + _PIECE_BYTES, "right")), first + 1)
        cuts.append((first, last))
        first = last
    return cuts


def buffer_of(slot: Slot, size: int) -> U8:
    """Return `size` bytes of a slot's own buffer, which grows as needed."""
    buffer = slot.memory.get("buffer")
    if not isinstance(buffer, np.ndarray) or buffer.size < size:
        buffer = slot.memory["buffer"] = np.empty(size, np.uint8)
    out: U8 = buffer[:size]
    return out


def path_of_slot(slot: Slot) -> U8:
    """Return a slot's own room for one path."""
    path = slot.memory.get("path")
    if not isinstance(path, np.ndarray):
        path = slot.memory["path"] = np.zeros(MAX_PATH + 1, np.uint8)
    return path
