"""Sizes, durations, counts and rates: read as people write them, written as people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadValue
from engine.units import (
    format_count,
    format_duration,
    format_size,
    parse_count,
    parse_duration,
    parse_rate,
    parse_size,
)

LARGEST = (1 << 62) - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096B", 4096),
        ("1KiB", 1024),
        ("64MiB", 64 << 20),
        ("2GiB", 2 << 30),
        ("1TiB", 1 << 40),
        ("100MB", 100_000_000),
        ("1.5kB", 1500),
        (".5KiB", 512),
        (" 64 MiB ", 64 << 20),
        ("64mib", 64 << 20),
        ("1,024B", 1024),
        ("1_000B", 1000),
        ("0", 0),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5s", 5_000_000_000),
        ("1.5ms", 1_500_000),
        ("500us", 500_000),
        ("500µs", 500_000),
        ("7ns", 7),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("0", 0),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("50", 50), ("20M", 20_000_000), ("1.5k", 1500), ("1G", 10**9)])
def test_counts(text: str, expected: int) -> None:
    assert parse_count(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("5000", 5000), ("20k/s", 20_000), ("200MB/s", 200_000_000), ("1MiB", 1 << 20)]
)
def test_rates(text: str, expected: int) -> None:
    assert parse_rate(text) == expected


@pytest.mark.parametrize(
    ("parse", "text", "complaint"),
    [
        pytest.param(parse_size, "64", "size '64': allowed is a number with a unit", id="size-without-unit"),
        pytest.param(parse_duration, "5", "it needs a unit: ns, us, ms, s, m, h", id="duration-without-unit"),
        pytest.param(parse_size, "5 apples", "the unit 'apples' is not one of B, kB", id="unknown-unit"),
        pytest.param(parse_duration, "soon", "duration 'soon'", id="no-number"),
        pytest.param(parse_count, "-3", "count '-3'", id="negative"),
        pytest.param(parse_count, "1e9", "count '1e9'", id="exponent"),
        pytest.param(parse_count, "", "count ''", id="empty"),
        pytest.param(parse_size, "nan B", "size 'nan B'", id="not-a-number"),
        pytest.param(parse_size, "9" * 400 + "B", r"allowed is less than 2\^62", id="astronomic"),
        pytest.param(parse_size, "4611686018427387904B", r"allowed is less than 2\^62", id="just-too-large"),
        pytest.param(parse_size, "\x1b[2J", r"'\\x1b\[2J'", id="terminal-escape"),
        pytest.param(parse_size, "١٢B", "size '١٢B'", id="digits-of-another-script"),
    ],
)
def test_what_cannot_be_read_is_quoted_with_what_can(parse: Callable[[str], int], text: str, complaint: str) -> None:
    with pytest.raises(BadValue, match=complaint) as raised:
        parse(text)

    assert str(raised.value).isprintable()


def test_a_complaint_gives_an_example() -> None:
    with pytest.raises(BadValue, match="for example 64MiB"):
        parse_size("large")


@given(number=st.integers(0, LARGEST))
def test_whole_numbers_are_read_exactly_up_to_the_limit(number: int) -> None:
    assert (parse_count(str(number)), parse_size(f"{number}B"), parse_duration(f"{number}ns")) == (number,) * 3


@given(text=st.text(max_size=30))
@pytest.mark.parametrize("parse", [parse_size, parse_duration, parse_count, parse_rate])
def test_any_text_is_either_a_number_in_range_or_one_printable_line(parse: Callable[[str], int], text: str) -> None:
    try:
        value = parse(text)
    except BadValue as error:
        assert str(error).isprintable()
    else:
        assert 0 <= value <= LARGEST


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (64 << 20, "64 MiB"),
        (200 << 20, "200 MiB"),
        (15.5 * (1 << 30), "15.5 GiB"),
        (3 << 40, "3 TiB"),
        (-2048, "-2 KiB"),
    ],
)
def test_sizes_are_written_with_three_digits(count: float, text: str) -> None:
    assert format_size(count) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (85_000, "85 us"),
        (1_250_000, "1.25 ms"),
        (5_000_000_000, "5 s"),
        (90_000_000_000, "90 s"),
        (120_000_000_000, "2 m"),
        (200_000_000_000, "3 m 20 s"),
        (-5_000, "-5 us"),
    ],
)
def test_durations_are_written_with_three_digits(nanoseconds: float, text: str) -> None:
    assert format_duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (0.123, "0.12"), (950, "950"), (8_410, "8.41k"), (81_300, "81.3k"), (1_020_000, "1.02M"), (3e9, "3G")],
)
def test_counts_are_written_with_three_digits(number: float, text: str) -> None:
    assert format_count(number) == text


@given(number=st.floats(0, 9.9e12))
def test_a_written_count_has_at_most_six_characters(number: float) -> None:
    assert len(format_count(number)) <= 6


@given(count=st.integers(0, 1 << 50))
def test_a_written_size_reads_back_within_its_three_digits(count: int) -> None:
    assert parse_size(format_size(count)) == pytest.approx(count, rel=0.006)
