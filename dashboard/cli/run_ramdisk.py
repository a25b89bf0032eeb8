"""`tidegauge run ramdisk`: HDFS-6581's experiment on this machine, a case for each combination of the lists given.

Each case has a store of its own, in temporary folders on the RAM disk and on the disks, gone when the case is done.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from dashboard.cli import types
from dashboard.cli.exits import Exit
from dashboard.cli.interrupt import stop_on_signals
from dashboard.cli.program import complain
from dashboard.cli.progress import Progress
from dashboard.cli.ramdisk_flags import RamdiskFlags, ramdisk_flags
from dashboard.cli.wal_folder import folder_on_disk, remove, temporary_folder
from engine.errors import FileTrouble, TidegaugeError, printable
from engine.units import format_size

if TYPE_CHECKING:
    from dashboard.cli.ramdisk_room import Sizes
    from engine.environment import Environment
    from engine.workloads.ramdisk import RamdiskResult

WIDTH_WITHOUT_TERMINAL = 100
_MOST_NOTES = 20


@click.command("ramdisk")
@ramdisk_flags
def run_ramdisk(flags: RamdiskFlags) -> int:
    """Write files to a RAM disk that is persisted lazily, and to disk, and say which is faster and what it risks.

    Lists make a matrix. With --rate a steady stream shows the backlog grow and drain.
    """
    if flags.json_to is not None:
        from dashboard.cli.json_target import check_target

        check_target(flags.json_to)
    progress = Progress()
    with stop_on_signals(lambda: progress.note("stopping; once more to end at once")) as stop:
        try:
            with contextlib.ExitStack() as folders:
                return _Run(flags, folders, progress, stop).run()
        finally:
            progress.clear()


class _Run:
    """One run: its folders, cases, results."""

    def __init__(
        self, flags: RamdiskFlags, folders: contextlib.ExitStack, progress: Progress, stop: threading.Event
    ) -> None:
        """Make the temporary folders. Raises NotTmpfs, FileTrouble."""
        from engine.ramdisk.volumes import check_ram_parent

        self._flags, self._progress, self._stop = flags, progress, stop
        self._label, _ = check_ram_parent(flags.ram_dir, may_be_disk=flags.ram_dir_is_not_tmpfs)
        self._ram = folders.enter_context(temporary_folder(flags.ram_dir, keep=False))
        parents = flags.disk_dir or (folder_on_disk(),)
        for parent in parents:
            if not parent.is_dir():
                raise FileTrouble(parent, "use it as a disk directory", NotADirectoryError(20, "Not a directory"))
        self._disks = tuple(folders.enter_context(temporary_folder(parent, keep=False)) for parent in parents)
        self._notes = 0

    def run(self) -> int:
        """Measure, print, and return the exit code."""
        from dashboard.cli.kernels import prepare_kernels
        from dashboard.cli.ramdisk_room import scale
        from engine.environment import environment_of

        sizes = scale(self._flags, self._disks)
        for note in sizes.notes:
            self._progress.note(f"note: {note}")
        self._note_memory_disks()
        prepare_kernels(self._progress, self._stop)
        environment = environment_of(self._disks[0])
        results: list[RamdiskResult] = []
        failure: TidegaugeError | OSError | None = None
        copies = self._flags.copy or ("direct",)
        cases: list[dict[str, Any]] = []
        try:
            copies = self._flags.copy or self._probe()
            cases = list(self._flags.cases(copies=copies, file_size=sizes.file_size, largest_block=sizes.largest_block))
            results.extend(self._measure(cases, sizes))
        except (TidegaugeError, OSError) as error:  # what was measured before it is still worth printing
            failure = error
        self._progress.clear()
        return self._report(results, cases, copies, sizes, environment, failure)

    def _report(
        self,
        results: list[RamdiskResult],
        cases: list[dict[str, Any]],
        copies: tuple[str, ...],
        sizes: Sizes,
        environment: Environment,
        failure: TidegaugeError | OSError | None,
    ) -> int:
        from engine.workloads.ramdisk import compare

        flags = self._flags
        results = compare(results)
        complete = failure is None and len(results) == len(cases) and all(result.complete for result in results)
        self._print(results, f"{environment.file_system} ({environment.device})", sizes)
        if flags.json_to is not None:
            from dashboard.cli.json_target import write_json

            document = {
                "schema": "tidegauge.run/1",
                "lane": "ramdisk",
                "complete": complete,
                "environment": environment,
                "settings": flags.settings(
                    copies=copies, file_size=sizes.file_size, capacity=sizes.capacity, ram=self._label
                ),
                "notes": sizes.notes,
                "results": results,
            }
            write_json(flags.json_to, document)
        if failure is not None:
            return complain(types.one_line(failure), Exit.FAILED)
        failed = [result.error for result in results if result.error]
        if failed:
            return complain(failed[0], Exit.FAILED)
        if not complete and self._stop.is_set():
            return complain("interrupted; the results are of what was measured until then", Exit.INTERRUPTED)
        if not complete:
            return complain("not every file was written, persisted and read back", Exit.FAILED)
        return Exit.DONE

    def _probe(self) -> tuple[str, ...]:
        """Return the way of copying that suits the first disk."""
        if "lazy" not in self._flags.policy:
            return ("direct",)
        from engine.measure.clock import SystemClock
        from engine.ramdisk.probe import probe_copy

        self._progress.begin("probing how to copy")
        found = probe_copy(self._ram, self._disks[0], SystemClock(), lambda: not self._stop.is_set())
        rates = ", ".join(f"{mode} {format_size(rate)}/s" for mode, rate in found.bytes_per_second.items())
        self._progress.note(f"copy mode {found.mode}, by a probe: {rates}")
        return (found.mode,)

    def _measure(self, cases: list[dict[str, Any]], sizes: Sizes) -> Iterator[RamdiskResult]:
        """Run the cases one after another; end after the one that was stopped or failed."""
        from engine.ramdisk.core import StoreSettings
        from engine.workloads.ramdisk import RamdiskCase, run_case

        for number, fields in enumerate(cases, start=1):
            case = RamdiskCase(**fields)
            volumes = tuple(disk / f"case-{number}" for disk in self._disks)
            settings = StoreSettings(
                ram_dir=self._ram,
                disk_dirs=volumes,
                ram_capacity=sizes.capacity,
                ram_dir_may_be_disk=self._flags.ram_dir_is_not_tmpfs,
                block_size=case.block_size_bytes,
            )
            self._progress.begin(f"[{number}/{len(cases)}] {_title(case.policy, case.checksum, case.block_size_bytes)}")
            try:
                yield run_case(
                    case,
                    settings,
                    self._disks[0],
                    stop=self._stop,
                    progress=self._progress.step,
                    report=self._note,
                )
            finally:
                for folder in (*volumes, *self._ram.glob("tidegauge-*")):
                    remove(folder)
            if self._stop.is_set():
                return

    def _note(self, severity: str, text: str) -> None:
        """Show what the store reports; of a flood only the beginning."""
        self._notes += 1
        if self._notes <= _MOST_NOTES:
            self._progress.note(f"{severity}: {text}")

    def _note_memory_disks(self) -> None:
        from engine.environment import mount_of

        for disk in self._disks:
            mount = mount_of(disk)
            if mount is not None and mount.is_memory:
                self._progress.note(f"note: {printable(str(disk.parent))} is {mount.file_system}: memory, no disk")
        memory = mount_of(self._ram)
        if memory is not None and memory.is_memory and not memory.has_huge_pages and "lazy" in self._flags.policy:
            self._progress.note(
                f"note: {printable(memory.point)} has no huge pages; a tmpfs mounted with huge=within_size, named by "
                "--ram-dir, can be several times as fast"
            )
        if "not tmpfs" in self._label:
            self._progress.note(f"note: {printable(str(self._flags.ram_dir))} is {self._label}")

    def _print(self, results: list[RamdiskResult], disk: str, sizes: Sizes) -> None:
        from dashboard.cli.ramdisk_table import results_text, seed_text

        if not results:
            return
        on_stderr = self._flags.json_to == "-"
        width = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns
        first = results[0]
        what = "a stream" if first.rate else f"{first.files} files of {format_size(first.file_size_bytes)}"
        limit = f", persist limited to {format_size(self._flags.persist_rate)}/s" if self._flags.persist_rate else ""
        where = (
            f"{what}; RAM disk {self._label}, {format_size(sizes.capacity)}; disk {disk}"
            f"{f', {len(self._disks)} volumes' if len(self._disks) > 1 else ''}{limit}; checksums per "
            f"{format_size(first.chunk_bytes)}"
        )
        click.echo(results_text(results, width=width, where=where), err=on_stderr)
        if self._flags.seed_table:
            click.echo("\n" + seed_text(results, width=width), err=on_stderr)


def _title(policy: str, checksum: str, block_size: int) -> str:
    return f"{policy}, checksums {checksum}, {format_size(block_size)}"
