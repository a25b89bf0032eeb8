"""Load an image: the one entry point, whatever its layout.

    loaded = load_image(Path("fsimage_42"), clock=SystemClock())
    loaded.namespace, loaded.integrity, loaded.phases, loaded.wait_for_checksum()

A load can be watched (`phases`), cancelled (`cancel`: its memory is free when LoadCancelled arrives) and repeated.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from engine.fsimage.checksum import ChecksumResult, ChecksumThread
from engine.fsimage.columns import Namespace
from engine.fsimage.container import open_container
from engine.fsimage.integrity import IntegrityReport
from engine.fsimage.legacy_load import load_legacy
from engine.fsimage.load_state import Load
from engine.fsimage.protobuf_load import load_protobuf
from engine.measure.clock import Clock
from engine.measure.phases import PhaseSnapshot, PhaseTree
from engine.units import Bytes

LOADING = "LoadingFsImage"


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image in memory, what is wrong with it, and where the time went."""

    namespace: Namespace
    integrity: IntegrityReport
    phases: tuple[PhaseSnapshot, ...]
    checksum: ChecksumThread | None

    def wait_for_checksum(self, timeout: float | None = None) -> ChecksumResult | None:
        """Return what the MD5 check found; None where it was not asked for, or still runs after `timeout` seconds."""
        return None if self.checksum is None else self.checksum.result(timeout)


def load_image(
    path: Path,
    *,
    clock: Clock,
    threads: int = 2,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
    check_md5: bool = True,
    lookups: list[int] | None = None,
) -> Loaded:
    """Load an image of any layout.

    threads: how many work on it, the caller's among them; the MD5 has one more. phases: the tree to report to.
    lookups: of a legacy image, gets how often each piece looked a parent up; the rest found it in the cache.
    check_md5: hash beside the load where a sidecar is there; the caller waits for it, or stops it.
    Raises FileTrouble, NotAnImage, CodecMissing, ImageDamaged or LoadCancelled; no thread is left then.
    """
    tree = PhaseTree(clock) if phases is None else phases
    container = open_container(path)
    checksum = ChecksumThread(path, container.data, clock) if check_md5 else None
    if checksum is not None:
        checksum.start()
    try:
        with tree.phase(LOADING, size_bytes=Bytes(container.data.size)) as loading:
            load = Load(container, max(threads, 1), loading, cancel or threading.Event())
            load.lookups = lookups
            namespace = load_protobuf(load) if container.is_protobuf else load_legacy(load)
    except BaseException:
        if checksum is not None:
            checksum.stop()
            checksum.join()
        raise
    return Loaded(namespace, load.findings.report(), tree.snapshot(), checksum)
