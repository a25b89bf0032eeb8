"""Is a sync real? Time it against a write that bypasses the page cache and waits for the device.

Three timings of the same 4 KiB block, taken in turns so that a slow moment hits all of them:

    cached     pwrite alone: into memory
    synced     pwrite, then fdatasync: what the log does
    direct     pwrite with O_DIRECT | O_DSYNC: around the page cache, durable on return

If `synced` is nearly as fast as `cached`, or much faster than `direct`, fdatasync did not wait for the device.
That `direct` itself is honest nobody can prove from here: a hypervisor or a drive may answer from memory.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from engine.environment import Mount
from engine.errors import FileTrouble
from engine.units import MIB, Bytes, Nanoseconds, format_duration

BLOCK = Bytes(4096)
FILE_BYTES = MIB
ROUNDS = 40
IMPLAUSIBLE_NS = Nanoseconds(
    12_000
)  # below: no device answers so soon; the fastest with power-loss protection take more
FAST_NS = Nanoseconds(1_000_000)  # below, on a virtual disk: the host may hold it in memory
SHORTCUT = 3  # synced this many times faster than direct: it did not do the same work

Level = Literal["ok", "warn", "fail"]


class SyncProbe(NamedTuple):
    """Median times of one 4 KiB write each way; direct_ns is None where the file system refuses O_DIRECT."""

    rounds: int
    cached_ns: Nanoseconds
    synced_ns: Nanoseconds
    direct_ns: Nanoseconds | None
    direct_refused: str  # why there is no direct_ns, else ""


def probe_sync(folder: Path, rounds: int = ROUNDS) -> SyncProbe:
    """Time the three writes in a temporary file in `folder`, `rounds` times each, in turns.

    The file is written and synced whole first, so that no timed write allocates space. Raises FileTrouble
    where the folder cannot be written.
    """
    with contextlib.ExitStack() as stack:
        try:
            plain, name = tempfile.mkstemp(prefix=".tidegauge-probe-", dir=folder)
            stack.callback(os.unlink, name)
            stack.callback(os.close, plain)
            os.pwrite(plain, bytes(FILE_BYTES), 0)
            os.fsync(plain)
            block = stack.enter_context(mmap.mmap(-1, BLOCK))  # page aligned, as O_DIRECT wants it
            block.write(os.urandom(BLOCK))
            direct, refused = _open_direct(Path(name), block)
            if direct is not None:
                stack.callback(os.close, direct)
            offsets = _offsets()
            cached, synced, straight = [], [], []
            for _ in range(rounds):
                cached.append(_timed_write(plain, block, next(offsets), sync=False))
                synced.append(_timed_write(plain, block, next(offsets), sync=True))
                if direct is not None:
                    straight.append(_timed_write(direct, block, next(offsets), sync=False))
        except OSError as error:
            raise FileTrouble(folder, "probe its syncs", error) from error
    return SyncProbe(
        rounds=rounds,
        cached_ns=_median(cached),
        synced_ns=_median(synced),
        direct_ns=_median(straight) if straight else None,
        direct_refused=refused,
    )


def judge_sync(probe: SyncProbe, mount: Mount | None, *, virtual: bool) -> tuple[Level, str]:
    """Say whether fdatasync can be believed, and why. virtual: the disk belongs to a virtual machine."""
    synced = format_duration(probe.synced_ns)
    if mount is not None and mount.is_memory:
        return "warn", f"{mount.point} is {mount.file_system}: memory, nothing here is durable (a sync takes {synced})"
    if probe.direct_ns is None:
        times = f"write + fdatasync {synced}; no direct write to compare with: {probe.direct_refused}"
    else:
        times = f"write + fdatasync {synced}, direct durable write {format_duration(probe.direct_ns)}"
        if probe.synced_ns * SHORTCUT < probe.direct_ns:
            if probe.synced_ns < probe.cached_ns + IMPLAUSIBLE_NS:
                return "fail", f"{times}: fdatasync returns without waiting for the device"
            return "warn", f"{times}: fdatasync does much less than a durable write should"
    if probe.synced_ns < IMPLAUSIBLE_NS:
        return "warn", f"{times}: sooner than any device answers, so something holds it in memory"
    if virtual and probe.synced_ns < FAST_NS:
        return "warn", f"{times}: it waits, but the disk is virtual and this fast: the host may answer from its memory"
    if probe.direct_ns is None:
        return "warn", times
    return "ok", f"{times}: it waits for the device"


def _open_direct(path: Path, block: mmap.mmap) -> tuple[int | None, str]:
    """Return (descriptor, "") or (None, why not); some file systems refuse at the open, some at the first write."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC | os.O_CLOEXEC)
    except OSError as error:
        return None, os.strerror(error.errno or errno.EINVAL)
    try:
        os.pwrite(descriptor, block, 0)
    except OSError as error:
        os.close(descriptor)
        return None, os.strerror(error.errno or errno.EINVAL)
    return descriptor, ""


def _timed_write(descriptor: int, block: mmap.mmap, offset: int, *, sync: bool) -> int:
    began = time.perf_counter_ns()
    written = os.pwrite(descriptor, block, offset)
    if sync:
        os.fdatasync(descriptor)
    elapsed = time.perf_counter_ns() - began
    if written != BLOCK:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return elapsed


def _offsets() -> Iterator[int]:
    """Walk through the file's blocks: never the same block twice in a row, which a device could merge."""
    block = 0
    while True:
        yield block * BLOCK
        block = (block + 1) % (FILE_BYTES // BLOCK)


def _median(values: list[int]) -> Nanoseconds:
    return Nanoseconds(round(statistics.median(values)))
