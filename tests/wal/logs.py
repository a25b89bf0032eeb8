"""Small real logs for tests, committing to them from many threads at once, and reading them back."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.storage.faults import FaultTable
from engine.units import KIB
from engine.wal.errors import LogClosed
from engine.wal.log import Log
from engine.wal.reading import read_records
from engine.wal.recovery import recover
from tests.waiting import run_threads, wait_for

SYNCS = ("fdatasync", "fsync", "dsync", "none")
SMALL = 64 * KIB  # of a segment: zeroing it takes no time, and a few hundred records roll it


def open_log(folder: Path, **settings: object) -> Log:
    """Open a log of small segments."""
    return Log.open(folder, **{"segment_size": SMALL, **settings})  # type: ignore[arg-type]


def payload_of(thread: int, sequence: int, size: int = 100) -> bytes:
    """Return a payload that names its writer and fills the rest with bytes that depend on both."""
    stamp = b"%d:%d:" % (thread, sequence)
    return (stamp + bytes((thread * 31 + sequence * 7 + k) % 256 for k in range(size)))[:size]


def commit_from_threads(log: Log, threads: int, each: int, *, size: int = 100) -> dict[int, bytes]:
    """Commit `each` records from each of `threads` Python threads; return what was acked, by txid.

    Each thread's txids must ascend: its next commit begins after its last one ended. A log that is being reconfigured
    refuses for a moment; the thread asks again.
    """
    acked: dict[int, bytes] = {}
    guard = threading.Lock()

    def run(thread: int) -> None:
        last = 0
        for sequence in range(each):
            payload = payload_of(thread, sequence, size)
            txid = wait_for(lambda payload=payload: _try_to_commit(log, payload))
            assert txid > last
            last = txid
            with guard:
                assert txid not in acked, f"txid {txid} was given twice"
                acked[txid] = payload

    run_threads(*[lambda thread=thread: run(thread) for thread in range(threads)], deadline=60)
    return acked


def _try_to_commit(log: Log, payload: bytes) -> int:
    try:
        return log.commit(payload)
    except LogClosed:
        return 0


def records_of(folder: Path) -> list[tuple[int, bytes]]:
    """Return every record of a log that is not open, oldest first; damage raises."""
    recover(folder)
    return list(read_records(folder))


@contextmanager
def no_leaked_descriptors() -> Iterator[None]:
    """Fail where the block leaves descriptors open, by what they are open on."""
    before = descriptors()
    yield
    leaked = {number: target for number, target in descriptors().items() if before.get(number) != target}
    assert not leaked, f"left open: {leaked}"


def descriptors() -> dict[str, str]:
    """Return this process's open descriptors and what they are open on."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that listed the folder
            found[entry.name] = str(entry.readlink())
    return found


def copy_after_crash(folder: Path, faults: FaultTable, seed: int | None) -> Path:
    """Copy the log folder/"log", open or not, as a crash now may leave it (seed None: the least); return the copy."""
    copy = folder / f"crash-{seed}"
    wait_for(lambda: _copy_unless_files_change(folder / "log", copy), what="a moment without a roll or a recycling")
    faults.after_crash(copy, seed)
    return copy


def _copy_unless_files_change(log: Path, copy: Path) -> bool:
    """Copy the segments; return whether the folder stayed the same, as it does for a disk that stops at an instant."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    before = _entries(log)
    with suppress(FileNotFoundError):
        for name in sorted(before):
            (copy / name).write_bytes((log / name).read_bytes())
    return _entries(log) == before


def _entries(log: Path) -> dict[str, int]:
    """Return the log's segments and the inodes they are."""
    with os.scandir(log) as found:
        return {entry.name: entry.inode() for entry in found if entry.name.endswith(".wal")}
