"""Save a namespace: protobuf or legacy, with any codec, atomically, with its MD5 beside it.

    saved = save_image(namespace, Path("fsimage_42"), SaveOptions(codec="gzip"), clock=SystemClock())

The same namespace gives the same bytes, on any number of threads. The file appears under its name when it is whole and
durable (engine/storage/publishing), or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import UnknownChoice
from engine.fsimage.checksum import sidecar_of
from engine.fsimage.columns import Namespace
from engine.fsimage.container import FIRST_PROTOBUF
from engine.fsimage.save_codecs import CODECS
from engine.fsimage.save_errors import CannotSave
from engine.fsimage.save_legacy import LAYOUTS, LegacySaver, header_bytes, losses, open_files, plan_of, root_record
from engine.fsimage.save_output import ImageOutput
from engine.fsimage.save_protobuf import ProtobufSaver, parts_of
from engine.fsimage.save_sections import needs_split
from engine.fsimage.save_strategies import STRATEGIES, SaveChanges, write_records
from engine.measure.clock import Clock
from engine.measure.phases import Phase, PhaseSnapshot, PhaseTree
from engine.storage.publishing import NewFile, publish

SAVING = "SavingCheckpoint"
NEWEST_PROTOBUF = -67  # Hadoop 3.4 and 3.5
NEWEST_LEGACY = LAYOUTS[-1]
COLUMNAR = "columnar"
Layout = Literal["protobuf", "legacy"]


@dataclass(frozen=True, slots=True)
class SaveOptions:
    """How to save.

    layout_version: None is the version that a protobuf image came in, else the newest; -16 or -18 for legacy.
    codec: a name of `save_codecs.CODECS`; legacy has none. sub_sections: parts of INODE and INODE_DIR that a NameNode
    may load in parallel. drop: leave out what the layout has no place for, instead of refusing. strategy: how legacy
    records are made, `columnar` (all threads), a name of `save_strategies.STRATEGIES`, or single changes.
    """

    layout: Layout = "protobuf"
    layout_version: int | None = None
    codec: str = "none"
    sub_sections: int = 0
    drop: bool = False
    replace: bool = False
    strategy: str | SaveChanges = COLUMNAR


@dataclass(frozen=True, slots=True)
class Saved:
    """A file written. `dropped`: what the layout had no place for, with counts."""

    path: Path
    size_bytes: int
    inodes: int
    layout_version: int
    codec: str  # class name, "" for none
    md5: str
    dropped: tuple[tuple[str, int], ...]
    phases: tuple[PhaseSnapshot, ...]


def save_image(
    namespace: Namespace,
    path: Path,
    options: SaveOptions = SaveOptions(),
    *,
    clock: Clock,
    threads: int = 2,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
) -> Saved:
    """Save a namespace.

    Delegation keys and tokens are in no saved image, since they are in no loaded namespace. Raises FileTrouble,
    AlreadyThere, BeingWritten, CannotSave, SaveCancelled or UnknownChoice; nothing is left behind then.
    """
    tree = PhaseTree(clock) if phases is None else phases
    stop, threads = cancel or threading.Event(), max(threads, 1)
    if options.layout == "legacy":
        return _save_legacy(namespace, path, options, threads, tree, stop)
    codec = codec_class(options.codec)
    header = namespace.header
    version = options.layout_version or (header.layout_version if header.is_protobuf else NEWEST_PROTOBUF)
    check_protobuf(namespace, version)
    parts = parts_of(namespace, layout_version=version, codec=codec, sub_sections=options.sub_sections)
    with published(path, options.replace, tree) as (file, output, saving):
        ProtobufSaver(output, parts, threads, stop, []).write(saving, namespace.rows)
        md5 = finish(path, file, output, saving)
    return Saved(path, file.size, namespace.rows, version, codec, md5, (), tree.snapshot())


def _save_legacy(
    namespace: Namespace, path: Path, options: SaveOptions, threads: int, tree: PhaseTree, cancel: threading.Event
) -> Saved:
    version = options.layout_version or NEWEST_LEGACY
    if version not in LAYOUTS:
        raise UnknownChoice(what="legacy layout", given=str(version), choices=map(str, LAYOUTS))
    if options.codec != "none":
        raise CannotSave(f"layout {version}", "legacy images have no codec")
    changes = options.strategy if isinstance(options.strategy, SaveChanges) else STRATEGIES.get(options.strategy)
    if changes is None and options.strategy != COLUMNAR:
        raise UnknownChoice(what="strategy", given=str(options.strategy), choices=(COLUMNAR, *STRATEGIES))
    plan = plan_of(namespace, version, drop=options.drop)
    with published(path, options.replace, tree) as (file, output, saving):
        with saving.phase("Inodes", total=plan.records - 1) as step:
            if changes is None:
                LegacySaver(namespace, output, version, plan, threads, cancel).write(step)
            else:
                output.write(header_bytes(namespace.header, version, plan.records) + root_record(namespace, version))
                for data, records in write_records(namespace, plan, version, changes, cancel):
                    output.write(data)
                    step.advance(records, read=len(data))
                output.write(open_files(namespace, version))
        md5 = finish(path, file, output, saving)
    return Saved(
        path, file.size, plan.records, version, "", md5, tuple(losses(namespace, version)), tree.snapshot()
    )  # fmt: skip


@contextmanager
def published(path: Path, replace: bool, tree: PhaseTree) -> Iterator[tuple[NewFile, ImageOutput, Phase]]:
    """Make a new image in the block: its file, what writes and hashes it, and the phase that runs."""
    with publish(path, replace=replace) as file, ImageOutput(file) as output, tree.phase(SAVING) as saving:
        yield file, output, saving


def finish(path: Path, file: NewFile, output: ImageOutput, saving: Phase) -> str:
    """Wait for the MD5, leave it to be published beside the image, make the bytes durable; return the MD5."""
    with saving.phase("md5"):
        md5 = output.md5()
    file.companion = sidecar_of(path), f"{md5} *{path.name}\n".encode("utf-8", "surrogateescape")
    with saving.phase("sync"):
        file.sync()
    return md5


def check_protobuf(namespace: Namespace, version: int) -> None:
    """Raise CannotSave where a protobuf layout cannot hold the namespace."""
    if not NEWEST_PROTOBUF <= version <= FIRST_PROTOBUF and version != namespace.header.layout_version:
        raise CannotSave(f"layout {version}", f"protobuf layouts are {FIRST_PROTOBUF} to {NEWEST_PROTOBUF}")
    if needs_split(namespace.strings, version):
        raise CannotSave(f"layout {version}", "its string table cannot tell users from groups, and here they overlap")


def codec_class(codec: str) -> str:
    """Return the class name of a codec's short name, "" for none. Raises UnknownChoice."""
    if codec not in CODECS:
        raise UnknownChoice(what="codec", given=codec, choices=CODECS)
    return CODECS[codec]
