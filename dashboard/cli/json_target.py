"""--json FILE|-: checked before anything is measured, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import click

from engine.errors import FileTrouble, printable


def check_target(target: str) -> None:
    """Raise UsageError where a file could not be written there, before an hour of measuring."""
    if target == "-":
        return
    path = Path(target)
    try:
        problem = _problem(path)
    except (OSError, ValueError) as error:
        problem = str(error)
    if problem:
        raise click.UsageError(f"--json {printable(target)}: {problem}")


def write_json(target: str, document: dict[str, Any]) -> None:
    """Write one JSON object and a newline, to stdout or to a file that appears whole. Raises FileTrouble."""
    import msgspec  # here, since most commands are asked for no JSON, and a short one would wait for it

    data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    if target == "-":
        click.echo(data.decode("utf-8"), nl=False)
        return
    path = Path(os.path.realpath(target))  # a link stays a link
    try:
        if (Path(target).is_absolute() and Path(target).parts[1] in ("dev", "proc")) or (
            path.exists() and not path.is_file()
        ):
            with Path(target).open("ab") as stream:  # /dev/stdout, a pipe: nothing to replace, or to cut
                stream.write(data)
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as unfinished:
            try:
                unfinished.write(data)
                unfinished.flush()
                Path(unfinished.name).chmod(0o666 & ~_umask())
                Path(unfinished.name).replace(path)
            except OSError:
                with contextlib.suppress(OSError):
                    Path(unfinished.name).unlink()
                raise
    except OSError as error:
        raise FileTrouble(target, "write the results", error) from error


def _problem(path: Path) -> str:
    if path.is_dir():
        return "this is a folder; give a file name, or - for stdout"
    if path.exists():
        return "" if os.access(path, os.W_OK) else "this file cannot be written"
    parent = path.absolute().parent
    if not parent.is_dir():
        return f"its folder {printable(str(parent))} does not exist; make it first"
    return "" if os.access(parent, os.W_OK | os.X_OK) else f"its folder {printable(str(parent))} cannot be written"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
