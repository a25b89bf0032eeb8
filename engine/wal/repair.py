"""Repairing: cut what a crash left behind the last record and, only if asked to, what is behind damage.

Nothing is thrown away: a segment that is cut is copied to NAME.broken first, one that goes altogether is renamed to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import printable
from engine.storage.contents import copy_file, zero_to_end
from engine.storage.folders import lock_folder, lock_holder, rename_file, sync_folder
from engine.wal.contents import LogContents, TornTail
from engine.wal.errors import LogDamaged, LogLocked
from engine.wal.listing import free_broken_name, list_log, read_block, refuse_unused
from engine.wal.lost import Lost, what_follows
from engine.wal.recovery import prepare_for_writing
from engine.wal.segment import HEADER_BLOCK, segment_number
from engine.wal.walk import LogWalk
from engine.wal.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What a repair found and did."""

    contents: LogContents  # the log as it is now
    torn: TornTail | None  # was cut
    damages: tuple[LogDamaged, ...]  # were salvaged from, in the order met
    lost: Lost | None
    copies: tuple[Path, ...]  # what was cut or set aside, kept under these names

    def to_text(self) -> str:
        """Return what was done; the last line says what the log holds now."""
        lines = [str(damage) for damage in self.damages]
        if self.lost is not None:
            lines.append(self.lost.to_text())
        if self.torn is not None:
            lines.append(
                f"cut: {self.torn.segment.name} at byte {self.torn.offset:,} ({self.torn.found}); "
                f"txid {self.torn.txid:,} was never durable"
            )
        lines += [f"kept: {path.name}" for path in self.copies]
        if not (self.damages or self.torn):
            lines.append("nothing to repair")
        contents = self.contents
        held = f", txid {contents.first_txid:,} to {contents.last_txid:,}" if contents.records else ""
        lines.append(f"{printable(str(contents.folder))}: {counted(contents.records, 'record')}{held}")
        return "\n".join(lines)


def repair_log(folder: Path, *, salvage: bool = False) -> Repair:
    """Make a log fit to be opened for writing. Without `salvage`, damage is raised and nothing is changed.

    Raises NotALog, LogLocked, LogDamaged, UnsupportedVersion, FileTrouble.
    """
    refuse_unused(folder)
    lock = lock_folder(folder)
    if lock is None:
        raise LogLocked(folder, holder=lock_holder(folder))
    with lock:
        earlier = set(list_log(folder).broken)
        damages: list[LogDamaged] = []
        losses: list[Lost] = []
        while True:
            walk = LogWalk(folder, from_disk=True)
            try:
                for _ in walk.pieces():
                    pass
                break
            except LogDamaged as damage:
                if not salvage:
                    raise
                losses.append(what_follows(folder, damage, after=walk.reached))
                damages.append(damage)
                _set_aside(folder, damage)
        contents = prepare_for_writing(walk.contents)
        return Repair(
            contents=contents,
            torn=walk.contents.torn,
            damages=tuple(damages),
            lost=_all(losses),
            copies=tuple(path for path in contents.broken if path not in earlier),
        )


def _set_aside(folder: Path, damage: LogDamaged) -> None:
    """Keep what is before the damage, under .broken names what is not. Each call leaves fewer bytes in use."""
    where = segment_number(damage.segment.name) or 0
    cut_inside = damage.offset >= HEADER_BLOCK and damage.segment.exists()
    if cut_inside:
        copy_file(damage.segment, free_broken_name(damage.segment))
        sync_folder(folder)
    later = [
        path for number, path in list_log(folder).segments if number > where or (number == where and not cut_inside)
    ]
    for path in reversed(later):  # the last one first: no gap, whenever this stops
        rename_file(path, free_broken_name(path))
        sync_folder(folder)
    if cut_inside:
        header = read_block(where, damage.segment).header
        size = header.segment_size if header is not None else HEADER_BLOCK
        zero_to_end(damage.segment, damage.offset, size)


def _all(losses: list[Lost]) -> Lost | None:
    """Merge what several damages, each met after the one before was cut, put out of reach."""
    if not losses:
        return None
    newest = [loss.last_txid for loss in losses if loss.last_txid is not None]
    first = min(loss.first_txid for loss in losses)
    return Lost(first, max(newest) if newest else None, max(loss.readable for loss in losses))
