"""The flags of a local engine, shared by the dashboard and `serve`: one model, one device, one number of handlers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dashboard.cli import types
from engine.units import GIB, KIB, MIB, Bytes

MODELS = ("group", "pipeline:1", "pipeline:5", "handler", "handler-recheck")
SYNCS = ("fdatasync", "fsync", "dsync", "none")
MOST_SYNCERS = 16
MAX_HANDLERS = 1000
DEFAULT_PORT = 9755
DEFAULT_BIND = "127.0.0.1"

THREADS = types.count("threads", minimum=1, maximum=MAX_HANDLERS)
MODEL = types.ModelName(MODELS, MOST_SYNCERS)
DEVICE = types.DeviceName()
SYNC = types.Name("sync", SYNCS)
VALUE_SIZE = types.size("value size", minimum=1, maximum=MIB)
SEGMENT_SIZE = types.size("segment size", minimum=64 * KIB, maximum=GIB, multiple_of=4096)
RAM_CAPACITY = types.size("RAM capacity", minimum=64 * MIB, maximum=1024 * GIB)
RAM_RATE = types.bytes_per_second("RAM rate", minimum=1000, maximum=1024 * GIB)
PORT = types.count("port", minimum=0, maximum=65535)


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """What the command line says about the local engine."""

    threads: int
    model: str
    device: str
    value_size: Bytes
    sync: str
    path: Path | None
    ram_dir: Path | None = None  # None: /dev/shm, and a dashboard without a RAM disk where that cannot be
    ram_capacity: int | None = None
    ram_rate: int | None = None  # None: no stream until a key starts one


def engine_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the engine's flags to a command; it receives them as `flags`, an EngineFlags."""

    @click.option(
        "--threads",
        type=THREADS,
        default=8,
        show_default=True,
        metavar="N",
        help="Handler threads that commit records.",
    )
    @click.option(
        "--model",
        type=MODEL,
        default="group",
        show_default=True,
        metavar="NAME",
        help=f"Write-thread model: {', '.join(MODELS)}.",
    )
    @click.option(
        "--device",
        type=DEVICE,
        default="real",
        show_default=True,
        metavar="NAME",
        help="real, or a simulated latency added to each sync: serial:5ms (one at a time), parallel:1ms.",
    )
    @click.option(
        "--value-size",
        type=VALUE_SIZE,
        default="1KiB",
        show_default=True,
        metavar="SIZE",
        help="Payload bytes of a record.",
    )
    @click.option(
        "--sync",
        type=SYNC,
        default="fdatasync",
        show_default=True,
        metavar="NAME",
        help=f"{', '.join(SYNCS)} (none is not durable).",
    )
    @click.option(
        "--path",
        type=types.Folder(),
        default=None,
        metavar="DIR",
        help="Folder for the log; its parent must exist. Default: a temporary folder on a disk, removed at the end.",
    )
    @click.option(
        "--ram-dir",
        type=click.Path(path_type=Path),
        default=None,
        metavar="DIR",
        help="A folder on a tmpfs for the RAM disk; what is put there is removed at the end.  [default: /dev/shm]",
    )
    @click.option(
        "--ram-capacity",
        type=RAM_CAPACITY,
        default=None,
        metavar="SIZE",
        help="Memory for the RAM disk.  [default: 512MiB, or a quarter of what is available]",
    )
    @click.option(
        "--ram-rate",
        type=RAM_RATE,
        default=None,
        metavar="SIZE/S",
        help="Stream files to the RAM disk at this rate from the start.  [default: key s on its screen starts one]",
    )
    @functools.wraps(command)
    def with_flags(
        *args: Any,
        threads: int,
        model: str,
        device: str,
        value_size: int,
        sync: str,
        path: Path | None,
        ram_dir: Path | None,
        ram_capacity: int | None,
        ram_rate: int | None,
        **others: Any,
    ) -> Any:
        flags = EngineFlags(
            threads=threads,
            model=model,
            device=device,
            value_size=Bytes(value_size),
            sync=sync,
            path=path,
            ram_dir=ram_dir,
            ram_capacity=ram_capacity,
            ram_rate=ram_rate,
        )
        return command(*args, flags=flags, **others)

    return with_flags


def exporter_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --port and --bind."""
    port = click.option(
        "--port",
        type=PORT,
        default=DEFAULT_PORT,
        show_default=True,
        metavar="N",
        help="Port of /metrics; 0 takes a free one.",
    )
    bind = click.option(
        "--bind",
        default=DEFAULT_BIND,
        show_default=True,
        metavar="ADDRESS",
        help="Address to listen on. There is no password: any but this computer's own opens it to the network.",
    )
    return port(bind(command))
