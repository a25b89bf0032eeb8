"""Load an image: the one entry point, whatever its layout.

    loaded = load_image(Path("fsimage_42"), clock=SystemClock())
    loaded.namespace, loaded.integrity, loaded.phases, loaded.wait_for_checksum()

A load can be watched (`phases`), cancelled (`cancel`: its memory is free when LoadCancelled arrives) and repeated.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.fsimage.checksum import ChecksumResult, ChecksumThread
from engine.fsimage.columns import MAX_ROWS, Namespace
from engine.fsimage.container import open_container
from engine.fsimage.id_map import IdMap, IdsCollide, make_id_map
from engine.fsimage.integrity import MOST, IntegrityReport, Trouble
from engine.fsimage.legacy_load import load_legacy
from engine.fsimage.load_state import Load
from engine.fsimage.protobuf_load import load_protobuf
from engine.measure.clock import Clock
from engine.measure.phases import PhaseSnapshot, PhaseTree
from engine.native.kernel import compile_all
from engine.units import Bytes

COMPILING = "CompilingKernels"  # ours: never hidden in a phase of the load
LOADING = "LoadingFsImage"
SAFE_MODE = "SafeMode"


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image in memory, what is wrong with it, and where the time went."""

    namespace: Namespace
    integrity: IntegrityReport
    phases: tuple[PhaseSnapshot, ...]
    checksum: ChecksumThread | None
    block_map: IdMap | None = None  # from block id to its place in BlockColumns

    def wait_for_checksum(self, timeout: float | None = None) -> ChecksumResult | None:
        """Return what the MD5 check found; None where it was not asked for, or still runs after `timeout` seconds."""
        return None if self.checksum is None else self.checksum.result(timeout)


def compile_kernels(tree: PhaseTree) -> int:
    """Compile or load every kernel as a phase of its own; return how many had to be compiled. Before the first load."""
    with tree.phase(COMPILING) as phase:
        done = 0

        def progress(ready: int, total: int) -> None:
            nonlocal done
            phase.expect(total)
            phase.advance(ready - done)
            done = ready

        return compile_all(progress)


def load_image(
    path: Path,
    *,
    clock: Clock,
    threads: int = 2,
    phases: PhaseTree | None = None,
    cancel: threading.Event | None = None,
    check_md5: bool = True,
    block_map: bool = False,
    lookups: list[int] | None = None,
) -> Loaded:
    """Load an image of any layout.

    threads: how many work on it, the caller's among them; the MD5 has one more. phases: the tree to report to.
    block_map: build the map from block id to file too, as the phase SafeMode; 4 to 24 bytes a block.
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
        blocks = _map_blocks(load, namespace, tree) if block_map else None
    except BaseException:
        if checksum is not None:
            checksum.stop()
            checksum.join()
        raise
    return Loaded(namespace, load.findings.report(), tree.snapshot(), checksum, blocks)


def _map_blocks(load: Load, namespace: Namespace, tree: PhaseTree) -> IdMap:
    """Map every block id to its place; ids that stand twice go to the report."""
    block_id = namespace.blocks.block_id
    if block_id.size > MAX_ROWS:
        raise load.container.damage("INODE", 0, f"{block_id.size:,} blocks to map", f"{MAX_ROWS:,}")
    with tree.phase(SAFE_MODE, total=int(block_id.size)) as phase:
        try:
            found, lost, doubles = make_id_map(
                block_id, threads=load.threads, phase=phase, cancel=load.cancel, most=MOST
            )
        except IdsCollide as error:
            raise load.container.damage("INODE", 0, "block ids made to collide", "ids handed out upwards") from error
        phase.advance(int(block_id.size))
    load.findings.count(Trouble.DUPLICATE_BLOCK, lost)
    for double in doubles:
        row = int(np.searchsorted(namespace.inodes.block_start, double.row, side="right")) - 1
        inode_id = int(namespace.inodes.inode_id[row])
        text = f"block {double.inode_id} of inode {inode_id} is an earlier block's too"
        load.findings.example(Trouble.DUPLICATE_BLOCK, text, inode_id=inode_id)
    return found
