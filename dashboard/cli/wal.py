"""`tidegauge wal`: look at a log's bytes, say whether they are whole, make them fit to be opened again."""

from __future__ import annotations

from pathlib import Path

import click

from dashboard.cli.exits import Exit
from dashboard.cli.json_target import check_target, write_json
from dashboard.cli.types import count

_MOST = 2**62
_DIRECTORY = click.argument("directory", type=click.Path(path_type=Path))


@click.group("wal", no_args_is_help=True)
def wal() -> None:
    """Dump, verify or repair the write-ahead log in a folder."""


@wal.command("dump")
@_DIRECTORY
@click.option("--from", "start", type=count("txid", minimum=1, maximum=_MOST), default=1, help="Begin with this txid.")
@click.option("--limit", type=count("limit", minimum=1, maximum=_MOST), help="Stop after so many records.")
def dump(directory: Path, start: int, limit: int | None) -> None:
    """Print each record of the log in DIRECTORY: place, txid, size, checksum, the start of its payload.

    Lines that begin with # are about segments and about how the log ends.
    """
    from engine.wal.dump import dump_log

    for line in dump_log(directory, start_txid=start, limit=limit):
        click.echo(line)


@wal.command("verify")
@_DIRECTORY
@click.option("--json", "target", metavar="FILE|-", help="Write the verdict as JSON, to a file or stdout (-).")
def verify(directory: Path, target: str | None) -> int:
    """Read every record of the log in DIRECTORY and say whether it is whole.

    Exit code 0: every record that was durable is there. A torn tail, a commit that a crash cut short, is no loss.
    """
    from engine.wal.verify import verify_log

    if target is not None:
        check_target(target)
    verdict = verify_log(directory)
    if target is not None:
        write_json(target, verdict.to_json())
    if target != "-":
        click.echo(verdict.to_text())
    return Exit.DONE if verdict.is_whole else Exit.FAILED


@wal.command("repair")
@_DIRECTORY
@click.option("--salvage", is_flag=True, help="Where there is damage, keep everything before it; say what is lost.")
def repair(directory: Path, salvage: bool) -> int:
    """Cut the torn tail of the log in DIRECTORY, as opening it for writing would.

    Damage, bytes that were durable once, is cut only with --salvage. Either way what is cut is kept in a copy
    whose name ends in .broken.
    """
    from dashboard.cli.program import complain
    from engine.wal.errors import LogDamaged
    from engine.wal.repair import repair_log

    try:
        click.echo(repair_log(directory, salvage=salvage).to_text())
    except LogDamaged as damage:
        return complain(f"{damage}; nothing was changed; --salvage keeps everything before it", Exit.FAILED)
    return Exit.DONE
