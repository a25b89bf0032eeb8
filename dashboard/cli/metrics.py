"""`tidegauge metrics`: the reference page of what /metrics serves."""

from __future__ import annotations

import click


@click.command("metrics")
def metrics() -> None:
    """Print the reference of all metrics as Markdown."""
    from dashboard.exporter.reference import metrics_reference

    click.echo(metrics_reference(), nl=False)
