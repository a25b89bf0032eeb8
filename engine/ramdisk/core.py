"""The store's state and every change of it: what writers, readers, lazy writers and the evictor share.

One lock, `guard`, protects the namespace, the tracker, the sums of memory and the meters. It is held for
microseconds: files are written, read, copied and synced without it. Under it only names on the RAM disk change
(rename, unlink), since a replica that was chosen to be freed must not be opened before it is. Lock order: guard, then
the journal's own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import FileTrouble, TidegaugeError, printable
from engine.measure.clock import Clock
from engine.ramdisk.errors import NameTaken, NoSuchFile, StoreClosed
from engine.ramdisk.journal import Journal
from engine.ramdisk.memory import Grant, MemoryBudget, Spare
from engine.ramdisk.meters import Meters
from engine.ramdisk.replica import Checksum, Policy, Replica, State, StoredFile
from engine.ramdisk.tracker import Tracker
from engine.ramdisk.volumes import RamFolder, Volume, replica_name
from engine.storage.file_calls import FileCalls, Place
from engine.storage.space import disk_room
from engine.units import MIB, SECOND, Nanoseconds

Report = Callable[[str, str], None]  # (severity, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """What a store is opened with. ram_dir, disk_dirs: existing directories, or disk_dirs to be made."""

    ram_dir: Path
    disk_dirs: tuple[Path, ...]
    ram_capacity: int
    ram_dir_may_be_disk: bool = False
    block_size: int = 128 * MIB
    policy: Policy = Policy.LAZY
    checksum: Checksum = Checksum.ON
    chunk: int = 64 << 10
    copy_mode: str = "direct"
    persist_rate: int = 0  # bytes a second over all volumes; 0 is as fast as the disks
    low_watermark: int | None = None  # bytes kept free ahead of need; None: a tenth of the capacity
    checksum_beside: bool | None = None  # compute beside the write; None: where there is a second core
    recycle: bool = True
    retry_first_ns: Nanoseconds = Nanoseconds(SECOND // 10)
    retry_last_ns: Nanoseconds = Nanoseconds(30 * SECOND)


@dataclass(slots=True)
class Live:
    """What controls change while the store runs; each is replaced whole, so any thread may read it."""

    checksum: Checksum
    copy_mode: str
    persist_rate: int
    is_held: bool = False  # the lazy writers pause
    uses_ram: bool = True  # False after the RAM folder was found gone


@dataclass(slots=True)
class Core:
    """The shared state. Fields below `guard` belong to it."""

    settings: StoreSettings
    store_id: bytes
    ram: RamFolder
    volumes: list[Volume]
    journal: Journal
    calls: FileCalls
    clock: Clock
    report: Report
    live: Live
    helper: Executor | None
    tracker: Tracker
    memory: MemoryBudget = field(init=False)
    meters: Meters = field(default_factory=Meters)
    guard: threading.Lock = field(default_factory=threading.Lock)
    work: threading.Condition = field(init=False)  # lazy writers: there is something to persist
    low: threading.Condition = field(init=False)  # evictor: memory runs low, or something became evictable
    settled: threading.Condition = field(init=False)  # whoever waits for the backlog to drain
    files: dict[str, StoredFile] = field(default_factory=dict)
    known: dict[int, StoredFile] = field(default_factory=dict)  # by id; those being closed too
    writing: set[str] = field(default_factory=set)
    next_block: int = 1
    next_file: int = 1
    next_spare: int = 1
    next_volume: int = 0
    is_closing: bool = False
    persisting_since: dict[int, int] = field(default_factory=dict)  # volume -> when its present copy began
    idle: deque[int] = field(default_factory=deque)  # volumes whose lazy writer waits, longest first

    def __post_init__(self) -> None:
        """Make what needs the guard."""
        self.work, self.low = threading.Condition(self.guard), threading.Condition(self.guard)
        self.settled = threading.Condition(self.guard)
        self.memory = MemoryBudget(
            self.settings.ram_capacity,
            really_free=self._really_free,
            remove=self._remove_spare,
            keeps_spares=self.settings.recycle,
        )

    @property
    def low_watermark(self) -> int:
        """Return how much memory the evictor keeps free, ahead of need."""
        mark = self.settings.low_watermark
        return self.memory.capacity // 10 if mark is None else mark

    # Files.

    def new_file(
        self, name: str, *, policy: Policy | None, block_size: int | None, checksum: Checksum | None
    ) -> StoredFile:
        """Take a name for a file to be written. Raises NameTaken, StoreClosed."""
        settings = self.settings
        with self.guard:
            self.check_open()
            if name in self.files or name in self.writing:
                raise NameTaken(name)
            self.writing.add(name)
            file_id, self.next_file = self.next_file, self.next_file + 1
        return StoredFile(
            file_id,
            name,
            block_size=block_size or settings.block_size,
            chunk=settings.chunk,
            checksum=checksum or self.live.checksum,
            policy=policy or settings.policy,
        )

    def new_block(self, file: StoredFile) -> Replica:
        """Add a block to a file that is being written."""
        with self.guard:
            self.check_open()
            block = Replica(self.next_block, file, len(file.blocks))
            self.next_block += 1
            file.blocks.append(block)
        return block

    def publish(self, file: StoredFile) -> None:
        """Note a written file in the journal, durably, and give it its name. Raises what the journal does."""
        with self.guard:
            self.check_open()
            self.known[file.file_id] = file  # before the note: a compaction that runs meanwhile must see the file
        self.calls.strike(Place.CLOSE_FILE)
        try:
            self.journal.note_closed(file)
        except TidegaugeError:
            with self.guard:
                self.known.pop(file.file_id, None)
            raise
        with self.guard:
            self.files[file.name] = file
            self.writing.discard(file.name)
        self.calls.strike(Place.CLOSE_FILE)
        self._compact_if_worth()

    def drop_unpublished(self, file: StoredFile) -> None:
        """Remove the blocks of a file that never was whole."""
        with self.guard:
            self.writing.discard(file.name)
            file.is_deleted = True
            leftovers = [path for block in file.blocks for path in self._drop_block(block, is_delete=False)]
        self._remove_all(leftovers)

    def find(self, name: str) -> StoredFile:
        """Return a file. Raises NoSuchFile, StoreClosed."""
        with self.guard:
            self.check_open()
            file = self.files.get(name)
        if file is None:
            raise NoSuchFile(name)
        return file

    def delete(self, name: str) -> None:
        """Remove a file: from the journal, then every copy of every block. Raises NoSuchFile, LogPoisoned."""
        with self.guard:
            self.check_open()
            file = self.files.pop(name, None)
            if file is None:
                raise NoSuchFile(name)
            file.is_deleted = True  # no compaction notes it again from here
        self.calls.strike(Place.DELETE_FILE)
        try:
            self.journal.note_deleted(file)
        except TidegaugeError:
            with self.guard:
                file.is_deleted = False
                self.files.setdefault(name, file)
            raise
        self.calls.strike(Place.DELETE_FILE)
        with self.guard:
            self.known.pop(file.file_id, None)
            self.meters.deleted_files += 1
            leftovers = [path for block in file.blocks for path in self._drop_block(block, is_delete=True)]
            self.settled.notify_all()
            self.low.notify_all()
        self._remove_all(leftovers)
        self._compact_if_worth()

    def check_open(self) -> None:
        """Raise StoreClosed where the store is closing; under the guard."""
        if self.is_closing:
            raise StoreClosed(self.volumes[0].root)

    # Memory.

    def reserve(self, size: int) -> Grant | None:
        """Set memory aside for a block, evicting for it if need be; None where it must go to disk."""
        if not self.live.uses_ram:
            return None
        began = self.clock.monotonic_ns()
        with self.guard:
            grant = self.memory.reserve(size)
            if grant is None:
                if self.memory.free + self.tracker.evictable_bytes >= size:
                    while grant is None and self._evict_one():
                        grant = self.memory.reserve(size)
                self.meters.write_stalls += 1
                self.meters.write_stall_ns += self.clock.monotonic_ns() - began
            if self.memory.free < self.low_watermark:
                self.low.notify_all()
        if grant is None and not self.ram.path.is_dir():
            self.live.uses_ram = False
            self.report(
                "error", f"{printable(str(self.ram.path))} is gone: blocks go to disk until the store is reopened"
            )
        return grant

    def recycled(self) -> None:
        """Count a block that is written over the memory of an old one."""
        with self.guard:
            self.meters.recycled_files += 1

    def moved(self) -> None:
        """Count a block that memory refused half way."""
        with self.guard:
            self.meters.moved_blocks += 1

    def give_back(self, grant: Grant) -> None:
        """Cancel a reservation."""
        with self.guard:
            self.memory.cancel(grant)

    def make_spare(self, grant: Grant, zeros: memoryview) -> bool:
        """Turn a reservation into a file kept for reuse, its pages touched; return whether it worked."""
        path = self.ram.path / f"spare-{self._spare_number()}"
        descriptor = -1
        is_made = False
        try:
            if grant.spare is not None:
                self.calls.rename(grant.spare.path, path, Place.RAM_CREATE)
                descriptor = self.calls.open_existing(path, Place.RAM_CREATE, writable=True)
            else:
                descriptor = self.calls.create(path, Place.RAM_CREATE)
            self.calls.resize(descriptor, grant.size)
            for at in range(grant.size - grant.growth, grant.size, len(zeros)):
                self.calls.write(descriptor, zeros[: grant.size - at], at, Place.RAM_WRITE)
            is_made = True
        except OSError as error:
            self.report("warn", str(FileTrouble(path, "prepare memory", error)))
        finally:
            self.calls.close(descriptor)
        with self.guard:
            self.memory.cancel(grant)
            if is_made and self.memory.keep(Spare(path, grant.size)):
                return True
        self._remove_spare(path)
        return False

    def _spare_number(self) -> int:
        with self.guard:
            number, self.next_spare = self.next_spare, self.next_spare + 1
        return number

    def evict_ahead(self) -> bool:
        """Evict one replica where memory is below the low watermark; return whether there was one."""
        with self.guard:
            return self.memory.free < self.low_watermark and self._evict_one()

    def lower_capacity(self, capacity: int) -> None:
        """Set another capacity; what is over it is evicted as it becomes evictable."""
        with self.guard:
            self.memory.capacity = capacity
            self.low.notify_all()

    def _evict_one(self) -> bool:
        """Free the RAM copy of the least recently read replica that is safe on disk."""
        victim = self.tracker.take_victim()
        if victim is None:
            return False
        meters, size = self.meters, victim.stored_bytes
        # First the disk copy is what readers get, then the RAM copy goes: in between nothing can be asked for,
        # and a crash finds both, or the disk copy.
        victim.state, victim.in_ram = State.ON_DISK, False
        self._free_ram_file(victim, size)
        meters.evicted_blocks += 1
        meters.evicted_bytes += victim.length
        meters.evicted_without_read += victim.reads == 0
        meters.eviction_window.add(self.clock.monotonic_ns() - victim.since_ns)
        return True

    def _free_ram_file(self, replica: Replica, size: int) -> None:
        """Uncount a replica's memory and keep its file for reuse, or remove it. Nobody has it open."""
        path = self.ram_path(replica)
        self.memory.release(size)
        spare = Spare(self.ram.path / f"spare-{self.next_spare}", size)
        self.next_spare += 1
        try:
            self.calls.rename(path, spare.path, Place.EVICT)
        except OSError:  # someone emptied the RAM disk; then there is nothing to keep
            return
        if not self.memory.keep(spare):
            self._remove_spare(spare.path)

    # Replicas.

    def finalised(self, replica: Replica, *, length: int, grant: Grant | None, volume: int, write_ns: int) -> None:
        """Take over a block whose bytes are all there under its final name."""
        file, meters = replica.owner, self.meters
        with self.guard:
            replica.length, replica.since_ns = length, self.clock.monotonic_ns()
            file.length += length
            if grant is not None:
                replica.in_ram = True
                self.memory.finalise(grant, replica.stored_bytes)
                meters.ram_blocks_written += 1
                meters.ram_bytes_written += length
                meters.ram_write.add(write_ns)
            else:
                replica.volume = volume
                meters.disk_blocks_written += 1
                meters.disk_bytes_written += length
                meters.disk_write.add(write_ns)
                if file.policy is Policy.LAZY:
                    meters.fallback_blocks += 1
                    meters.fallback_bytes += length
            if file.policy is Policy.LAZY:
                self.tracker.add_at_risk(replica)
                self.work.notify_all()
            else:
                replica.state = State.ON_DISK if file.policy is Policy.DISK_SYNC else State.UNSYNCED
                self.tracker.add(replica)

    def pin(self, replica: Replica) -> Path | None:
        """Keep a replica where it is for a reader; return the file to read, None where there is none any more."""
        with self.guard:
            self.check_open()
            if replica.state in (State.DELETED, State.LOST, State.OPEN):
                return None
            self.tracker.pin(replica)
            replica.reads += 1
            if replica.in_ram:
                self.meters.ram_reads += 1
            else:
                self.meters.disk_reads += 1
            return self.path_of(replica)

    def unpin(self, replica: Replica) -> None:
        """Let a replica go."""
        with self.guard:
            self._unpin(replica)

    def ram_path(self, replica: Replica) -> Path:
        """Return where a replica is on the RAM disk."""
        return self.ram.path / replica_name(replica.block_id)

    def disk_path(self, replica: Replica) -> Path:
        """Return where a replica's disk copy is."""
        return self.volumes[replica.volume].replicas / replica_name(replica.block_id)

    def path_of(self, replica: Replica) -> Path:
        """Return the copy to read."""
        return self.ram_path(replica) if replica.in_ram else self.disk_path(replica)

    def drop_bad_ram_copy(self, replica: Replica) -> bool:
        """Go over to the disk copy of a replica whose RAM copy is no good; return whether there is one."""
        with self.guard:
            if replica.state is not State.PERSISTED:
                return False
            if replica.in_ram:
                replica.in_ram, replica.state = False, State.ON_DISK
                self.meters.corrupt_blocks += 1
                self.memory.release(replica.stored_bytes)
                path = self.ram_path(replica)
            else:
                return True
        self._remove_all([path])
        return True

    def pick_volume(self, size: int) -> Volume | None:
        """Return a disk volume with room for `size` bytes, each in turn, or None."""
        with self.guard:
            start, self.next_volume = self.next_volume, self.next_volume + 1
        for k in range(len(self.volumes)):
            volume = self.volumes[(start + k) % len(self.volumes)]
            if volume.room() >= size:
                return volume
        return None

    # The lazy writers' side.

    def next_job(self, volume: int) -> Replica | None:
        """Wait for something to persist and pin it; None when the store closes.

        Of volumes that wait, the one that has waited longest takes: volumes that keep up take turns, and one that is
        busy or slow is passed over.
        """
        with self.guard:
            self.idle.append(volume)
            while not self.is_closing:
                now = self.clock.monotonic_ns()
                is_first = self.idle[0] == volume
                replica = None if self.live.is_held else self.tracker.take(volume, now, shared=is_first)
                if replica is not None:
                    self.idle.remove(volume)
                    if self.idle:
                        self.work.notify_all()  # another one is first now, and there may be more
                    self.tracker.pin(replica)
                    self.persisting_since[volume] = now
                    return replica
                due = self.tracker.next_due_ns() if is_first else None
                self.work.wait(None if due is None or self.live.is_held else max(due - now, 0) / SECOND)
            self.idle.remove(volume)
        return None

    def persisted(self, replica: Replica, volume: int, path: Path) -> None:
        """Take over a durable copy at `path`; removes it where the block was deleted meanwhile."""
        with self.guard:
            now = self.clock.monotonic_ns()
            self.meters.persist_busy_ns += now - self.persisting_since.pop(volume, now)
            is_wanted = replica.state is State.AT_RISK
            if is_wanted:
                replica.volume = volume
                self.meters.persisted_blocks += 1
                self.meters.persisted_bytes += replica.length
                self.meters.persist_window.add(now - replica.since_ns)
                self.tracker.settle(replica, State.PERSISTED if replica.in_ram else State.ON_DISK)
                self.settled.notify_all()
            self._unpin(replica)
            self.low.notify_all()
        if is_wanted:
            self.calls.strike(Place.PERSISTED)
            try:
                self.journal.note_persisted(replica)
            except TidegaugeError as error:  # the copy itself says so at the next start
                self.report("error", f"the journal does not take notes any more: {error}")
        else:
            self._remove_all([path])

    def not_persisted(self, replica: Replica, volume: int, *, retry: bool) -> int:
        """Queue a replica again after an error; return how often it failed in a row (0: deleted meanwhile)."""
        settings = self.settings
        with self.guard:
            now = self.clock.monotonic_ns()
            self.meters.persist_busy_ns += now - self.persisting_since.pop(volume, now)
            failures = 0
            if replica.state is State.AT_RISK:
                if retry:
                    self.meters.persist_errors += 1
                    failures = self.tracker.note_failure(replica)
                    pause = min(settings.retry_first_ns << min(failures - 1, 20), settings.retry_last_ns)
                else:
                    pause = 0  # it was stopped, not refused
                self.tracker.retry_at(replica, now + pause)
                self.work.notify_all()
            self._unpin(replica)
        return failures

    def given_up(self, replica: Replica, volume: int, state: State) -> bool:
        """Take a replica out of the backlog that can never be persisted; return False if it was deleted meanwhile."""
        with self.guard:
            now = self.clock.monotonic_ns()
            self.meters.persist_busy_ns += now - self.persisting_since.pop(volume, now)
            is_wanted = replica.state is State.AT_RISK
            if is_wanted:
                self.tracker.settle(replica, state)
                if state is State.LOST:
                    self.meters.lost_blocks += 1
                    self.memory.release(replica.stored_bytes)
                    replica.in_ram = False
                else:
                    self.meters.corrupt_blocks += 1
                self.settled.notify_all()
            self._unpin(replica)
        return is_wanted

    # Details.

    def _unpin(self, replica: Replica) -> None:
        self.tracker.unpin(replica)
        if replica.state is State.DELETED and replica.pins == 0 and replica.in_ram:
            replica.in_ram = False
            self.memory.release(replica.stored_bytes)  # its pages went with the last open descriptor

    def _drop_block(self, replica: Replica, *, is_delete: bool) -> list[Path]:
        """Forget a block under the guard; return the files that are left to remove."""
        leftovers, state = [], replica.state
        if state is State.OPEN or state is State.DELETED:
            return []
        if state is State.AT_RISK and replica.in_ram and is_delete:
            self.meters.deleted_before_persist_blocks += 1
            self.meters.deleted_before_persist_bytes += replica.length
        self.tracker.forget(replica)
        if replica.volume >= 0:
            leftovers.append(self.disk_path(replica))
        if replica.in_ram:
            if replica.pins == 0:
                replica.in_ram = False
                self._free_ram_file(replica, replica.stored_bytes)
            else:
                leftovers.append(self.ram_path(replica))  # counted until the last reader has closed it
        return leftovers

    def _remove_all(self, paths: list[Path]) -> None:
        for path in paths:
            try:
                self.calls.remove(path)
            except OSError as error:  # recovery finds it without an owner and removes it
                self.report("warn", str(FileTrouble(path, "remove", error)))

    def _remove_spare(self, path: Path) -> None:
        try:
            self.calls.remove(path)
        except OSError:
            return  # the RAM folder is gone, or recovery removes it

    def _really_free(self) -> int:
        try:
            return disk_room(self.ram.path)[1]
        except FileTrouble:
            return 0

    def _compact_if_worth(self) -> None:
        with self.guard:
            if self.is_closing or not self.journal.wants_compaction(len(self.known)):
                return
        self.compact()

    def compact(self) -> None:
        """Write every live file to the journal again and let go of what was noted before."""
        with self.guard:
            base = self.journal.begin_compaction()
            file_ids = list(self.known)
        for file_id in file_ids:
            with self.guard:  # a delete must come before its file is looked at, or be noted behind it
                file = self.known.get(file_id)
                if file is not None and not file.is_deleted:
                    self.journal.note_closed(file, durable=False)
        self.journal.end_compaction(base)
