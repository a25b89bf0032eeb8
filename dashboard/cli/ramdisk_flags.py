"""The flags of `tidegauge run ramdisk`, and the matrix of cases they describe."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dashboard.cli import types
from engine.errors import printable
from engine.units import GIB, KIB, MIB, SECOND

POLICIES = ("disk", "disk-sync", "lazy")
CHECKSUMS = ("on", "deferred", "off")
STATES = ("clean", "dirty-cache", "full-ram")
COPIES = ("buffered", "sendfile", "direct", "fadvise")
TIB = 1024 * GIB
LONGEST_NS = 24 * 3600 * SECOND
DEFAULT_DURATION_NS = 60 * SECOND
DEFAULT_CAPACITY = 8 * GIB


@dataclass(frozen=True, slots=True)
class RamdiskFlags:
    """The command's flags, read and within their bounds. ram_capacity, copy, duration: None where not given."""

    files: int
    file_size: int
    block_size: tuple[int, ...]
    policy: tuple[str, ...]
    checksum: tuple[str, ...]
    chunk: int
    copy: tuple[str, ...] | None
    state: tuple[str, ...]
    ram_dir: Path
    ram_dir_is_not_tmpfs: bool
    ram_capacity: int | None
    disk_dir: tuple[Path, ...]
    persist_rate: int | None
    rate: int | None
    duration: int | None
    verify: bool
    seed_table: bool
    json_to: str | None

    def cases(self, *, copies: tuple[str, ...], file_size: int, largest_block: int) -> Iterator[dict[str, Any]]:
        """Yield the fields of each case of the matrix, each once.

        A policy without a lazy writer copies nothing and has nobody to defer checksums to: such a case runs once, with
        the first copy mode and with checksums on. Blocks larger than `largest_block` become that.
        """
        seen = set()
        blocks = [min(block, largest_block) for block in self.block_size]
        for state, block, checksum, policy, copy in itertools.product(
            self.state, blocks, self.checksum, self.policy, copies
        ):
            is_lazy = policy == "lazy"
            key = (
                state,
                block,
                checksum if is_lazy or checksum == "off" else "on",
                policy,
                copy if is_lazy else copies[0],
            )
            if key in seen:
                continue
            seen.add(key)
            yield {
                "policy": policy,
                "checksum": key[2],
                "block_size_bytes": block,
                "state": state,
                "copy": key[4],
                "files": self.files,
                "file_size_bytes": file_size,
                "chunk_bytes": self.chunk,
                "persist_rate": self.persist_rate or 0,
                "rate": self.rate,
                "duration_ns": self.duration or DEFAULT_DURATION_NS,
                "verify": self.verify,
            }

    def settings(self, *, copies: tuple[str, ...], file_size: int, capacity: int, ram: str) -> dict[str, Any]:
        """Return the `settings` of the JSON, in base units."""
        return {
            "files": self.files,
            "file_size_bytes": file_size,
            "file_size_bytes_asked": self.file_size,
            "block_size_bytes": self.block_size,
            "policy": self.policy,
            "checksum": self.checksum,
            "chunk_bytes": self.chunk,
            "copy": copies,
            "copy_probed": self.copy is None,
            "state": self.state,
            "ram_dir": printable(str(self.ram_dir)),
            "ram": ram,
            "ram_capacity_bytes": capacity,
            "disk_dirs": [printable(str(folder)) for folder in self.disk_dir],
            "persist_rate_bytes": self.persist_rate,
            "rate_bytes": self.rate,
            "duration_seconds": (self.duration or DEFAULT_DURATION_NS) / SECOND if self.rate else None,
            "verify": self.verify,
        }


def ramdisk_flags(command: Callable[[RamdiskFlags], int]) -> Callable[..., int]:
    """Add the flags to a command, which receives them as a RamdiskFlags."""

    @functools.wraps(command)
    def with_flags(**given: Any) -> int:
        if given["chunk"] & (given["chunk"] - 1):
            below = 1 << (given["chunk"].bit_length() - 1)
            raise click.UsageError(
                f"--chunk {given['chunk']} bytes: allowed is a power of two; the nearest is {below}B"
            )
        if given["duration"] is not None and given["rate"] is None:
            raise click.UsageError("--duration is the length of a steady stream: it needs --rate")
        if given["rate"] is not None and given["verify"]:
            raise click.UsageError("--verify reads files back, a stream (--rate) deletes them as it goes: not both")
        if given["rate"] is not None and given["seed_table"]:
            raise click.UsageError("--seed-table compares files, --rate is a stream: not both")
        given["disk_dir"] = tuple(dict.fromkeys(given["disk_dir"]))
        return command(RamdiskFlags(**given))

    for option in reversed(_OPTIONS):
        with_flags = option(with_flags)
    return with_flags


_BLOCK = types.size("block size", minimum=4 * KIB, maximum=64 * GIB, multiple_of=4096)
_FOLDER = click.Path(path_type=Path)

_OPTIONS: tuple[Callable[[Callable[..., int]], Callable[..., int]], ...] = (
    click.option(
        "--files",
        type=types.count("files", minimum=1, maximum=10_000),
        default="3",
        show_default=True,
        metavar="N",
        help="Files written one after another in each case.",
    ),
    click.option(
        "--file-size",
        type=types.size("file size", minimum=1, maximum=TIB),
        default="2GiB",
        show_default=True,
        metavar="SIZE",
        help="Size of each file; scaled down, with a note, to what the machine can hold.",
    ),
    click.option(
        "--block-size",
        type=types.ListOf(_BLOCK),
        default="128MiB,1GiB",
        show_default=True,
        metavar="LIST",
        help="Block sizes.",
    ),
    click.option(
        "--policy",
        type=types.ListOf(types.Name("policy", POLICIES)),
        default="disk,disk-sync,lazy",
        show_default=True,
        metavar="LIST",
        help="disk (buffered close, as HDFS does), disk-sync (fsync at close), lazy (RAM disk).",
    ),
    click.option(
        "--checksum",
        type=types.ListOf(types.Name("checksum", CHECKSUMS)),
        default="on",
        show_default=True,
        metavar="LIST",
        help="on (while writing), deferred (by the lazy writer), off.",
    ),
    click.option(
        "--chunk",
        type=types.size("chunk", minimum=512, maximum=8 * MIB),
        default="64KiB",
        show_default=True,
        metavar="SIZE",
        help="Bytes under one checksum, a power of two; HDFS has 512B.",
    ),
    click.option(
        "--copy",
        type=types.ListOf(types.Name("copy mode", COPIES)),
        metavar="LIST",
        help=f"How the lazy writer copies: {', '.join(COPIES)}.  [default: the best of a probe]",
    ),
    click.option(
        "--state",
        type=types.ListOf(types.Name("state", STATES)),
        default="clean",
        show_default=True,
        metavar="LIST",
        help="clean, dirty-cache (other dirty pages first), full-ram (memory full of unpersisted files first).",
    ),
    click.option(
        "--ram-dir", type=_FOLDER, default="/dev/shm", show_default=True, metavar="DIR", help="A directory on tmpfs."
    ),
    click.option(
        "--ram-dir-is-not-tmpfs",
        is_flag=True,
        help="Use --ram-dir though it is no tmpfs; results say so.",
    ),
    click.option(
        "--ram-capacity",
        type=types.size("RAM capacity", minimum=0, maximum=TIB),
        metavar="SIZE",
        help="Memory to use at most.  [default: 8GiB, or what the machine has]",
    ),
    click.option(
        "--disk-dir",
        type=_FOLDER,
        multiple=True,
        metavar="DIR",
        help="A directory on a disk; once for each volume.  [default: a temporary folder on a disk]",
    ),
    click.option(
        "--persist-rate",
        type=types.bytes_per_second("persist rate", minimum=1000, maximum=TIB),
        metavar="SIZE/S",
        help="Limit the lazy writers, as a slow disk would.",
    ),
    click.option(
        "--rate",
        type=types.bytes_per_second("rate", minimum=1000, maximum=TIB),
        metavar="SIZE/S",
        help="A steady stream of files instead of --files: the backlog grows and drains.",
    ),
    click.option(
        "--duration",
        type=types.duration("duration", minimum=SECOND // 10, maximum=LONGEST_NS),
        metavar="TIME",
        help="Length of the stream.  [default: 60s]",
    ),
    click.option("--verify", is_flag=True, help="Read every byte back, lazy files from their disk copies."),
    click.option("--seed-table", is_flag=True, help="Print HDFS-6581's figures beside ours."),
    click.option(
        "--json",
        "json_to",
        metavar="FILE",
        help="Write the results as JSON; - is stdout, and the table then goes to stderr.",
    ),
)
