"""`tidegauge image`: look at an fsimage, load it whole, save it in another form, make one of any size."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dashboard.cli.exits import Exit
from dashboard.cli.json_target import check_target, write_json
from dashboard.cli.types import Name, count

if TYPE_CHECKING:
    from engine.fsimage.load import Loaded
    from engine.fsimage.save import Layout
    from engine.measure.phases import PhaseTree

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.argument("file", type=click.Path(path_type=Path))
_JSON = click.option("--json", "target", metavar="FILE|-", help="Write the result as JSON, to a file or stdout (-).")
_CODECS = ("none", "deflate", "gzip", "bzip2", "lz4", "snappy", "zstd")  # save_codecs.CODECS, without loading it
_LOADING = ("engine.fsimage.load",)
_SAVING = ("engine.fsimage.save",)


def _form(sections: int) -> Callable[[F], F]:
    """Add the options that say what the written image looks like."""
    options = (
        click.option(
            "--layout", type=Name("layout", ("protobuf", "legacy")), default="protobuf", show_default=True,
            help="Hadoop 2.4 and later, or before.",
        ),
        click.option(
            "--layout-version", type=count("layout version", minimum=-67, maximum=-16), metavar="NUMBER",
            help="Legacy: -16 or -18 (default). Protobuf: the image's own; -67 for what was legacy.",
        ),
        click.option(
            "--codec", type=Name("codec", _CODECS), default="none", show_default=True,
            help=f"Protobuf: {', '.join(_CODECS)}.",
        ),
        click.option(
            "--sections", type=count("sections", minimum=0, maximum=10_000), default=sections, show_default=True,
            help="Protobuf: sub-sections that a NameNode may load in parallel; 0 for none.",
        ),
        click.option("--force", is_flag=True, help="Replace OUT if it is there."),
    )  # fmt: skip

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _threads(command: F) -> F:
    option = click.option(
        "--threads", type=count("threads", minimum=1, maximum=256), default=2, show_default=True, help="How many work."
    )
    return option(command)


@click.group("image", no_args_is_help=True)
def image() -> None:
    """Look at an HDFS fsimage, load it, save it in another form, or make one."""


@image.command("info")
@_FILE
@_JSON
def info(file: Path, target: str | None) -> int:
    """Print what the image FILE says about itself: layout, codec, counts, sections. Instant, whatever its size."""
    from dashboard.cli.image_text import outline_lines
    from engine.fsimage.outline import read_outline

    if target is not None:
        check_target(target)
    outline = read_outline(file)
    if target is not None:
        write_json(target, outline.to_json())
    if target != "-":
        click.echo("\n".join(outline_lines(outline)))
    return Exit.DONE


@image.command("load")
@_FILE
@_threads
@click.option("--md5/--no-md5", default=True, show_default=True, help="Check the .md5 file, if there is one.")
@_JSON
def load(file: Path, threads: int, md5: bool, target: str | None) -> int:
    """Load the image FILE whole: counts, phases with times, and whether it is whole.

    Exit code 1: the image contradicts itself or its .md5 file; the report says how.
    """
    from dashboard.cli.image_progress import run_watched
    from dashboard.cli.image_text import load_facts, pairs, phase_json, phase_lines
    from engine.units import format_duration, format_size

    if target is not None:
        check_target(target)
    _refuse_other_files(file)
    loaded, problem = run_watched(
        f"load {file.name}", lambda tree, stop: _load_checked(file, threads, md5, tree, stop), *_LOADING
    )
    facts = load_facts(loaded)
    elapsed = sum(phase.elapsed_ns for phase in loaded.phases)
    report = loaded.integrity.lines()
    if target is not None:
        write_json(
            target,
            {
                "schema": "tidegauge.image-load/1",
                "path": str(file),
                "elapsed_seconds": elapsed / 1e9,
                "inodes_per_second": facts["inodes"] * 1e9 / elapsed if elapsed else 0.0,
                **facts,
                "whole": loaded.integrity.is_clean,
                "md5_problem": problem,
                "troubles": {trouble.name.lower(): number for trouble, number in loaded.integrity.counts},
                "phases": [phase_json(phase) for phase in loaded.phases],
            },
        )
    if target != "-":
        shown = {name.replace("_", " "): f"{value:,}" for name, value in facts.items() if isinstance(value, int)}
        shown["content bytes"] = format_size(facts["content_bytes"])
        shown["column bytes"] = f"{format_size(facts['column_bytes'])}, {facts['bytes_per_inode']:.1f} an inode"
        shown["loaded in"] = format_duration(elapsed)
        click.echo("\n".join([*pairs(shown), "", *phase_lines(loaded.phases), "", *report]))
        if problem:
            click.echo(problem)
    return Exit.DONE if loaded.integrity.is_clean and not problem else Exit.FAILED


@image.command("save")
@_FILE
@click.argument("out", type=click.Path(path_type=Path))
@_form(sections=0)
@click.option("--drop", is_flag=True, help="Leave out what a legacy layout has no place for.")
@click.option(
    "--strategy", type=Name("strategy", ("columnar", "lean", "objects")), default="columnar", show_default=True,
    help="Legacy: how records are made. lean and objects: after and before HADOOP-3248, one by one.",
)  # fmt: skip
@_threads
@_JSON
def save(
    file: Path,
    out: Path,
    layout: Layout,
    layout_version: int | None,
    codec: str,
    sections: int,
    force: bool,
    drop: bool,
    strategy: str,
    threads: int,
    target: str | None,
) -> int:
    """Load the image FILE and save it as OUT, with OUT.md5 beside it.

    OUT appears when it is whole and durable, or not at all. Delegation keys and tokens are not saved.
    """
    from dashboard.cli.image_progress import run_watched

    if target is not None:
        check_target(target)
    _refuse_legacy_options(layout, codec, sections)
    _refuse_other_files(file)

    def work(tree: PhaseTree, stop: threading.Event) -> Any:
        from engine.fsimage.save import SaveOptions, save_image
        from engine.measure.clock import SystemClock

        loaded, problem = _load_checked(file, threads, True, tree, stop)
        if problem:
            click.echo(f"tidegauge: {problem}; saving what was read", err=True)
        options = SaveOptions(layout, layout_version, codec, sections, drop, force, strategy)
        return save_image(
            loaded.namespace, out, options, clock=SystemClock(), threads=threads, phases=tree, cancel=stop
        )

    saved = run_watched(f"save {out.name}", work, *_LOADING, *_SAVING)
    for name, number in saved.dropped:
        click.echo(f"left out: {number:,} {name}, for which layout {saved.layout_version} has no place", err=True)
    _report_written(saved, {"inodes": saved.inodes}, "tidegauge.image-save/1", target)
    return Exit.DONE


@image.command("synth")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--inodes", type=count("inodes", minimum=10, maximum=1_000_000_000), default=20_000_000, show_default="20M",
    help="Files and directories, exactly so many.",
)  # fmt: skip
@click.option(
    "--seed", type=count("seed", minimum=0, maximum=2**62), default=1, show_default=True, help="Same seed, same bytes."
)
@_form(sections=12)
@_threads
@_JSON
@click.pass_context
def synth(
    ctx: click.Context,
    out: Path,
    inodes: int,
    seed: int,
    layout: Layout,
    layout_version: int | None,
    codec: str,
    sections: int,
    force: bool,
    threads: int,
    target: str | None,
) -> int:
    """Make an image of a realistic tree that never was, as OUT, with OUT.md5 beside it.

    It is written as a stream: memory does not grow with it, but for a few bytes a directory.
    """
    from dashboard.cli.image_progress import run_watched

    if target is not None:
        check_target(target)
    was_typed = ctx.get_parameter_source("sections") is click.core.ParameterSource.COMMANDLINE
    _refuse_legacy_options(layout, codec, sections if was_typed else 0)

    def work(tree: PhaseTree, stop: threading.Event) -> Any:
        from engine.fsimage.synth import SynthOptions, synthesise
        from engine.measure.clock import SystemClock

        options = SynthOptions(inodes, layout, seed, codec, sections, layout_version, force)
        return synthesise(out, options, clock=SystemClock(), threads=threads, phases=tree, cancel=stop)

    made = run_watched(f"make {out.name}", work, "engine.fsimage.synth")
    names = ("inodes", "files", "directories", "blocks", "content_bytes", "users")
    _report_written(made, {name: getattr(made, name) for name in names}, "tidegauge.image-synth/1", target)
    return Exit.DONE


def _load_checked(file: Path, threads: int, md5: bool, tree: PhaseTree, stop: threading.Event) -> tuple[Loaded, str]:
    """Load an image; return it, and what its MD5 says against it."""
    from engine.fsimage.load import load_image
    from engine.measure.clock import SystemClock

    loaded = load_image(file, clock=SystemClock(), threads=threads, phases=tree, cancel=stop, check_md5=md5)
    checked = loaded.wait_for_checksum()
    return loaded, "" if checked is None else checked.problem


def _refuse_other_files(file: Path) -> None:
    """Raise what a load would raise at once, before kernels are loaded for it, or compiled for a minute."""
    from engine.fsimage.container import open_container

    open_container(file)


def _refuse_legacy_options(layout: str, codec: str, sections: int) -> None:
    if layout == "legacy" and (codec != "none" or sections):
        raise click.UsageError("--codec and --sections are for --layout protobuf: legacy images have neither")


def _report_written(written: Any, facts: dict[str, int], schema: str, target: str | None) -> None:
    """Print what was written. written: a Saved or a Synthesised."""
    from dashboard.cli.image_text import pairs, phase_json, phase_lines, short_codec
    from engine.errors import printable
    from engine.fsimage.layout_names import layout_name
    from engine.units import format_duration, format_size

    elapsed = sum(phase.elapsed_ns for phase in written.phases)
    if target is not None:
        write_json(
            target,
            {
                "schema": schema,
                "path": str(written.path),
                "image_bytes": written.size_bytes,
                "layout_version": written.layout_version,
                "codec": written.codec,
                "md5": written.md5,
                "elapsed_seconds": elapsed / 1e9,
                **facts,
                "phases": [phase_json(phase) for phase in written.phases],
            },
        )
    if target == "-":
        return
    shown = {
        "wrote": printable(str(written.path)),
        "layout": f"{written.layout_version} ({layout_name(written.layout_version)})",
        "codec": short_codec(written.codec),
        "size": f"{format_size(written.size_bytes)} ({written.size_bytes:,} bytes)",
        "MD5": written.md5,
        **{name.replace("_", " "): f"{value:,}" for name, value in facts.items()},
        "in": format_duration(elapsed),
    }
    click.echo("\n".join([*pairs(shown), "", *phase_lines(written.phases)]))
