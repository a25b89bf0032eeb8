"""Recovery: what the journal says, and what is really there.

    in the RAM folder   on a volume    the block is
    whole               -              at risk again, and queued (in the order it was written)
    -                   whole          on disk
    whole               whole          on disk: the safer copy stays, the other goes
    -                   -              lost, and its file is named
    .open, .copying, spare-n           half done: removed
    of no file                         removed: its file was deleted, or never whole

"Whole" is: it ends with a footer of this store for this block and length, and has the size that the footer says. A
copy on a volume has its final name only after its sync, so no data needs to be read. A block on a volume that the
journal does not know to be durable (a fallback not synced yet) is synced again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.ramdisk.core import Core
from engine.ramdisk.journal import Replay
from engine.ramdisk.replica import Policy, Replica, State, StoredFile
from engine.ramdisk.replica_file import read_footer
from engine.ramdisk.volumes import FoundReplica, find_replicas
from engine.storage.file_calls import FileCalls, Place
from engine.units import Bytes


@dataclass(frozen=True, slots=True)
class LostFile:
    """A file of which blocks were in memory only. size: bytes of those blocks."""

    name: str
    blocks: int
    lost_blocks: int
    size: Bytes


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery found."""

    files: int
    blocks_on_disk: int
    blocks_in_ram: int
    bytes_in_ram: int
    lost: tuple[LostFile, ...]
    removed_files: int
    ram_was_wiped: bool

    def to_text(self) -> str:
        """Return it in a sentence or two."""
        text = (
            f"{self.files:,} files: {self.blocks_on_disk:,} blocks on disk, {self.blocks_in_ram:,} in memory are "
            "persisted again"
        )
        if self.lost:
            names = ", ".join(repr(file.name) for file in self.lost[:3])
            more = f" and {len(self.lost) - 3:,} more" if len(self.lost) > 3 else ""
            text += f"; {len(self.lost):,} files were in memory only and are lost: {names}{more}"
        return text


def recover(core: Core, replay: Replay, *, ram_was_wiped: bool) -> Recovered:
    """Fill a new core from the journal and the folders; remove what belongs to nobody. Raises FileTrouble."""
    calls = core.calls
    in_ram, others = _whole_replicas(core, core.ram.path)
    leftovers = list(others)
    wanted = {block.block_id: block for file in replay.files.values() for block in file.blocks}
    on_disk: dict[int, tuple[int, Path]] = {}
    for volume in core.volumes:
        found, rest = _whole_replicas(core, volume.replicas)
        leftovers += rest
        for block_id, (path, length) in found.items():
            if block_id in on_disk or block_id not in wanted or wanted[block_id].length != length:
                leftovers.append(path)
            else:
                on_disk[block_id] = volume.number, path
    leftovers += [path for path, _ in (entry for key, entry in in_ram.items() if key not in wanted)]
    blocks = sorted(wanted.values(), key=lambda block: block.block_id)
    for block in blocks:
        ram = in_ram.get(block.block_id)
        if ram is not None and ram[1] != block.length:
            leftovers.append(ram[0])
            ram = None
        disk = on_disk.get(block.block_id)
        _place(core, block, ram is not None, disk[0] if disk else None, replay)
        if ram is not None and disk is not None:
            leftovers.append(ram[0])
    for path in leftovers:
        calls.strike(Place.RECOVER)
        path.unlink(missing_ok=True)
    _publish(core, replay)
    lost = tuple(filter(None, (_lost(file) for file in replay.files.values())))
    core.meters.lost_blocks += sum(file.lost_blocks for file in lost)
    return Recovered(
        files=len(replay.files),
        blocks_on_disk=sum(not block.in_ram and block.state is not State.LOST for block in blocks),
        blocks_in_ram=sum(block.in_ram for block in blocks),
        bytes_in_ram=sum(block.length for block in blocks if block.in_ram),
        lost=lost,
        removed_files=len(leftovers),
        ram_was_wiped=ram_was_wiped,
    )


def _place(core: Core, block: Replica, in_ram: bool, volume: int | None, replay: Replay) -> None:
    """Decide where a block is, and whether it is at risk."""
    file = block.owner
    block.since_ns = core.clock.monotonic_ns()
    if volume is not None:
        block.volume = volume
        if file.policy is Policy.DISK:
            block.state = State.UNSYNCED
            core.tracker.add(block)
        elif file.policy is Policy.DISK_SYNC or block.block_id in replay.persisted:
            block.state = State.ON_DISK
            core.tracker.add(block)
        else:
            core.tracker.add_at_risk(block)
    elif in_ram:
        block.volume, block.in_ram = -1, True
        core.memory.take_over(block.stored_bytes)
        core.tracker.add_at_risk(block)
    else:
        block.state = State.LOST
        core.tracker.add(block)


def _publish(core: Core, replay: Replay) -> None:
    for file in replay.files.values():
        core.known[file.file_id] = file
        core.files[file.name] = file
    core.next_file, core.next_block = replay.highest_file + 1, replay.highest_block + 1


def _whole_replicas(core: Core, folder: Path) -> tuple[dict[int, tuple[Path, int]], list[Path]]:
    """Return (block id -> (path, length) of whole replicas, every other file) of a folder."""
    replicas, others = find_replicas(folder)
    whole: dict[int, tuple[Path, int]] = {}
    for found in replicas:
        length = _length_if_whole(core.calls, found, core.store_id) if found.stage == "replica" else None
        if length is None:
            others.append(found.path)
        else:
            whole[found.block_id] = found.path, length
    return whole, others


def _length_if_whole(calls: FileCalls, found: FoundReplica, store_id: bytes) -> int | None:
    try:
        descriptor = calls.open_existing(found.path, Place.RECOVER)
    except OSError:
        return None
    try:
        footer = read_footer(calls, descriptor)
    except OSError:
        return None
    finally:
        calls.close(descriptor)
    if isinstance(footer, str) or footer.store_id != store_id or footer.block_id != found.block_id:
        return None
    return footer.length


def _lost(file: StoredFile) -> LostFile | None:
    lost = [block for block in file.blocks if block.state is State.LOST]
    if not lost:
        return None
    return LostFile(file.name, len(file.blocks), len(lost), Bytes(sum(block.length for block in lost)))
