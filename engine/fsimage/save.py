"""Save a namespace: protobuf or legacy, with any codec, atomically, with its MD5 beside it.

    saved = save_image(namespace, Path("fsimage_42"), clock=SystemClock())

The same namespace gives the same bytes, on any number of threads. The file appears under its name when it is whole and
durable (engine/storage/publishing), or not at all.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import UnknownChoice
from engine.fsimage.checksum import sidecar_of
from engine.fsimage.columns import Namespace
from engine.fsimage.save_codecs import CODECS, can_write
from engine.fsimage.save_errors import CannotSave
from engine.fsimage.save_output import ImageOutput
from engine.fsimage.save_protobuf import ProtobufSaver, parts_of
from engine.fsimage.save_sections import needs_split
from engine.measure.clock import Clock
from engine.measure.phases import PhaseSnapshot, PhaseTree
from engine.storage.publishing import publish

SAVING = "SavingCheckpoint"
NEWEST_PROTOBUF = -67  # Hadoop 3.4 and 3.5
Layout = Literal["protobuf", "legacy"]


@dataclass(frozen=True, slots=True)
class Saved:
    """A file written."""

    path: Path
    size_bytes: int
    inodes: int
    layout_version: int
    codec: str
    md5: str
    phases: tuple[PhaseSnapshot, ...]


def save_image(
    namespace: Namespace,
    path: Path,
    *,
    clock: Clock,
    codec: str = "none",
    sub_sections: int = 0,
    threads: int = 2,
    replace: bool = False,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
) -> Saved:
    """Save as protobuf: in the layout that the namespace came in, or the newest where that was a legacy one.

    codec: a name of `save_codecs.CODECS`. sub_sections: parts of INODE and INODE_DIR that a NameNode may load in
    parallel; 0 for none. Raises FileTrouble, AlreadyThere, BeingWritten, CannotSave, SaveCancelled or UnknownChoice.
    """
    class_name = codec_class(codec)
    version = namespace.header.layout_version if namespace.header.is_protobuf else NEWEST_PROTOBUF
    if needs_split(namespace.strings, version):
        raise CannotSave(f"layout {version}", "its string table cannot tell users from groups, and here they overlap")
    tree = PhaseTree(clock) if phases is None else phases
    parts = parts_of(namespace, layout_version=version, codec=class_name, sub_sections=sub_sections)
    with publish(path, replace=replace) as file, ImageOutput(file) as output, tree.phase(SAVING) as saving:
        saver = ProtobufSaver(output, parts, max(threads, 1), cancel or threading.Event(), [])
        with saving.phase("Inodes", total=2 * namespace.rows) as step:
            saver.write(step, step)
        with saving.phase("md5"):
            md5 = output.md5()
        file.companion = sidecar(path, md5)
        with saving.phase("sync"):
            file.sync()
    return Saved(path, file.size, namespace.rows, version, class_name, md5, tree.snapshot())


def codec_class(codec: str) -> str:
    """Return the class name of a codec's short name, "" for none. Raises UnknownChoice."""
    if codec not in CODECS or not can_write(CODECS[codec]):
        raise UnknownChoice(what="codec", given=codec, choices=CODECS)
    return CODECS[codec]


def sidecar(path: Path, md5: str) -> tuple[Path, bytes]:
    """Return the MD5 file of an image and what it holds, as a NameNode writes it."""
    return sidecar_of(path), f"{md5} *{path.name}\n".encode("utf-8", "surrogateescape")
