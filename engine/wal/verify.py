"""Verifying: read every record of a log and say whether it is whole, without changing anything."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from engine.errors import FileTrouble, printable
from engine.storage.folders import is_locked
from engine.units import Txid, format_size
from engine.wal.contents import LogContents, Segment, TornTail
from engine.wal.errors import LogDamaged
from engine.wal.listing import refuse_unused
from engine.wal.lost import Lost, what_follows
from engine.wal.walk import LogWalk
from engine.wal.wording import counted

_TRIES = 100  # on a log whose segments go while we read them


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a log holds, and whether that is all it should hold. A torn tail was promised to nobody: still whole."""

    folder: Path
    segments: tuple[Segment, ...]  # whole ones; where there is damage, those before it
    first_txid: Txid
    last_txid: Txid  # of the records that are in order
    is_sealed: bool
    torn: TornTail | None
    damage: LogDamaged | None
    lost: Lost | None  # what lies behind the damage
    prepared: tuple[Path, ...]
    broken: tuple[Path, ...]
    in_use: bool  # a writer has it open; what it appended meanwhile may be missing here

    @property
    def is_whole(self) -> bool:
        """Return whether every record that was durable can be read."""
        return self.damage is None

    @property
    def records(self) -> int:
        """Return how many records are in order."""
        return self.last_txid - self.first_txid + 1

    def to_text(self) -> str:
        """Return the verdict for people; its last line says it in words."""
        used = sum(segment.used for segment in self.segments)
        held = f"txid {self.first_txid:,} to {self.last_txid:,}" if self.records else "no txid"
        segments = counted(len(self.segments), "segment" if self.is_whole else "whole segment")
        lines = [
            f"{printable(str(self.folder))}: {segments}, "
            f"{counted(self.records, 'record')}, {held}, {format_size(used)} used"
        ]
        lines += [_segment_text(segment) for segment in self.segments]
        lines += [f"  {path.name}  prepared, not used yet" for path in self.prepared]
        lines += [f"  {path.name}  a copy of what was cut" for path in self.broken]
        if self.in_use:
            lines.append("a writer has this log open; what it appends meanwhile may be missing here")
        if self.torn is not None:
            lines.append(
                f"torn tail: {self.torn.segment.name}, byte {self.torn.offset:,}: {self.torn.found}; txid "
                f"{self.torn.txid:,} was never durable; opening the log for writing, or repair, cuts it"
            )
        if self.damage is not None:
            lines.append(str(self.damage))
            lines.append(self.lost.to_text() if self.lost else "")
        else:
            lines.append("whole, closed cleanly" if self.is_sealed and not self.torn else "whole")
        return "\n".join(line for line in lines if line)

    def to_json(self) -> dict[str, object]:
        """Return the verdict for programs."""
        torn, damage = self.torn, self.damage
        return {
            "schema": "tidegauge.wal-verify/1",
            "path": str(self.folder),
            "whole": self.is_whole,
            "in_use": self.in_use,
            "log_id": self.segments[0].header.log_id.hex() if self.segments else None,
            "records": self.records,
            "first_txid": self.first_txid if self.records else None,
            "last_txid": self.last_txid if self.records else None,
            "closed_cleanly": self.is_sealed and torn is None and damage is None,
            "segments": [
                {
                    "name": segment.path.name,
                    "records": segment.records,
                    "first_txid": segment.header.first_txid,
                    "used_bytes": segment.used,
                    "segment_size_bytes": segment.header.segment_size,
                }
                for segment in self.segments
            ],
            "prepared": [path.name for path in self.prepared],
            "broken": [path.name for path in self.broken],
            "torn_tail": torn
            and {
                "segment": torn.segment.name,
                "offset": torn.offset,
                "bytes": torn.length,
                "txid": torn.txid,
                "found": torn.found,
            },
            "damage": damage
            and {
                "segment": damage.segment.name,
                "offset": damage.offset,
                "found": damage.found,
                "allowed": damage.allowed,
                "readable_records_behind": self.lost.readable if self.lost else 0,
            },
        }


def verify_log(folder: Path) -> Verdict:
    """Read every record of a log. Raises NotALog, UnsupportedVersion, FileTrouble; damage is in the verdict."""
    refuse_unused(folder)
    if not is_locked(folder):
        return _verify(folder, in_use=False)
    # Between our listing the folder and reading it the writer may have recycled a segment, which looks like a missing
    # one. What is still missing at a second look is.
    last: str | None = None
    for _ in range(_TRIES):
        try:
            verdict = _verify(folder, in_use=True)
        except FileTrouble as trouble:
            if trouble.errno != errno.ENOENT:
                raise
            continue
        if verdict.damage is None or str(verdict.damage) == last:
            return verdict
        last = str(verdict.damage)
    return _verify(folder, in_use=True)


def _verify(folder: Path, *, in_use: bool) -> Verdict:
    walk = LogWalk(folder, from_disk=not in_use)
    try:
        for _ in walk.pieces():
            pass
    except LogDamaged as damage:
        return _of_damage(walk, damage, in_use=in_use)
    return _of_contents(walk.contents, in_use=in_use)


def _of_contents(contents: LogContents, *, in_use: bool) -> Verdict:
    return Verdict(
        folder=contents.folder,
        segments=contents.segments,
        first_txid=contents.first_txid,
        last_txid=contents.last_txid,
        is_sealed=contents.is_sealed,
        torn=contents.torn,
        damage=None,
        lost=None,
        prepared=contents.prepared,
        broken=contents.broken,
        in_use=in_use,
    )


def _of_damage(walk: LogWalk, damage: LogDamaged, *, in_use: bool) -> Verdict:
    return Verdict(
        folder=walk.folder,
        segments=walk.segments,
        first_txid=walk.first_txid,
        last_txid=walk.reached,
        is_sealed=False,
        torn=None,
        damage=damage,
        lost=what_follows(walk.folder, damage, after=walk.reached),
        prepared=(),
        broken=(),
        in_use=in_use,
    )


def _segment_text(segment: Segment) -> str:
    held = f"txid {segment.header.first_txid:,} to {segment.last_txid:,}" if segment.records else "no record yet"
    return f"  {segment.path.name}  {held}, {segment.used:,} of {segment.header.segment_size:,} bytes"
