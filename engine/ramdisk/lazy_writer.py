"""The lazy writer: one thread for each disk volume, woken the moment a block is finalised.

Volumes take from one queue, so each is as busy as it can be, and a slow or failing one holds nobody up. A block is
persisted when its copy is synced, has its final name, and its folder is synced; before that it stays at risk and is
shown so. An error is retried from the RAM copy with growing pauses, on whichever volume is free then: a file whose
sync failed is thrown away, never synced again. A RAM copy that does not match its checksums is never persisted.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import FileTrouble, TidegaugeError
from engine.ramdisk.copying import BadChunk, Copier, CopyJob, CopyStopped, Pace, refuses_direct
from engine.ramdisk.core import Core
from engine.ramdisk.errors import CorruptReplica, NoRoom
from engine.ramdisk.replica import Replica, State
from engine.ramdisk.replica_file import Footer, Kind, encode_tail, read_checksums, read_footer
from engine.ramdisk.volumes import Volume, replica_name
from engine.storage.file_calls import Place

_JOIN_SECONDS = 30.0


class LazyWriter:
    """One volume's thread."""

    def __init__(self, core: Core, volume: Volume, pace: Pace) -> None:
        self._core, self._volume = core, volume
        self._stop = threading.Event()
        self._helper = ThreadPoolExecutor(1, thread_name_prefix=f"lazy-reader-{volume.number}")
        self._pace = pace
        self._copier = Copier(core.calls, pace, self._helper, rate=lambda: core.live.persist_rate, stop=self._stop)
        self._refused_direct = False
        self._thread = threading.Thread(target=self._run, name=f"lazy-writer-{volume.number}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """End after the part being copied; the core's conditions must be notified too."""
        self._stop.set()

    def join(self) -> bool:
        """Wait for the end; return whether it came in time."""
        self._thread.join(_JOIN_SECONDS)
        self._helper.shutdown()
        return not self._thread.is_alive()

    def _run(self) -> None:
        core, number = self._core, self._volume.number
        while (replica := core.next_job(number)) is not None:
            try:
                path = self._persist(replica)
            except CopyStopped:
                core.not_persisted(replica, number, retry=False)
            except BadChunk as bad:
                self._give_up_corrupt(replica, bad.offset)
            except FileNotFoundError as error:
                self._note_missing(replica, error)
            except (OSError, TidegaugeError) as error:
                self._note_failure(replica, error)
            else:
                core.persisted(replica, number, path)

    def _persist(self, replica: Replica) -> Path:
        """Make a durable copy and return it. Raises OSError and what the copier raises."""
        calls, folder = self._core.calls, self._volume.replicas
        final = folder / replica_name(replica.block_id)
        if not replica.in_ram:
            # Its bytes went to the disk already, and a slow disk would take as long for them as for a copy.
            self._pace.take(replica.length, self._core.live.persist_rate, self._stop)
            if self._stop.is_set():
                raise CopyStopped
            self._sync_in_place(final)
            return final
        if self._volume.room() < replica.stored_bytes:
            raise NoRoom(replica.owner.name, size=replica.stored_bytes, why=f"{self._volume.root} is full")
        copying = folder / replica_name(replica.block_id, "copying")
        try:
            self._copy(replica, copying)
            calls.rename(copying, final, Place.COPY_PUBLISH)
            calls.sync_folder(folder)
        except BaseException:
            self._remove(copying)
            self._remove(final)  # its folder entry may not be durable: the next attempt makes a new file
            raise
        return final

    def _sync_in_place(self, path: Path) -> None:
        """Sync a block that was written to this volume for want of memory."""
        calls = self._core.calls
        descriptor = calls.open_existing(path, Place.COPY_READ)
        try:
            calls.sync(descriptor)
        finally:
            calls.close(descriptor)
        calls.sync_folder(path.parent)

    def _copy(self, replica: Replica, target: Path) -> None:
        calls, file = self._core.calls, replica.owner
        source = calls.open_existing(self._core.ram_path(replica), Place.COPY_READ)
        descriptor = -1
        try:
            footer = read_footer(calls, source)
            if isinstance(footer, str) or footer.block_id != replica.block_id or footer.length != replica.length:
                raise BadChunk(0)
            expected = self._expected(source, footer)
            is_deferred = footer.kind is Kind.PENDING
            footer = replace(footer, kind=Kind.CRC32C) if is_deferred else footer
            self._remove(target)
            descriptor = calls.create(target, Place.COPY_CREATE)
            job = CopyJob(source, descriptor, footer, expected)
            cells = self._copy_by_mode(job, replica)
            calls.sync(descriptor)
            if self._mode() in ("direct", "fadvise"):
                calls.drop_from_cache(descriptor, 0, 0)
        finally:
            calls.close(source)
            calls.close(descriptor)
        if is_deferred and not file.is_deleted:
            self._complete_ram_copy(replica, footer, cells)

    def _copy_by_mode(self, job: CopyJob, replica: Replica) -> npt.NDArray[np.uint32]:
        def is_wanted() -> bool:
            return replica.state is State.AT_RISK

        mode = self._mode()
        try:
            return self._copier.copy(job, mode, is_wanted)
        except OSError as error:
            if mode != "direct" or not refuses_direct(error):
                raise
        self._refused_direct = True
        self._core.report("warn", f"{self._volume.root}: no direct writes here; copying in mode fadvise")
        self._core.calls.set_direct(job.target, False)
        return self._copier.copy(job, "fadvise", is_wanted)

    def _mode(self) -> str:
        mode = self._core.live.copy_mode
        return "fadvise" if mode == "direct" and self._refused_direct else mode

    def _expected(self, source: int, footer: Footer) -> npt.NDArray[np.uint32] | None:
        if footer.kind is not Kind.CRC32C:
            return None
        cells = read_checksums(self._core.calls, source, footer)
        if isinstance(cells, str):
            raise BadChunk(0)
        return cells

    def _complete_ram_copy(self, replica: Replica, footer: Footer, cells: npt.NDArray[np.uint32]) -> None:
        """Give the RAM copy the checksums it was written without, so that reads from memory are checked too.

        The cells go first: a footer that speaks of them must not be there without them.
        """
        calls, tail = self._core.calls, memoryview(encode_tail(footer, cells))
        try:
            descriptor = calls.open_existing(self._core.ram_path(replica), Place.COPY_READ, writable=True)
        except OSError:
            return  # it was deleted meanwhile
        try:
            calls.write(descriptor, tail[:-128], footer.length, Place.RAM_WRITE)
            calls.write(descriptor, tail[-128:], footer.length + len(tail) - 128, Place.RAM_WRITE)
        finally:
            calls.close(descriptor)

    def _remove(self, path: Path) -> None:
        try:
            self._core.calls.remove(path)
        except OSError as error:
            self._core.report("warn", str(FileTrouble(path, "remove", error)))

    def _give_up_corrupt(self, replica: Replica, offset: int) -> None:
        file, path = replica.owner, self._core.ram_path(replica)
        at = replica.index * file.block_size + offset
        if self._core.given_up(replica, self._volume.number, State.CORRUPT):
            error = CorruptReplica(file.name, block=replica.index, offset=at, path=path)
            self._core.report("error", f"{error}; it is not persisted")

    def _note_missing(self, replica: Replica, error: FileNotFoundError) -> None:
        """Tell a RAM copy that is gone (lost: nothing to retry from) from a disk folder that is."""
        core = self._core
        if replica.in_ram and not core.ram_path(replica).exists():
            if core.given_up(replica, self._volume.number, State.LOST):
                core.report(
                    "error",
                    f"{FileTrouble(core.ram_path(replica), 'persist the block', error)}: block {replica.index:,} of "
                    f"{replica.owner.name!r} is lost, it was in memory only",
                )
        else:
            self._note_failure(replica, error)

    def _note_failure(self, replica: Replica, error: OSError | TidegaugeError) -> None:
        failures = self._core.not_persisted(replica, self._volume.number, retry=True)
        if failures and failures & (failures - 1) == 0:  # 1, 2, 4, 8: an hour of it is a dozen lines
            text = error if isinstance(error, TidegaugeError) else FileTrouble(self._volume.replicas, "persist", error)
            self._core.report(
                "error",
                f"{text}: block {replica.index:,} of {replica.owner.name!r} stays at risk (attempt {failures:,})",
            )
