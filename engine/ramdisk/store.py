"""A store: files written to memory first, persisted lazily, found again after a crash.

    with Store.open(StoreSettings(ram_dir=Path("/dev/shm"), disk_dirs=(folder,), ram_capacity=8 * GIB)) as store:
        with store.create("a") as file:
            file.write(data)
        store.read("a")
        store.wait_persisted(seconds=10)

Any number of threads may use it; a writer or a reader belongs to one of them. `close` leaves what is not persisted on
the RAM disk, where the next `open` finds it, unless memory was lost meanwhile: then the lost files are named in
`recovered.lost`, stay in the list, and say so when they are read, until they are deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from engine.environment import usable_cores
from engine.errors import BadValue, TidegaugeError, UnknownChoice
from engine.measure.clock import Clock, SystemClock
from engine.ramdisk.copying import COPY_MODES, PIECE, Pace
from engine.ramdisk.core import Core, Live, Report, StoreSettings
from engine.ramdisk.errors import NotAllowed
from engine.ramdisk.evictor import Evictor
from engine.ramdisk.journal import Journal
from engine.ramdisk.lazy_writer import LazyWriter
from engine.ramdisk.memory import Grant
from engine.ramdisk.reading import FileReader, file_lost
from engine.ramdisk.recovery import Recovered, recover
from engine.ramdisk.replica import Checksum, Policy, State, StoredFile
from engine.ramdisk.replica_file import file_size
from engine.ramdisk.tracker import Tracker
from engine.ramdisk.volumes import JOURNAL, check_ram_parent, open_ram_folder, open_volumes
from engine.ramdisk.writing import FileWriter
from engine.storage.file_calls import FileCalls
from engine.units import SECOND, Bytes, format_size

_MAX_NAME = 4096
TIB = 1 << 40


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file as it stands. at_risk_bytes: what a power cut now would lose; lost_bytes: what is lost already."""

    name: str
    length: Bytes
    blocks: int
    policy: Policy
    in_ram_bytes: Bytes
    at_risk_bytes: Bytes
    lost_bytes: Bytes


class Store:
    """One open store. Make it with `Store.open`."""

    def __init__(self, core: Core, recovered: Recovered, settings: StoreSettings) -> None:
        """Take over what `open` made."""
        self.core, self.recovered, self.settings = core, recovered, settings
        pace = Pace(core.clock)
        self._writers = [LazyWriter(core, volume, pace) for volume in core.volumes]
        self._evictor = Evictor(core)
        self._closing = threading.Lock()
        self._is_closed = False
        for writer in self._writers:
            writer.start()
        self._evictor.start()

    @classmethod
    def open(
        cls,
        settings: StoreSettings,
        *,
        clock: Clock | None = None,
        calls: FileCalls | None = None,
        report: Report | None = None,
        held: bool = False,
    ) -> Store:
        """Open a store, making it where it is new; recovers what is there.

        calls: with planned faults, in tests. report: takes (severity, text). held: the lazy writers wait for
        `hold_persist(False)`. Raises BadValue, NotTmpfs, NotAStore, StoreLocked, FileTrouble, LogDamaged.
        """
        _check(settings)
        clock, calls, report = clock or SystemClock(), calls or FileCalls(), report or _nobody
        check_ram_parent(settings.ram_dir, may_be_disk=settings.ram_dir_may_be_disk)
        store_id, volumes = open_volumes(settings.disk_dirs)
        journal: Journal | None = None
        try:
            ram_path = settings.ram_dir / f"tidegauge-{store_id}"
            was_there = ram_path.is_dir()
            ram = open_ram_folder(settings.ram_dir, store_id, may_be_disk=settings.ram_dir_may_be_disk)
            journal, replay = Journal.open(volumes[0].root / JOURNAL, clock)
            core = Core(
                settings=settings,
                store_id=bytes.fromhex(store_id),
                ram=ram,
                volumes=volumes,
                journal=journal,
                calls=calls,
                clock=clock,
                report=report,
                live=Live(settings.checksum, settings.copy_mode, settings.persist_rate, is_held=held),
                helper=_helper(settings),
                tracker=Tracker(len(volumes)),
            )
            recovered = recover(core, replay, ram_was_wiped=bool(replay.files) and not was_there)
            if replay.files or replay.highest_file:
                core.compact()
        except BaseException:
            if journal is not None:
                journal.close()
            for volume in volumes:
                volume.lock.release()
            raise
        return cls(core, recovered, settings)

    # Files.

    def create(
        self,
        name: str,
        *,
        policy: Policy | None = None,
        block_size: int | None = None,
        checksum: Checksum | None = None,
    ) -> FileWriter:
        """Begin a file; it is there once its writer was closed. Raises BadValue, NameTaken, StoreClosed."""
        if not name or len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME or not name.isprintable():
            raise BadValue(what="file name", given=name, allowed=f"1 to {_MAX_NAME:,} printable bytes")
        if block_size is not None:
            _check_block_size(block_size)
        return FileWriter(self.core, self.core.new_file(name, policy=policy, block_size=block_size, checksum=checksum))

    def open_file(self, name: str) -> FileReader:
        """Open a file for reading. Raises NoSuchFile, FileLost, StoreClosed."""
        file = self.core.find(name)
        if any(block.state is State.LOST for block in file.blocks):
            raise file_lost(file)
        return FileReader(self.core, file)

    def read(self, name: str, offset: int = 0, size: int | None = None) -> bytes:
        """Return bytes of a file. Raises as `open_file` and FileReader.read do."""
        with self.open_file(name) as reader:
            return reader.read(offset, size)

    def delete(self, name: str) -> None:
        """Remove a file and every copy of it. Raises NoSuchFile, LogPoisoned."""
        self.core.delete(name)

    def append(self, name: str) -> None:
        """Refuse: a file is written once. Raises NoSuchFile, NotAllowed."""
        self.core.find(name)
        raise NotAllowed(name, "appending")

    def truncate(self, name: str, size: int) -> None:
        """Refuse: a file is written once. Raises NoSuchFile, NotAllowed."""
        self.core.find(name)
        raise NotAllowed(name, f"truncating to {size:,} bytes")

    def files(self) -> tuple[FileInfo, ...]:
        """Return every file, by name."""
        with self.core.guard:
            return tuple(_info(file) for _, file in sorted(self.core.files.items()))

    # Waiting and controls.

    def wait_persisted(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait until nothing is at risk; return whether that is so."""
        core = self.core
        give_up = core.clock.monotonic_ns() + round(seconds * SECOND)
        with core.guard:
            while core.tracker.at_risk.first is not None:
                left = give_up - core.clock.monotonic_ns()
                if left <= 0 or stop() or core.is_closing:
                    return False
                core.settled.wait(min(left / SECOND, 0.2))
        return True

    def hold_persist(self, held: bool) -> None:
        """Make the lazy writers pause before their next block, or go on."""
        with self.core.guard:
            self.core.live.is_held = held
            self.core.work.notify_all()

    def retry_now(self) -> None:
        """Try again at once what failed to persist."""
        with self.core.guard:
            self.core.tracker.retry_now()
            self.core.work.notify_all()

    def set_copy_mode(self, mode: str) -> None:
        """Copy in another mode from the next block on. Raises UnknownChoice."""
        if mode not in COPY_MODES:
            raise UnknownChoice(what="copy mode", given=mode, choices=COPY_MODES)
        self.core.live.copy_mode = mode

    def set_checksum(self, checksum: Checksum) -> None:
        """Write new files with checksums on, deferred or off."""
        self.core.live.checksum = checksum

    def set_persist_rate(self, rate: int) -> None:
        """Limit the lazy writers to `rate` bytes a second together; 0 is no limit."""
        self.core.live.persist_rate = max(rate, 0)

    def prepare_spares(self, count: int, size: int, stop: Callable[[], bool] = lambda: False) -> int:
        """Touch memory for `count` blocks of `size` bytes now, so that writing them overwrites; return how many."""
        stored = file_size(size, self.settings.chunk)
        zeros = memoryview(bytes(min(stored, PIECE)))
        grants: list[Grant] = []
        while len(grants) < count and not stop():
            grant = self.core.reserve(stored)
            if grant is None:
                break
            grants.append(grant)
        return sum([self.core.make_spare(grant, zeros) for grant in grants])

    # The end.

    def close(self, *, keep_spares: bool = False) -> bool:
        """Stop, leave what is at risk in memory for the next `open`; return whether all threads ended in time."""
        with self._closing:
            if self._is_closed:
                return True
            self._is_closed = True
            ended = self._stop_threads()
            core = self.core
            if not keep_spares:
                with core.guard:
                    core.memory.drop_spares()
            try:
                core.journal.close()
            except TidegaugeError as error:
                core.report("error", str(error))
            for volume in core.volumes:
                volume.lock.release()
            with core.guard:
                is_empty = core.memory.used == 0 and core.memory.reserved == 0
            if is_empty:
                try:
                    core.ram.path.rmdir()
                except OSError:
                    return ended  # a reader of a deleted file, or someone's own file: theirs to keep
            return ended

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _stop_threads(self) -> bool:
        core = self.core
        for writer in self._writers:
            writer.ask_to_stop()
        with core.guard:
            core.is_closing = True
            for condition in (core.work, core.low, core.settled):
                condition.notify_all()
        late = [writer for writer in self._writers if not writer.join()]
        ended = self._evictor.join() and not late
        if core.helper is not None:
            core.helper.shutdown()
        return ended


def _check(settings: StoreSettings) -> None:
    """Raise BadValue or UnknownChoice for settings that cannot be."""
    _check_block_size(settings.block_size)
    chunk = settings.chunk
    if chunk < 512 or chunk > PIECE or chunk & (chunk - 1):
        raise BadValue(what="chunk", given=format_size(chunk), allowed="a power of two from 512B to 8MiB")
    if settings.copy_mode not in COPY_MODES:
        raise UnknownChoice(what="copy mode", given=settings.copy_mode, choices=COPY_MODES)
    if not settings.disk_dirs or len(set(settings.disk_dirs)) != len(settings.disk_dirs):
        raise BadValue(
            what="disk directories", given=", ".join(map(str, settings.disk_dirs)), allowed="one or more, each once"
        )
    if settings.ram_capacity < 0:
        raise BadValue(what="RAM capacity", given=str(settings.ram_capacity), allowed="0 or more bytes")


def _check_block_size(size: int) -> None:
    if not 4096 <= size <= TIB or size % 4096:
        raise BadValue(
            what="block size",
            given=format_size(size),
            allowed="a multiple of 4096 bytes, 4 KiB to 1 TiB",
            example="128MiB",
        )


def _helper(settings: StoreSettings) -> Executor | None:
    """Return who computes checksums beside the write, None to compute them in line."""
    cores = usable_cores()
    wanted = cores > 1 if settings.checksum_beside is None else settings.checksum_beside
    return ThreadPoolExecutor(max(cores - 1, 1), thread_name_prefix="checksums") if wanted else None


def _info(file: StoredFile) -> FileInfo:
    def size(*states: State) -> Bytes:
        return Bytes(sum(block.length for block in file.blocks if block.state in states))

    return FileInfo(
        name=file.name,
        length=Bytes(file.length),
        blocks=len(file.blocks),
        policy=file.policy,
        in_ram_bytes=Bytes(sum(block.length for block in file.blocks if block.in_ram)),
        at_risk_bytes=size(State.AT_RISK, State.UNSYNCED, State.CORRUPT),
        lost_bytes=size(State.LOST),
    )


def _nobody(severity: str, text: str) -> None:
    """Report to nobody."""
