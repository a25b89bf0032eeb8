"""Folders of a store: the RAM disk's and the disks', what may stand in them, and what the names mean.

    DISK_DIR/
        STORE               the store's id and which of its volumes this is; also says that the folder is ours
        LOCK                one owner at a time
        journal/            a write-ahead log of files and blocks (first volume only)
        replicas/<id>.replica     a whole, synced copy (policy disk: whole, as far as the page cache)
                 <id>.copying     being copied: removed at the next start
                 <id>.open        being written: removed at the next start
    RAM_DIR/tidegauge-<store id>/
        <id>.replica, <id>.open, spare-<n>

A name tells how far a file has come, since a rename is atomic and the bytes of a replica are never changed under its
final name. Block ids are 16 hexadecimal digits and are used once. The RAM folder carries the store's id: a RAM disk
that a reboot emptied is a missing folder, and one of another store is never looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.environment import mount_of
from engine.errors import FileTrouble, printable, quoted
from engine.ramdisk.errors import NotAStore, NotTmpfs, StoreLocked
from engine.storage.contents import opened, read_file, reported
from engine.storage.descriptors import new_log_id
from engine.storage.file_calls import FileCalls, Place
from engine.storage.folders import (
    LOCK_NAME,
    FolderLock,
    list_folder,
    lock_folder,
    lock_holder,
    make_folder,
    sync_folder,
)
from engine.storage.space import disk_room, kept_free

IDENTITY = "STORE"
JOURNAL = "journal"
REPLICAS = "replicas"
_REPLICA = re.compile(r"([0-9a-f]{16})\.(replica|open|copying)")
_ALLOWED = {IDENTITY, LOCK_NAME, JOURNAL, REPLICAS, IDENTITY + ".tmp"}


class Identity(msgspec.Struct, frozen=True):
    """What the STORE file holds."""

    schema: str
    store_id: str
    volume: int
    volumes: int


_SCHEMA = "tidegauge.ramdisk/1"


@dataclass(frozen=True, slots=True)
class RamFolder:
    """The RAM disk's folder. label: the file system's name, and a warning where it is no tmpfs."""

    path: Path
    parent: Path
    label: str
    is_tmpfs: bool


@dataclass(frozen=True, slots=True)
class Volume:
    """One disk volume."""

    number: int
    root: Path
    lock: FolderLock

    @property
    def replicas(self) -> Path:
        """Return the folder of its replicas."""
        return self.root / REPLICAS

    def room(self) -> int:
        """Return the bytes that may be written here, the part that stays free left out; 0 where nobody can tell."""
        try:
            total, free = disk_room(self.root)
        except FileTrouble:
            return 0
        return max(free - kept_free(total), 0)


class FoundReplica(NamedTuple):
    """A file of ours that a folder holds. stage: replica, open or copying."""

    path: Path
    block_id: int
    stage: str


def replica_name(block_id: int, stage: str = "replica") -> str:
    """Return a file's name."""
    return f"{block_id:016x}.{stage}"


def find_replicas(folder: Path) -> tuple[list[FoundReplica], list[Path]]:
    """Return (replicas, other files) of a folder; nothing of a folder that is not there. Raises FileTrouble."""
    if not folder.is_dir():
        return [], []
    found, others = [], []
    for entry in list_folder(folder):
        match = _REPLICA.fullmatch(entry.name)
        if match and entry.is_file:
            found.append(FoundReplica(folder / entry.name, int(match[1], 16), match[2]))
        elif entry.is_file:
            others.append(folder / entry.name)
    return found, others


def check_ram_parent(parent: Path, *, may_be_disk: bool) -> tuple[str, bool]:
    """Return (label, is tmpfs) of the directory for the RAM folder. Raises NotTmpfs, FileTrouble."""
    with reported(parent, "use it as the RAM disk"):
        if not parent.is_dir():
            raise NotADirectoryError(20, "Not a directory") if parent.exists() else FileNotFoundError(2, "missing")
    mount = mount_of(parent)
    system = mount.file_system if mount is not None else "unknown"
    if mount is not None and mount.is_memory:
        return f"{system}, huge pages" if mount.has_huge_pages else system, True
    if not may_be_disk:
        raise NotTmpfs(parent, file_system=system)
    return f"{system} (not tmpfs: no memory)", False


def open_ram_folder(parent: Path, store_id: str, *, may_be_disk: bool) -> RamFolder:
    """Make the store's folder on the RAM disk unless it is there. Raises NotTmpfs, FileTrouble."""
    label, is_tmpfs = check_ram_parent(parent, may_be_disk=may_be_disk)
    path = parent / f"tidegauge-{store_id}"
    with reported(path, "make the folder"):
        path.mkdir(mode=0o700, exist_ok=True)
    return RamFolder(path, parent, label, is_tmpfs)


def open_volumes(folders: tuple[Path, ...]) -> tuple[str, list[Volume]]:
    """Open or make the disk volumes of a store; return (store id, volumes), each locked.

    Raises NotAStore for a folder of something else, or of another store; StoreLocked; FileTrouble.
    """
    identities = [_look_at(folder) for folder in folders]
    ids = {identity.store_id for identity in identities if identity is not None}
    if len(ids) > 1:
        raise NotAStore(folders[1], found=f"it belongs to another store than {printable(str(folders[0]))}")
    known = next((identity for identity in identities if identity is not None), None)
    if known is not None:
        _check_together(folders, identities, known)
    store_id = known.store_id if known is not None else new_log_id().hex()
    volumes: list[Volume] = []
    try:
        for number, folder in enumerate(folders):
            lock = lock_folder(folder)
            if lock is None:
                raise StoreLocked(folder, holder=lock_holder(folder))
            volumes.append(Volume(number, folder, lock))
            if identities[number] is None:
                _write_identity(folder, Identity(_SCHEMA, store_id, number, len(folders)))
            make_folder(folder / REPLICAS)
    except BaseException:
        for volume in volumes:
            volume.lock.release()
        raise
    return store_id, volumes


def _check_together(folders: tuple[Path, ...], identities: list[Identity | None], known: Identity) -> None:
    """See that the folders are all of the store's volumes, in their order."""
    if len(folders) != known.volumes:
        raise NotAStore(folders[0], found=f"its store has {known.volumes} disk directories, {len(folders)} were given")
    for number, (folder, identity) in enumerate(zip(folders, identities, strict=True)):
        if identity is None or identity.volume != number:
            found = "it is empty" if identity is None else f"it is disk directory {identity.volume + 1} of its store"
            raise NotAStore(folder, found=f"{found}, given as number {number + 1}")


def _look_at(folder: Path) -> Identity | None:
    """Return the identity in a folder, None where it is new or empty; make it where it is missing."""
    make_folder(folder)
    names = [entry.name for entry in list_folder(folder)]
    foreign = next((name for name in names if name not in _ALLOWED), None)
    if foreign is not None:
        raise NotAStore(folder, found=f"it holds {quoted(foreign)}")
    if IDENTITY not in names:
        if JOURNAL in names or (REPLICAS in names and list_folder(folder / REPLICAS)):
            raise NotAStore(folder, found=f"{REPLICAS} and no {IDENTITY} file")
        return None
    try:
        identity = msgspec.json.decode(read_file(folder / IDENTITY, limit=4096).tobytes(), type=Identity)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotAStore(folder, found=f"its {IDENTITY} file cannot be read: {quoted(error)}") from error
    if identity.schema != _SCHEMA:
        raise NotAStore(folder, found=f"format {quoted(identity.schema)}, this program reads {_SCHEMA}")
    if not re.fullmatch(r"[0-9a-f]{32}", identity.store_id) or not 0 <= identity.volume < identity.volumes:
        raise NotAStore(folder, found=f"its {IDENTITY} file makes no sense")
    return identity


def _write_identity(folder: Path, identity: Identity) -> None:
    """Write the STORE file so that it appears whole."""
    temporary = folder / (IDENTITY + ".tmp")
    calls = FileCalls()
    temporary.unlink(missing_ok=True)
    with opened(temporary, _CREATE, "write the store's identity") as descriptor:
        calls.write(descriptor, memoryview(msgspec.json.encode(identity)), 0, Place.DISK_CREATE)
        calls.sync(descriptor)
    with reported(folder, "write the store's identity"):
        temporary.rename(folder / IDENTITY)
    sync_folder(folder)


_CREATE = 0o102  # O_RDWR | O_CREAT, whose numbers the kernel's ABI fixes
