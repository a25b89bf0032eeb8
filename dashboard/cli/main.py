"""`tidegauge`: the command and its subcommands. Each subcommand's module is imported when it is asked for."""

from __future__ import annotations

import atexit
import gc
import sys

import click

from dashboard.cli.engine_flags import EngineFlags, engine_flags, exporter_flags
from dashboard.cli.program import LazyGroup, Program, hold_standard_descriptors

_EPILOG = "Exit codes: 0 done, 1 failed, 2 bad usage, 130 interrupted. Data goes to stdout, everything else to stderr."


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from engine.environment import tidegauge_version

        click.echo(f"tidegauge {tidegauge_version()}")
        ctx.exit()


@click.group(
    cls=Program,
    name="tidegauge",
    invoke_without_command=True,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    lazy={
        "wal": "dashboard.cli.wal:wal",
        "image": "dashboard.cli.image:image",
        "serve": "dashboard.cli.serve:serve",
        "doctor": "dashboard.cli.doctor:doctor",
        "metrics": "dashboard.cli.metrics:metrics",
    },
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@engine_flags
@exporter_flags
@click.option("--no-exporter", is_flag=True, help="Do not serve /metrics.")
@click.pass_context
def tidegauge(ctx: click.Context, flags: EngineFlags, port: int, bind: str, no_exporter: bool) -> int | None:
    """Do real durable writes on this disk and show what they do as they do it.

    Without a command it opens the dashboard on a local write-ahead log; the flags below are the dashboard's.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_misplaced_flags(ctx)
        return None
    from dashboard.cli.screen import open_dashboard

    return open_dashboard(flags, port=port, bind=bind, exporter=not no_exporter)


@tidegauge.group(
    "run",
    cls=LazyGroup,
    lazy={
        "wal": "dashboard.cli.run_wal:run_wal",
        "ramdisk": "dashboard.cli.run_ramdisk:run_ramdisk",
        "image": "dashboard.cli.run_image:run_image",
    },
)
def run() -> None:
    """Run a workload without a screen; print a table and a verdict."""


def _refuse_misplaced_flags(ctx: click.Context) -> None:
    """Raise where a flag of the dashboard stands before a command, which would not see it."""
    for name in ctx.params:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            place = f"{ctx.command_path} {ctx.invoked_subcommand} ..."
            raise click.UsageError(f"{option} is the dashboard's; give it after the command: {place}", ctx)


def main() -> None:
    """Run the command line; the console script."""
    hold_standard_descriptors()
    # The interpreter's last collection walks all that numba and Textual made, for a quarter of a second, and frees what
    # the system is about to free. Frozen objects are not walked. Registered first, so it runs after every other exit.
    atexit.register(gc.freeze)
    tidegauge.main(sys.argv[1:], prog_name="tidegauge")


if __name__ == "__main__":
    main()
