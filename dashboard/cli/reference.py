"""The reference page of the command line: every command's own help. `python -m dashboard.cli.reference` writes it.

docs/reference/cli.md is that output; a test fails where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from dashboard.cli.main import tidegauge

_WIDTH = 100

_INTRODUCTION = """\
# Command line

Generated from the program's own help; a test fails where they differ.

- Sizes take a unit (`4096B`, `1KiB`, `64MiB`, `2GB`), durations too (`500us`, `5ms`, `5s`, `2m`).
- Counts may end in k, M or G.
- Lists are separated by commas; several lists make a matrix.
- Data goes to stdout; progress, notes and errors go to stderr. Without a terminal, progress becomes plain lines.
- A value that cannot be used gets one line: what was given, what is allowed, and the nearest match.

| exit code | meaning |
|---|---|
| 0 | done; also a dashboard that was left with `q` or Ctrl+C, and a `serve` that was told to end |
| 1 | the work was tried and failed |
| 2 | bad usage: nothing was tried |
| 130 | interrupted by Ctrl+C, SIGTERM or SIGHUP; what was measured until then was printed |
"""


def cli_reference() -> str:
    """Return the page as Markdown, ending in one newline."""
    sections = [_INTRODUCTION]
    for path, command, context in _walk(tidegauge, None, "tidegauge"):
        sections.append(f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(sections)


def _walk(
    command: click.Command, parent: click.Context | None, name: str
) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(
        command, parent=parent, info_name=name, terminal_width=_WIDTH, max_content_width=_WIDTH, color=False
    )
    context.help_option_names = ["-h", "--help"]
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            if found is not None:
                yield from _walk(found, context, sub)


if __name__ == "__main__":
    click.echo(cli_reference(), nl=False)
