"""Saving a legacy image record by record, as NameNodes did before and after HADOOP-3248: its changes as switches.

    1  path without an object        before, the path became a string, then a UTF8 object, then bytes; after, bytes
    2  owner, group, mode directly   before, a PermissionStatus with an FsPermission inside, made for each inode
    4  path without concatenation    before, parent + "/" + name for each inode; after, one shared buffer that grows
                                     and is wound back

Change 3 is the load's. `objects` has none of them, `lean` all, and any mix can be asked for; `columnar` is not here but
in save_legacy. All write the same bytes; what differs is what they allocate on the way, which is what the report of
2008 measured. Java's objects are stood in for by Python's: the ratios between strategies say something, the times do
not.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from engine.fsimage.columns import Flag, Kind, Namespace
from engine.fsimage.save_errors import SaveCancelled
from engine.fsimage.save_legacy import Plan, text, utf8
from engine.fsimage.save_legacy_kernel import SINCE_ATIME, SINCE_SPACE_QUOTA

_CHUNK = 1 << 20
_KIND, _STRIPED = int(Flag.KIND), int(Flag.STRIPED)
_LOOK_EVERY = 1024  # directories between two looks at `cancel`


@dataclass(frozen=True, slots=True)
class SaveChanges:
    """Which of the changes are on."""

    path_without_object: bool
    permission_without_object: bool
    path_without_concatenation: bool


OBJECTS = SaveChanges(False, False, False)
LEAN = SaveChanges(True, True, True)
STRATEGIES = {"objects": OBJECTS, "lean": LEAN}


class Utf8:
    """Hadoop's UTF8: its own copy of a string's bytes."""

    __slots__ = ("data", "length")

    def __init__(self, string: str) -> None:
        self.data = string.encode("utf-8", "surrogateescape")
        self.length = len(self.data)

    def write(self, out: bytearray) -> None:
        """Append length and bytes."""
        out += struct.pack(">H", self.length)
        out += self.data


class FsPermission:
    """A mode."""

    __slots__ = ("mode",)

    def __init__(self, mode: int) -> None:
        self.mode = mode

    def write(self, out: bytearray) -> None:
        """Append the mode."""
        out += struct.pack(">H", self.mode)


class PermissionStatus:
    """Owner, group and mode of one inode."""

    __slots__ = ("group", "permission", "user")

    def __init__(self, user: str, group: str, permission: FsPermission) -> None:
        self.user, self.group, self.permission = user, group, permission

    def write(self, out: bytearray) -> None:
        """Append two Texts and the mode."""
        out += text(self.user)
        out += text(self.group)
        self.permission.write(out)


def write_records(
    namespace: Namespace, plan: Plan, layout_version: int, changes: SaveChanges, cancel: threading.Event
) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes, records) of all records below the root, in save order. Raises SaveCancelled."""
    out, records = bytearray(), 0
    user_texts = {key: text(name) for key, name in namespace.strings.users.items()}
    group_texts = {key: text(name) for key, name in namespace.strings.groups.items()}
    quotas = {
        int(row): (int(count), int(space))
        for row, count, space in zip(*namespace.sparse.quotas, strict=True)
    }  # fmt: skip
    shared = bytearray()  # change 4: the path so far
    stack: list[tuple[int, bytes]] = [(namespace.root, b"")]
    inodes, start = namespace.inodes, namespace.tree.child_start
    met = 0
    while stack:
        directory, prefix = stack.pop()
        met += 1
        if met % _LOOK_EVERY == 0 and cancel.is_set():
            raise SaveCancelled
        shared[:] = prefix
        shared += b"/"
        prefix_size = len(shared)
        text_prefix = prefix.decode("utf-8", "surrogateescape")
        below: list[tuple[int, bytes]] = []
        for child in plan.children[int(start[directory]) : int(start[directory + 1])].tolist():
            flags = int(inodes.flags[child])
            if flags & _KIND == Kind.SYMLINK or flags & _STRIPED:
                continue
            name = namespace.name(child)
            if changes.path_without_concatenation:
                del shared[prefix_size:]
                shared += name
                if changes.path_without_object:
                    out += utf8(bytes(shared))
                else:
                    Utf8(shared.decode("utf-8", "surrogateescape")).write(out)
            else:
                whole = text_prefix + "/" + name.decode("utf-8", "surrogateescape")
                if changes.path_without_object:
                    out += utf8(whole.encode("utf-8", "surrogateescape"))
                else:
                    Utf8(whole).write(out)
            _body(namespace, child, flags, quotas, layout_version, out)
            permission = int(inodes.permission[child])
            if changes.permission_without_object:
                out += user_texts.get(permission >> 40, b"\0")
                out += group_texts.get(permission >> 16 & 0xFFFFFF, b"\0")
                out += struct.pack(">H", permission & 0xFFFF)
            else:
                mode = FsPermission(permission & 0xFFFF)
                strings = namespace.strings
                PermissionStatus(strings.user(permission), strings.group(permission), mode).write(out)
            records += 1
            if flags & _KIND == Kind.DIRECTORY and start[child + 1] > start[child]:
                below.append((child, bytes(prefix) + b"/" + name))
            if len(out) >= _CHUNK:
                yield bytes(out), records
                out.clear()
                records = 0
        stack.extend(reversed(below))
    yield bytes(out), records


def _body(
    namespace: Namespace,
    row: int,
    flags: int,
    quotas: dict[int, tuple[int, int]],
    layout_version: int,
    out: bytearray,
) -> None:
    """Append what stands between path and owner."""
    inodes, blocks = namespace.inodes, namespace.blocks
    out += struct.pack(">Hq", int(inodes.replication[row]), int(inodes.mtime[row]))
    if layout_version <= SINCE_ATIME:
        out += struct.pack(">q", int(inodes.atime[row]))
    out += struct.pack(">q", int(inodes.preferred_block_size[row]))
    if flags & _KIND == Kind.DIRECTORY:
        count, space = quotas.get(row, (-1, -1))
        out += struct.pack(">iq", -1, count)
        if layout_version <= SINCE_SPACE_QUOTA:
            out += struct.pack(">q", space)
        return
    first, last = int(inodes.block_start[row]), int(inodes.block_start[row + 1])
    out += struct.pack(">i", last - first)
    for k in range(first, last):
        out += struct.pack(">qqq", int(blocks.block_id[k]), int(blocks.length[k]), int(blocks.generation[k]))
