"""Values on the command line: sizes, durations, counts, rates, names, and lists of them.

A wrong value gets one line: the option, what was given, what is allowed, and the nearest match. The units
themselves are engine.units'; these types add bounds, lists, and the unit a person may have meant.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import click

from engine.errors import BadValue, TidegaugeError, UnknownChoice, quoted
from engine.units import format_duration, format_size, parse_count, parse_duration, parse_rate, parse_size

T = TypeVar("T")
if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # click made it generic in 8.4

# Words people write for units that engine.units spells shorter; the left side is matched by its beginning.
_SIZE_WORDS = {
    "bytes": "B",
    "kilobytes": "kB",
    "kibibytes": "KiB",
    "megabytes": "MB",
    "mebibytes": "MiB",
    "gigabytes": "GB",
    "gibibytes": "GiB",
}
_DURATION_WORDS = {
    "seconds": "s",
    "minutes": "m",
    "hours": "h",
    "milliseconds": "ms",
    "msecs": "ms",
    "microseconds": "us",
    "usecs": "us",
    "nanoseconds": "ns",
}
_COUNT_WORDS = {"thousands": "k", "millions": "M", "billions": "G"}

_LEADING_NUMBER = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*([^\d\s]*)\s*")


class Quantity(ParamType):
    """A number with a unit, within bounds that are both allowed."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], int],
        write: Callable[[float], str],
        *,
        minimum: int,
        maximum: int,
        words: dict[str, str],
        bare_unit: str,
        multiple_of: int = 1,
    ) -> None:
        self.name = name
        self._parse, self._write = parse, write
        self._minimum, self._maximum, self._multiple_of = minimum, maximum, multiple_of
        self._words, self._bare_unit = words, bare_unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read one value; a value that click hands back already read passes through."""
        if isinstance(value, int):
            return value
        try:
            number = self._parse(value)
        except BadValue as error:
            near = self._if_readable(_meant(value, self._words, self._bare_unit))
            text = str(error)
            reject(f"{text.partition('; for example')[0]}; did you mean {near}?" if near else text, param, ctx)
        if not self._minimum <= number <= self._maximum:
            nearest = min(max(number, self._minimum), self._maximum)
            reject(
                f"{self.name} {quoted(value)}: allowed is {self._write(self._minimum)} to {self._write(self._maximum)}"
                f"; the nearest is {self._write(nearest)}",
                param,
                ctx,
            )
        if number % self._multiple_of:
            nearest = max(self._minimum, round(number / self._multiple_of) * self._multiple_of)
            reject(
                f"{self.name} {quoted(value)} is not a multiple of {self._write(self._multiple_of)}; "
                f"the nearest is {self._write(nearest)}",
                param,
                ctx,
            )
        return number

    def _if_readable(self, near: str) -> str:
        """Return a hint, or "" where it could not be read in its turn."""
        try:
            self._parse(near)
        except BadValue:
            return ""
        return near


def size(name: str, *, minimum: int, maximum: int, multiple_of: int = 1) -> Quantity:
    """Return the type of a size such as 64MiB; the value is bytes."""
    return Quantity(
        name,
        parse_size,
        format_size,
        minimum=minimum,
        maximum=maximum,
        words=_SIZE_WORDS,
        bare_unit="B",
        multiple_of=multiple_of,
    )


def duration(name: str, *, minimum: int, maximum: int) -> Quantity:
    """Return the type of a duration such as 5s; the value is nanoseconds."""
    return Quantity(
        name, parse_duration, format_duration, minimum=minimum, maximum=maximum, words=_DURATION_WORDS, bare_unit="s"
    )


def count(name: str, *, minimum: int, maximum: int) -> Quantity:
    """Return the type of a whole number such as 50 or 20M."""
    return Quantity(
        name, _parse_whole(name), _write_count, minimum=minimum, maximum=maximum, words=_COUNT_WORDS, bare_unit=""
    )


def operations_per_second(name: str, *, minimum: int, maximum: int) -> Quantity:
    """Return the type of a rate in operations a second, such as 5000 or 20k/s; a rate in bytes is refused."""
    return Quantity(
        name, _parse_operations, _write_count, minimum=minimum, maximum=maximum, words=_COUNT_WORDS, bare_unit=""
    )


def bytes_per_second(name: str, *, minimum: int, maximum: int) -> Quantity:
    """Return the type of a rate in bytes a second, such as 100MB/s; a rate without a unit is refused."""
    return Quantity(
        name,
        lambda text: parse_size(text.strip().removesuffix("/s")),
        lambda number: f"{format_size(number)}/s",
        minimum=minimum,
        maximum=maximum,
        words=_SIZE_WORDS,
        bare_unit="MB/s",
    )


class Folder(ParamType):
    """A folder's name; an empty one, from a shell variable that is not set, is not taken for this folder."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; whether it can be used is for the command to find out."""
        if not str(value):
            reject("folder '' is empty: allowed is the name of a folder; for example ./log", param, ctx)
        return Path(value)


class Name(ParamType):
    """One of a closed list of names."""

    def __init__(self, name: str, choices: Iterable[str]) -> None:
        self.name, self.choices = name, tuple(choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as it is spelled in the list, whatever its case was."""
        name = str(value).strip().lower()
        if name not in self.choices:
            reject(str(UnknownChoice(what=self.name, given=str(value), choices=self.choices)), param, ctx)
        return name


class ModelName(ParamType):
    """A write-thread model: one of `names`, or pipeline:N with another number of AsyncSyncers."""

    name = "model"

    def __init__(self, names: Iterable[str], most_syncers: int) -> None:
        self.names, self._most_syncers = tuple(names), most_syncers

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as the engine takes it."""
        name = str(value).strip().lower()
        match = re.fullmatch(r"pipeline:([0-9]{1,9})", name)
        if match is None and name not in self.names:
            reject(str(UnknownChoice(what=self.name, given=str(value), choices=self.names)), param, ctx)
        if match is None:
            return name
        syncers = int(match[1])
        nearest = min(max(syncers, 1), self._most_syncers)
        if syncers != nearest:
            allowed = f"allowed is pipeline:1 to pipeline:{self._most_syncers}; the nearest is pipeline:{nearest}"
            reject(f"model {quoted(value)}: {allowed}", param, ctx)
        return f"pipeline:{syncers}"


class DeviceName(ParamType):
    """`real`, or a simulated device with its latency: `serial:5ms`, `parallel:1ms`."""

    name = "device"
    choices = ("real", "serial:LATENCY", "parallel:LATENCY")
    _longest_ns = 10 * 10**9

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name as the engine takes it."""
        kind, _, latency = str(value).strip().partition(":")
        if kind == "real" and not latency:
            return "real"
        if kind not in ("serial", "parallel"):
            near = difflib.get_close_matches(kind.lower(), ("real", "serial", "parallel"), n=1, cutoff=0.4)
            hint = {"real": "real", "serial": "serial:5ms", "parallel": "parallel:1ms"}.get(near[0] if near else "", "")
            reject(
                f"device {quoted(value)}: allowed is {', '.join(self.choices)}"
                + (f"; did you mean {hint}?" if hint else ""),
                param,
                ctx,
            )
        if not latency:
            reject(
                f"device {quoted(value)} needs a latency; did you mean {kind}:{'5ms' if kind == 'serial' else '1ms'}?",
                param,
                ctx,
            )
        try:
            nanoseconds = parse_duration(latency)
        except BadValue as error:
            near_unit = _meant(latency, _DURATION_WORDS, "ms")
            reject(f"device {kind}: {error}" + (f"; did you mean {kind}:{near_unit}?" if near_unit else ""), param, ctx)
        if not 0 < nanoseconds <= self._longest_ns:
            reject(
                f"device {quoted(value)}: allowed is a latency above 0 and up to {format_duration(self._longest_ns)}",
                param,
                ctx,
            )
        return f"{kind}:{latency.strip()}"


class ListOf(ParamType, Generic[T]):
    """Values of one type with commas between; repeats are dropped, order is kept."""

    def __init__(self, item: ParamType) -> None:
        self.item, self.name = item, f"{item.name} list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[T, ...]:
        """Read each part; an empty part is an error, since a doubled comma is usually a lost value."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip() for part in parts):
            reject(f"{self.item.name} {quoted(value)}: a value is missing; separate values by one comma", param, ctx)
        return tuple(dict.fromkeys(self.item.convert(part.strip(), param, ctx) for part in parts))


def reject(message: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
    """Raise the usage error that the program shows as one line, led by the option's name."""
    raise click.BadParameter(message, ctx=ctx, param=param)


def one_line(error: Exception) -> str:
    """Return the text of an error as one line that may be shown: ours as it stands, click's without its layout."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None:
        commands = ", ".join(getattr(error.ctx.command, "list_commands", lambda _: ())(error.ctx))
        return f"{error.ctx.command_path} needs a command: {commands}"
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter) and error.param:
        option = _spelled(error.param)
        named = option.lstrip("-").replace("-", " ") + " "
        text = " ".join(_printable_lines(error.message))
        return f"{option} {text.removeprefix(named)}" if text.startswith(named) else f"{option}: {text}"
    if isinstance(error, click.ClickException):
        return " ".join(_printable_lines(error.format_message()))
    if isinstance(error, TidegaugeError):
        return " ".join(_printable_lines(str(error)))
    return " ".join(_printable_lines(f"{type(error).__name__}: {error}"))


def _spelled(param: click.Parameter) -> str:
    return (
        max(param.opts, key=len)
        if isinstance(param, click.Option)
        else param.make_metavar(click.Context(click.Command("")))
    )


def _printable_lines(text: str) -> list[str]:
    return [
        "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line.strip())
        for line in text.splitlines()
        if line.strip()
    ]


def _meant(text: str, words: dict[str, str], bare_unit: str) -> str:
    """Return the value with the unit a person may have meant, or "" where nothing is near."""
    match = _LEADING_NUMBER.fullmatch(text)
    if match is None:
        return ""
    number, unit = match.groups()
    if not unit:
        return f"{number}{bare_unit}" if bare_unit else ""
    for word, short in words.items():
        if word.startswith(unit.lower()) or word == f"{unit.lower()}s":
            return f"{number}{short}"
    near = difflib.get_close_matches(unit.lower(), words, n=1, cutoff=0.75)
    return f"{number}{words[near[0]]}" if near else ""


def _parse_whole(name: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"\s*-[0-9]+\s*", text):
            return int(text)  # for the bounds to refuse, which know the nearest value
        try:
            number = parse_count(text)
        except BadValue as error:
            raise BadValue(
                what=name, given=text, allowed="a whole number, which may end in k, M or G", example="50"
            ) from error
        if re.fullmatch(r"\s*[0-9]*\.[0-9]*[1-9][0-9]*\s*", text):
            raise BadValue(what=name, given=text, allowed="a whole number", example=str(number or 1))
        return number

    return parse


def _parse_operations(text: str) -> int:
    if re.search(r"[bB]\s*(?:/s)?\s*$", text):
        raise BadValue(what="rate", given=text, allowed="operations a second, not bytes", example="20k/s")
    return parse_rate(text)


def _write_count(number: float) -> str:
    return f"{number:,.0f}"
