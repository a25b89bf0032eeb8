"""`tidegauge doctor`: what about this computer matters to a measurement; a line each: ok, warn or fail, and why."""

from __future__ import annotations

from pathlib import Path

import click

from dashboard.cli.exits import Exit


@click.command("doctor", short_help="Check what matters to a measurement here, a line each.")
@click.option(
    "--path",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    metavar="DIR",
    help="Folder whose disk is looked at.  [default: this one]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def doctor(path: Path, as_json: bool) -> int:
    """Check what matters here: is a sync real, file system, memory, cores, clock, terminal, Python, kernels.

    Exit code 1 if something fails; a warning is no failure.
    """
    import msgspec

    from dashboard.cli.checkup import check_all

    findings = []
    for finding in check_all(path):
        findings.append(finding)
        if not as_json:
            mark = click.style(
                f"{finding.level:<4}", fg={"ok": "green", "warn": "yellow", "fail": "red"}[finding.level]
            )
            click.echo(f"{mark}  {finding.name:<11}  {finding.text}")
    if as_json:
        document = {"schema": "tidegauge.doctor/1", "checks": findings}
        click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    return Exit.FAILED if any(finding.level == "fail" for finding in findings) else Exit.DONE
