"""`tidegauge run wal`: measure durable commits, a case for each combination of the lists given.

The matrix runs in the order of the flags: devices, sync modes, value sizes, models, handlers, the last fastest. Each
case has a log of its own, which goes as soon as the case is measured (unless --keep), so the disk holds one at a time.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dashboard.cli import types
from dashboard.cli.exits import Exit
from dashboard.cli.interrupt import stop_on_signals
from dashboard.cli.program import complain
from dashboard.cli.progress import Progress
from dashboard.cli.wal_flags import WalFlags, wal_flags
from dashboard.cli.wal_folder import BadFolder, RunFolder, is_log, remove, run_folder
from engine.errors import TidegaugeError, printable

if TYPE_CHECKING:
    from engine.workloads.wal import WalCase, WalResult

WIDTH_WITHOUT_TERMINAL = 100


@click.command("wal")
@wal_flags
def run_wal(flags: WalFlags) -> int:
    """Commit records from many threads to a write-ahead log on this disk and say how fast, and why.

    Lists make a matrix. Each case runs for --duration after --warmup, or for --iterations.
    """
    if flags.json_to is not None:
        from dashboard.cli.json_target import check_target

        check_target(flags.json_to)
    progress = Progress()
    with stop_on_signals(lambda: progress.note("stopping; once more to end at once")) as stop:
        try:
            with run_folder(flags.path, keep=flags.keep) as folder:
                return _measure_and_report(flags, folder, progress, stop)
        except BadFolder as error:
            raise click.UsageError(str(error)) from error
        finally:
            progress.clear()


def _measure_and_report(flags: WalFlags, folder: RunFolder, progress: Progress, stop: threading.Event) -> int:
    from dashboard.cli.kernels import prepare_kernels
    from dashboard.cli.wal_room import bytes_needed, require_room
    from engine.environment import environment_of

    needs = [bytes_needed(case) for case in _cases(flags, folder)]
    stays = flags.keep or folder.existing_log
    require_room(folder.path, sum(needs) if stays else max(needs))  # now, not after an hour
    if folder.memory:
        progress.note(
            f"note: {printable(str(folder.path))} is on {folder.memory}: memory, where a sync makes nothing durable"
        )
    if folder.existing_log:
        progress.note(f"note: {printable(str(folder.path))} already holds a log: the run adds to it, and it stays")
    prepare_kernels(progress, stop)
    environment = environment_of(folder.path)

    results: list[WalResult] = []
    failure: TidegaugeError | OSError | None = None
    try:
        for result in _measure(flags, folder, progress, stop):
            results.append(result)
    except (TidegaugeError, OSError) as error:  # what was measured before it is still worth printing
        failure = error
    progress.clear()

    finished = failure is None and len(results) == len(needs)
    complete = finished and all(result.complete for result in results)
    _print(flags, results, where=f"{environment.file_system} ({environment.device})")
    if flags.json_to is not None:
        from dashboard.cli.json_target import write_json

        document = {
            "schema": "tidegauge.run/1",
            "lane": "wal",
            "complete": complete,
            "environment": environment,
            "settings": flags.settings(folder.path),
            "results": results,
        }
        write_json(flags.json_to, document)
    if flags.keep or folder.existing_log:
        progress.note(f"the log is kept in {printable(str(folder.path))}")
    if failure is not None:
        return complain(types.one_line(failure), Exit.FAILED)
    failed = [result.error for result in results if result.error]
    if failed:
        return complain(failed[0], Exit.FAILED)
    if not complete and stop.is_set():
        return complain("interrupted; the results are of what was measured until then", Exit.INTERRUPTED)
    return Exit.DONE


def _measure(flags: WalFlags, folder: RunFolder, progress: Progress, stop: threading.Event) -> Iterator[WalResult]:
    """Run the cases one after another; end after the one that was stopped or failed."""
    from dashboard.cli.wal_room import RoomGuard
    from engine.workloads.wal import WalCase, run_case

    cases = [WalCase(**case) for case in _cases(flags, folder)]
    for number, case in enumerate(cases, start=1):
        log = log_folder(folder, case, number=number, alone=len(cases) == 1)
        progress.begin(f"[{number}/{len(cases)}] {_title(case)}")
        result = run_case(case, log, stop=stop, progress=progress.step, may_go_on=RoomGuard(folder.path).trouble)
        if not (flags.keep or folder.existing_log):
            remove(log)
        yield result
        if stop.is_set() or result.error:
            return


def _cases(flags: WalFlags, folder: RunFolder) -> list[dict[str, Any]]:
    """Return the fields of each WalCase. A log that was there before the run keeps every record it holds."""
    return [{**case, "keeps_all": folder.existing_log} for case in flags.cases()]


def log_folder(folder: RunFolder, case: WalCase, *, number: int, alone: bool) -> Path:
    """Return where the log of a case goes: --path itself for a single case, else a folder below named after it."""
    if not folder.temporary and (alone or is_log(folder.path)):
        return folder.path
    return folder.path / f"{number:02}-{case.model}-{case.threads}-{case.device}".replace(":", "-")


def _title(case: WalCase) -> str:
    device = "" if case.device == "real" else f", {case.device}"
    return f"{case.model}, {case.threads} {'handler' if case.threads == 1 else 'handlers'}{device}"


def _print(flags: WalFlags, results: list[WalResult], *, where: str) -> None:
    from dashboard.cli.wal_table import results_text, seed_text

    if not results:
        return
    on_stderr = flags.json_to == "-"
    width = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns
    click.echo(results_text(results, width=width, where=where), err=on_stderr)
    if flags.seed_table:
        click.echo("\n" + seed_text(results, width=width), err=on_stderr)
