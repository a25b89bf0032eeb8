"""Recovery: what a log holds, and making its end safe to append to.

`recover` reads and changes nothing. `prepare_for_writing` keeps a copy of a torn tail, zeroes it durably and removes
what was left half made; only after it may the log be appended to, since a txid must never stand for two records that
could both survive. How the end of a log is judged: engine/wal/walk.py.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from engine.storage.contents import copy_file, sync_contents, zero_to_end
from engine.storage.folders import remove_file, sync_folder
from engine.wal.contents import LogContents
from engine.wal.listing import free_broken_name
from engine.wal.walk import LogWalk


def recover(folder: Path, *, from_disk: bool = True) -> LogContents:
    """Read the whole log and return what it holds.

    from_disk: read past the page cache, which after a failed sync may hold what the disk does not. An empty folder is
    a log that was never written to. Raises NotALog, LogDamaged, UnsupportedVersion, FileTrouble.
    """
    walk = LogWalk(folder, from_disk=from_disk)
    for _ in walk.pieces():
        pass
    return walk.contents


def prepare_for_writing(contents: LogContents) -> LogContents:
    """Make the end of a recovered log safe to append to, durably; return the log as it is then.

    The caller holds the folder's lock and appends to `contents.tail` from `tail.used` on, or begins segment 1 where
    there is none. Records that stay are synced: they may come from a process that died before its sync. A crash
    half-way is recovered like the first one. Raises FileTrouble.
    """
    # 1. A copy of what is cut, safe before the original goes.
    broken = contents.broken
    torn, tail = contents.torn, contents.tail
    if torn is not None and torn.length:
        copy = free_broken_name(torn.segment)
        copy_file(torn.segment, copy)
        broken = (*broken, copy)
        sync_folder(contents.folder)
    # 2. Files that must not be used as they are; the last one first, so that no gap appears whenever this stops.
    doomed = contents.unsafe_prepared if tail is not None else contents.prepared
    if torn is not None and torn.whole_segment:
        doomed = (torn.segment, *contents.prepared)
    for path in (*contents.temporary, *reversed(doomed)):
        remove_file(path)
        sync_folder(contents.folder)
    # 3. The end of the last segment.
    if tail is not None:
        if contents.dirty_tail or (torn is not None and not torn.whole_segment):
            zero_to_end(tail.path, tail.used, tail.header.segment_size)
        else:
            sync_contents(tail.path)
    sync_folder(contents.folder)
    return dataclasses.replace(
        contents,
        torn=None,
        dirty_tail=False,
        prepared=tuple(path for path in contents.prepared if path not in doomed),
        unsafe_prepared=(),
        temporary=(),
        broken=broken,
    )
