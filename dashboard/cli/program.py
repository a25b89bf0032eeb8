"""How every command ends: one line on stderr for what went wrong, and an exit code; never a traceback.

what happened                                  stderr                     exit code
the command returned                           -                          0, or the Exit it returned
a command, option or value cannot be used      tidegauge: ...             2
TidegaugeError, an error of the OS             tidegauge: ...             1
Ctrl+C                                         tidegauge: interrupted     130
whoever read our output has gone               - (it asked for no more)   1
a mistake in this program                      tidegauge: ... (+ how to see where)   1
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from dashboard.cli.exits import Exit
from dashboard.cli.types import one_line
from engine.errors import TidegaugeError

SHOW_TRACEBACK = "TIDEGAUGE_TRACEBACK"


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported when they are asked for.

    lazy: command name -> "module:attribute". A name whose module does not exist is left out; a module that
    exists and does not import is a mistake and raises.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order they were declared: the everyday ones first."""
        return [name for name in (*self.commands, *self._lazy) if self.get_command(ctx, name) is not None]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, importing its module if need be."""
        if name not in self._lazy:
            return super().get_command(ctx, name)
        module, _, attribute = self._lazy[name].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest: click compares only with commands that are loaded."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from error


class Program(LazyGroup):
    """The root group: runs the command and turns its end into a line and an exit code."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run a command line and exit. Takes what click's main takes; standalone_mode is always on."""
        extra.pop("standalone_mode", None)
        sys.exit(self._run(args, prog_name or "tidegauge", extra))

    def _run(self, args: Sequence[str] | None, prog_name: str, extra: dict[str, Any]) -> int:
        try:
            outcome = super().main(args=args, prog_name=prog_name, standalone_mode=False, **extra)
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where a reader who has gone can be handled
        except SystemExit as leaving:  # click's own answer to a broken pipe
            return leaving.code if isinstance(leaving.code, int) else Exit.FAILED
        except click.UsageError as error:
            return complain(one_line(error), Exit.USAGE)
        except (click.Abort, KeyboardInterrupt):
            return complain("interrupted", Exit.INTERRUPTED)
        except (click.ClickException, TidegaugeError) as error:
            return complain(one_line(error), Exit.FAILED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                _drop_stdout()
                return Exit.FAILED
            return complain(one_line(error), Exit.FAILED)
        except Exception as error:  # noqa: BLE001 - a mistake of ours still ends in one line
            if os.environ.get(SHOW_TRACEBACK):
                traceback.print_exc()
            return complain(f"unexpected error: {one_line(error)} (set {SHOW_TRACEBACK}=1 to see where)", Exit.FAILED)
        return outcome if isinstance(outcome, int) else Exit.DONE


def complain(message: str, code: Exit) -> Exit:
    """Write one line about what went wrong; return the exit code. A stderr that is gone changes nothing."""
    with contextlib.suppress(OSError):
        click.echo(f"tidegauge: {message}", err=True)
    return code


def hold_standard_descriptors() -> None:
    """Open /dev/null where stdin, stdout or stderr came closed.

    Otherwise the next file we open, a log segment, would get the number 0, 1 or 2, and whoever prints would
    write into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _drop_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain about the closed pipe."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
    except OSError:
        pass
