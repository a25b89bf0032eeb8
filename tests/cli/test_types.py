"""Values on the command line: what is read, and the words for what cannot be."""

from __future__ import annotations

import click
import pytest

from dashboard.cli import types
from dashboard.cli.engine_flags import DEVICE, MODEL, SEGMENT_SIZE, SYNC, THREADS, VALUE_SIZE
from engine.units import SECOND

DURATION = types.duration("duration", minimum=SECOND // 10, maximum=60 * SECOND)
RATE = types.operations_per_second("rate", minimum=1, maximum=10**7)


def words_of(kind: click.ParamType, text: str) -> str:
    with pytest.raises(click.BadParameter) as raised:
        kind.convert(text, None, None)
    return raised.value.message


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (THREADS, "50", 50),
        (THREADS, "1k", 1000),
        (VALUE_SIZE, "1KiB", 1024),
        (VALUE_SIZE, "1 kB", 1000),
        (SEGMENT_SIZE, "64MiB", 64 << 20),
        (DURATION, "1.5s", 1_500_000_000),
        (DURATION, "1m", 60 * SECOND),
        (RATE, "20k/s", 20_000),
        (RATE, "5,000", 5_000),
        (MODEL, "Pipeline:1", "pipeline:1"),
        (SYNC, "DSYNC", "dsync"),
        (DEVICE, "real", "real"),
        (DEVICE, "serial:5ms", "serial:5ms"),
        (DEVICE, "parallel:500us", "parallel:500us"),
        (types.ListOf(THREADS), "1,5, 50", (1, 5, 50)),
        (types.ListOf(MODEL), "group,handler,group", ("group", "handler")),
        (types.ListOf(DEVICE), "real,serial:1ms", ("real", "serial:1ms")),
    ],
)
def test_reads(kind: click.ParamType, text: str, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (THREADS, "0", "threads '0': allowed is 1 to 1,000; the nearest is 1"),
        (THREADS, "-3", "threads '-3': allowed is 1 to 1,000; the nearest is 1"),
        (THREADS, "5000", "threads '5000': allowed is 1 to 1,000; the nearest is 1,000"),
        (THREADS, "2.5", "threads '2.5': allowed is a whole number; for example 2"),
        (
            THREADS,
            "5 apples",
            "threads '5 apples': allowed is a whole number, which may end in k, M or G; for example 50",
        ),
        (
            VALUE_SIZE,
            "5 apples",
            "size '5 apples': allowed is a number with a unit (the unit 'apples' is not one of "
            "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB); for example 64MiB",
        ),
        (
            VALUE_SIZE,
            "1024",
            "size '1024': allowed is a number with a unit (it needs a unit: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB); "
            "did you mean 1024B?",
        ),
        (VALUE_SIZE, "2GiB", "value size '2GiB': allowed is 1 B to 1 MiB; the nearest is 1 MiB"),
        (
            DURATION,
            "5",
            "duration '5': allowed is a number with a unit (it needs a unit: ns, us, ms, s, m, h); did you mean 5s?",
        ),
        (DURATION, "0s", "duration '0s': allowed is 100 ms to 60 s; the nearest is 100 ms"),
        (SEGMENT_SIZE, "100000B", "segment size '100000B' is not a multiple of 4 KiB; the nearest is 96 KiB"),
        (RATE, "5MB/s", "rate '5MB/s': allowed is operations a second, not bytes; for example 20k/s"),
        (
            MODEL,
            "gruop",
            "model 'gruop': allowed is group, pipeline:1, pipeline:5, handler, handler-recheck; did you mean group?",
        ),
        (MODEL, "zzz", "model 'zzz': allowed is group, pipeline:1, pipeline:5, handler, handler-recheck"),
        (SYNC, "datasync", "sync 'datasync': allowed is fdatasync, fsync, dsync, none; did you mean fdatasync?"),
        (
            DEVICE,
            "serail:5ms",
            "device 'serail:5ms': allowed is real, serial:LATENCY, parallel:LATENCY; did you mean serial:5ms?",
        ),
        (DEVICE, "nvme", "device 'nvme': allowed is real, serial:LATENCY, parallel:LATENCY"),
        (DEVICE, "serial", "device 'serial' needs a latency; did you mean serial:5ms?"),
        (DEVICE, "parallel:0s", "device 'parallel:0s': allowed is a latency above 0 and up to 10 s"),
        (DEVICE, "serial:1m", "device 'serial:1m': allowed is a latency above 0 and up to 10 s"),
        (types.ListOf(THREADS), "1,,5", "threads '1,,5': a value is missing; separate values by one comma"),
        (types.ListOf(THREADS), "", "threads '': a value is missing; separate values by one comma"),
        (
            types.ListOf(THREADS),
            "1,x",
            "threads 'x': allowed is a whole number, which may end in k, M or G; for example 50",
        ),
    ],
)
def test_says_what_was_given_what_is_allowed_and_the_nearest(kind: click.ParamType, text: str, words: str) -> None:
    assert words_of(kind, text) == words


@pytest.mark.parametrize(
    ("text", "meant"),
    [("5sec", "5s"), ("5 seconds", "5s"), ("3min", "3m"), ("10msec", "10ms"), ("2 hours", "2h"), ("7secnds", "7s")],
)
def test_a_unit_spelled_out_names_the_short_one(text: str, meant: str) -> None:
    assert words_of(DURATION, text).endswith(f"did you mean {meant}?")


def test_what_reaches_the_terminal_is_printable_and_short() -> None:
    words = words_of(MODEL, "\x1b[31mred\x07" + "x" * 500)

    assert words.isprintable()
    assert len(words) < 250


@pytest.mark.parametrize("text", ["1000000000h", "99999999999h"])
def test_no_hint_is_given_that_could_not_be_read_itself(text: str) -> None:
    assert "did you mean" not in words_of(DURATION, text)


def test_an_empty_folder_name_is_not_the_current_folder() -> None:
    assert words_of(types.Folder(), "") == "folder '' is empty: allowed is the name of a folder; for example ./log"
