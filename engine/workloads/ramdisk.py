"""The RAM-disk workload: the experiment of HDFS-6581, with a durable baseline, three states and a read-back.

One case writes some files in quick succession and takes each one's time from create to close. Policies:

    disk        through the page cache, not synced at close: what HDFS does
    disk-sync   each block synced when it ends, its folder at close
    lazy        to memory, persisted behind the writer

States before the first file: `clean` (dirty pages written out, and the cache dropped where that is permitted),
`dirty-cache` (as many dirty pages of other data as the kernel allows), `full-ram` (memory full of files that are not
persisted yet, the lazy writer at work on them). Each case has a store of its own.

Every case writes its files twice, whatever its policy. The first time all is new: memory is touched for the first
time, the disk finds its blocks (`first_use_file_seconds`). Then they are persisted and deleted, the state is made,
and the same files are written again, as in a store that has been in use (`file_seconds`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from engine.errors import TidegaugeError
from engine.measure.clock import Clock, SystemClock
from engine.ramdisk.core import StoreSettings
from engine.ramdisk.meters import Meters
from engine.ramdisk.replica import Checksum, Policy, State
from engine.ramdisk.store import Store
from engine.storage.page_cache import dirty_limit, empty_page_cache, write_dirty
from engine.units import GIB, MIB, SECOND
from engine.workloads.stream import Stream

POLICIES = tuple(policy.value for policy in Policy)
STATES = ("clean", "dirty-cache", "full-ram")
_PIECE = 8 * MIB
_TICK_SECONDS = 0.1
_DRAIN_SECONDS = 3600.0
_SAMPLE_NS = SECOND // 4
_FILLER = "filler-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RamdiskCase:
    """What one case runs. rate and duration_ns: a steady stream instead of `files` files."""

    policy: str
    checksum: str = "on"
    block_size_bytes: int = 128 * MIB
    state: str = "clean"
    copy: str = "direct"
    files: int = 3
    file_size_bytes: int = 2 * GIB
    chunk_bytes: int = 64 << 10
    persist_rate: int = 0
    rate: int | None = None
    duration_ns: int = 60 * SECOND
    verify: bool = False
    seed: int = 1


class StreamPoint(msgspec.Struct, frozen=True):
    """The backlog at one moment of a steady stream."""

    seconds: float
    written_bytes: int
    backlog_bytes: int
    oldest_at_risk_seconds: float


class RamdiskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one case measured, in base units; the field names are the contract of `--json`."""

    policy: str
    checksum: str
    block_size_bytes: int
    state: str
    copy: str | None  # None: this policy copies nothing
    ram: str  # the file system of the RAM directory
    files: int
    file_size_bytes: int
    chunk_bytes: int
    mean_file_seconds: float | None
    file_seconds: list[float]
    mean_first_use_file_seconds: float | None = None  # the same files on the new store, before all else
    first_use_file_seconds: list[float] = []
    improvement_ratio: dict[str, float] = {}  # baseline policy -> 1 - ours / theirs of the same case
    persist_bytes_per_second: float | None
    drain_seconds: float | None  # from the last close until nothing was at risk
    at_risk_bytes: int  # at the last close: what a power cut then would have lost
    fallback_blocks: int
    evicted_blocks: int
    write_stalls: int
    write_stall_seconds: float
    persist_errors: int
    caches_dropped: bool | None  # None: not tried in this state
    other_dirty_bytes: int
    rate: int | None = None
    elapsed_seconds: float | None = None
    written_bytes: int = 0
    backlog_bytes_max: int = 0
    oldest_at_risk_seconds_max: float = 0.0
    stream: list[StreamPoint] = []
    verified: bool | None = None
    complete: bool = True
    error: str = ""


class RamdiskProgress(msgspec.Struct, frozen=True):
    """Where a running case is."""

    phase: Literal["prepare", "first use", "dirty cache", "fill memory", "write", "stream", "drain", "verify"]
    fraction: float | None
    ops_per_second: float = 0.0


Progress = Callable[[RamdiskProgress], None]


def run_case(
    case: RamdiskCase,
    settings: StoreSettings,
    scratch: Path,
    *,
    stop: threading.Event,
    progress: Progress,
    clock: Clock | None = None,
    report: Callable[[str, str], None] = lambda severity, text: None,
) -> RamdiskResult:
    """Run one case on a new store with `settings`; return what was measured, also when it was cut short.

    scratch: a folder on the disk for other data; what the case puts there it removes. An error of the store ends the
    case with `error` set. The store's folders stay for the caller to remove. Raises what Store.open raises.
    """
    wanted = replace(
        settings,
        policy=Policy(case.policy),
        checksum=Checksum(case.checksum),
        block_size=case.block_size_bytes,
        chunk=case.chunk_bytes,
        copy_mode=case.copy,
        persist_rate=case.persist_rate,
    )
    with Store.open(wanted, clock=clock, report=report, held=case.state == "full-ram") as store:
        run = _Run(case, store, scratch, stop, progress, clock or SystemClock())
        try:
            return run.stream() if case.rate else run.files()
        finally:
            run.clean_up()


def compare(results: list[RamdiskResult]) -> list[RamdiskResult]:
    """Return results with improvement_ratio filled in: against the baselines of the same block size and state.

    A baseline has the same checksums where it was measured so, else checksums on: a disk has nobody to defer them to.
    """
    compared = []
    for result in results:
        ratios = {}
        for baseline in ("disk", "disk-sync"):
            other = baseline_of(result, results, baseline)
            if result.policy != baseline and other is not None and result.mean_file_seconds and other.mean_file_seconds:
                ratios[baseline] = 1 - result.mean_file_seconds / other.mean_file_seconds
        compared.append(msgspec.structs.replace(result, improvement_ratio=ratios))
    return compared


def baseline_of(result: RamdiskResult, results: list[RamdiskResult], policy: str) -> RamdiskResult | None:
    """Return the result of a baseline policy to compare with, or None."""
    alike = [
        other
        for other in results
        if other.policy == policy
        and (other.block_size_bytes, other.state) == (result.block_size_bytes, result.state)
        and not other.rate
    ]
    for checksum in (result.checksum, "on"):
        for other in alike:
            if other.checksum == checksum:
                return other
    return alike[0] if alike else None


class _Run:
    """One case in progress."""

    def __init__(
        self, case: RamdiskCase, store: Store, scratch: Path, stop: threading.Event, progress: Progress, clock: Clock
    ) -> None:
        self._case, self._store, self._stop, self._progress, self._clock = case, store, stop, progress, clock
        self._dirty_file = scratch / "other-data"
        self._piece = np.frombuffer(np.random.default_rng(case.seed).bytes(_PIECE), np.uint8).copy()
        self._caches_dropped: bool | None = None
        self._other_dirty = 0
        self._trouble = ""
        self._first_use: list[float] = []

    def files(self) -> RamdiskResult:
        """Use the store once, prepare the state, write the files, let the backlog drain, read back if asked."""
        case = self._case
        try:
            self._use_once()
            seconds = []
            if not self._trouble and not self._stop.is_set():
                self._prepare()
                seconds = self._write_files("write")
        except TidegaugeError as error:
            self._trouble, seconds = str(error), []
        at_risk = self._at_risk()
        drained = self._drain()
        verified = None
        if case.verify and not self._trouble and not self._stop.is_set():
            verified = self._verify(len(seconds))
        result = self._result(seconds, at_risk, drained)
        complete = len(seconds) == case.files and drained is not None and not self._trouble and verified is not False
        return msgspec.structs.replace(result, verified=verified, complete=complete, error=self._trouble)

    def stream(self) -> RamdiskResult:
        """Write at a steady rate for the case's time, sampling the backlog; then let it drain."""
        case, store = self._case, self._store
        assert case.rate is not None
        rate = case.rate
        stream = Stream(
            store,
            self._clock,
            rate=lambda: rate,
            file_size=case.file_size_bytes,
            keep_bytes=max(store.settings.ram_capacity, case.file_size_bytes),
            trouble=self._note_trouble,
        )
        blocks = -(-min(case.file_size_bytes, store.settings.ram_capacity) // case.block_size_bytes)
        store.prepare_spares(blocks, case.block_size_bytes, self._stop.is_set)
        self._prepare()
        began = self._clock.monotonic_ns()
        points: list[StreamPoint] = []
        stream.start()
        while not self._stop.is_set() and not self._trouble:
            elapsed = self._clock.monotonic_ns() - began
            points.append(self._point(elapsed, stream.written_bytes))
            if elapsed >= case.duration_ns:
                break
            self._progress(RamdiskProgress("stream", elapsed / case.duration_ns))
            self._clock.wait(self._stop, min(_SAMPLE_NS, case.duration_ns - elapsed) / SECOND)
        stream.stop()
        elapsed = self._clock.monotonic_ns() - began
        at_risk = self._at_risk()
        drained = self._drain()
        return msgspec.structs.replace(
            self._result([], at_risk, drained),
            rate=rate,
            elapsed_seconds=elapsed / SECOND,
            written_bytes=stream.written_bytes,
            backlog_bytes_max=max((point.backlog_bytes for point in points), default=0),
            oldest_at_risk_seconds_max=max((point.oldest_at_risk_seconds for point in points), default=0.0),
            stream=points,
            complete=drained is not None and not self._trouble and elapsed >= case.duration_ns,
            error=self._trouble,
        )

    def clean_up(self) -> None:
        """Remove the other data."""
        self._dirty_file.unlink(missing_ok=True)

    # The state before.

    def _use_once(self) -> None:
        """Write the case's files to the new store, persist and delete them, and forget what was counted."""
        store = self._store
        store.hold_persist(False)
        self._first_use = self._write_files("first use")
        self._drain()
        for number in range(len(self._first_use)):
            store.delete(f"file-{number}")
        store.hold_persist(self._case.state == "full-ram")
        with store.core.guard:
            store.core.meters = Meters()

    def _prepare(self) -> None:
        case, store = self._case, self._store
        self._progress(RamdiskProgress("prepare", None))
        if case.state == "full-ram":
            self._fill_memory()
        self._caches_dropped = empty_page_cache() if case.state != "dirty-cache" else None
        if case.state == "dirty-cache":
            self._progress(RamdiskProgress("dirty cache", None))
            room = store.core.volumes[0].room()
            size = min(dirty_limit(), max(room - 2 * case.files * case.file_size_bytes, 0))
            self._other_dirty = write_dirty(self._dirty_file, size, lambda: not self._stop.is_set())
        store.hold_persist(False)

    def _fill_memory(self) -> None:
        """Fill memory with files that nobody has persisted yet; the lazy writer is held meanwhile."""
        store, number = self._store, 0
        size = store.settings.block_size
        capacity = max(store.core.memory.capacity, 1)
        while store.core.memory.free >= size + MIB + size // 64 and not self._stop.is_set():
            self._progress(RamdiskProgress("fill memory", 1 - store.core.memory.free / capacity))
            with store.create(f"{_FILLER}{number:06d}", policy=Policy.LAZY) as writer:
                for _ in range(size // _PIECE or 1):
                    writer.write(memoryview(self._piece.data)[: min(size, _PIECE)])
            number += 1

    # Writing and reading.

    def _write_files(self, phase: Literal["first use", "write"]) -> list[float]:
        """Write the case's files; return the seconds of each, of fewer where it was stopped or failed."""
        seconds: list[float] = []
        try:
            for number in range(self._case.files):
                began = self._clock.monotonic_ns()
                if not self._write_file(number, phase):
                    break
                seconds.append((self._clock.monotonic_ns() - began) / SECOND)
        except TidegaugeError as error:
            self._trouble = str(error)
        return seconds

    def _write_file(self, number: int, phase: Literal["first use", "write"]) -> bool:
        """Write one file; return False where it was stopped."""
        case, written = self._case, 0
        with self._store.create(f"file-{number}") as writer:
            for piece in self._pieces(number):
                if self._stop.is_set():
                    writer.abort()
                    return False
                writer.write(piece)
                written += len(piece)
                self._progress(RamdiskProgress(phase, (number + written / case.file_size_bytes) / case.files))
        return True

    def _pieces(self, number: int) -> Iterator[memoryview]:
        """Yield a file's content: one random piece, its first 16 bytes saying which file and piece it is."""
        view = memoryview(self._piece.data)
        for index, at in enumerate(range(0, self._case.file_size_bytes, _PIECE)):
            self._piece[:16] = np.array([number + 1, index], np.int64).view(np.uint8)
            yield view[: self._case.file_size_bytes - at]

    def _drain(self) -> float | None:
        """Wait until nothing is at risk; return how long it took, None where it did not end."""
        began = self._clock.monotonic_ns()
        total = max(self._store.core.tracker.backlog_bytes, 1)
        while not self._store.wait_persisted(_TICK_SECONDS):
            left = self._store.core.tracker.backlog_bytes
            self._progress(RamdiskProgress("drain", 1 - left / total))
            waited = self._clock.monotonic_ns() - began
            if self._stop.is_set() or waited > _DRAIN_SECONDS * SECOND:
                return None
        return (self._clock.monotonic_ns() - began) / SECOND

    def _verify(self, files: int) -> bool:
        """Read every byte back and compare; lazy files from their disk copies, their memory freed first."""
        store = self._store
        store.core.lower_capacity(0)
        while store.core.evict_ahead():
            pass
        buffer = memoryview(bytearray(_PIECE))
        for number in range(files):
            try:
                with store.open_file(f"file-{number}") as reader:
                    at = 0
                    for piece in self._pieces(number):
                        part = buffer[: len(piece)]
                        reader.read_into(part, at)
                        if part != piece:
                            self._trouble = f"file-{number}: other bytes than were written, near byte {at:,}"
                            return False
                        at += len(piece)
                        self._progress(
                            RamdiskProgress("verify", (number + at / self._case.file_size_bytes) / max(files, 1))
                        )
                        if self._stop.is_set():
                            return False
            except TidegaugeError as error:
                self._trouble = str(error)
                return False
        return True

    # Results.

    def _at_risk(self) -> int:
        """Return what a power cut now would lose of the case's files."""
        states = (State.AT_RISK, State.UNSYNCED, State.CORRUPT)
        core = self._store.core
        with core.guard:
            files = [file for name, file in core.files.items() if not name.startswith(_FILLER)]
            return sum(block.length for file in files for block in file.blocks if block.state in states)

    def _point(self, elapsed: int, written: int) -> StreamPoint:
        core = self._store.core
        with core.guard:
            oldest = core.tracker.at_risk.first
            age = core.clock.monotonic_ns() - oldest.since_ns if oldest is not None else 0
            return StreamPoint(elapsed / SECOND, written, core.tracker.backlog_bytes, age / SECOND)

    def _result(self, seconds: list[float], at_risk: int, drained: float | None) -> RamdiskResult:
        case, core = self._case, self._store.core
        meters = core.meters
        busy = meters.persist_busy_ns / SECOND / len(core.volumes)
        return RamdiskResult(
            policy=case.policy,
            checksum=case.checksum,
            block_size_bytes=case.block_size_bytes,
            state=case.state,
            copy=case.copy if case.policy == "lazy" else None,
            ram=core.ram.label,
            files=case.files,
            file_size_bytes=case.file_size_bytes,
            chunk_bytes=case.chunk_bytes,
            mean_file_seconds=sum(seconds) / len(seconds) if seconds else None,
            file_seconds=seconds,
            mean_first_use_file_seconds=sum(self._first_use) / len(self._first_use) if self._first_use else None,
            first_use_file_seconds=self._first_use,
            persist_bytes_per_second=meters.persisted_bytes / busy if busy and meters.persisted_bytes else None,
            drain_seconds=drained,
            at_risk_bytes=at_risk,
            fallback_blocks=meters.fallback_blocks,
            evicted_blocks=meters.evicted_blocks,
            write_stalls=meters.write_stalls,
            write_stall_seconds=meters.write_stall_ns / SECOND,
            persist_errors=meters.persist_errors,
            caches_dropped=self._caches_dropped,
            other_dirty_bytes=self._other_dirty,
        )

    def _note_trouble(self, text: str) -> None:
        self._trouble = self._trouble or text
