"""Reading themes: TOML with every role and nothing else, and one line about the file and key where it is not so.

    name = "tide-dark"      what the screen calls it
    dark = true             whether text is lighter than what it stands on
    ansi = false            true: values are the terminal's own sixteen colours (ansi_cyan), else #rrggbb

    [surfaces]              what text stands on
    [roles]                 what is drawn; Roles below says what each is for

A theme file may come from anyone, so its values are checked here and its text is quoted when an error shows it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent
SIZE_LIMIT = 64 * 1024  # bytes; a theme is about one thousand

ANSI_COLOURS = frozenset(
    f"ansi_{bright}{name}"
    for bright in ("", "bright_")
    for name in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
) | {"ansi_default"}

_HEX = re.compile(r"#[0-9a-fA-F]{6}")


class BadTheme(ValueError):
    """A theme file that cannot be used; its text names the file and the key, in one line."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Every key must be there, and no other."""


class Surfaces(_Strict, frozen=True):
    """What is drawn on."""

    deep: str  # the screen
    panel: str  # header and footer
    raised: str  # dialogs


class Roles(_Strict, frozen=True):
    """What is drawn, by what it means."""

    text: str
    bright: str  # headline numbers
    dim: str  # labels, units, hints
    rule: str  # lines between panes; never text
    accent: str  # keys, the open screen
    good: str
    warn: str
    bad: str
    water_low: str  # the ops/s plot, from its floor
    water_high: str  # to its crest
    swell_low: str  # the ops-per-sync plot, likewise
    swell_high: str
    bar: str  # distributions
    queue: str  # the four stages of a commit
    write: str
    sync: str
    wake: str


class Theme(_Strict, frozen=True):
    """One theme as its file says it."""

    name: str
    dark: bool
    ansi: bool
    surfaces: Surfaces
    roles: Roles

    def colours(self) -> dict[str, str]:
        """Return every surface and role by its name in the file."""
        surfaces: dict[str, str] = msgspec.to_builtins(self.surfaces)
        roles: dict[str, str] = msgspec.to_builtins(self.roles)
        return surfaces | roles


SURFACES: tuple[str, ...] = tuple(field.encode_name for field in msgspec.structs.fields(Surfaces))
ROLES: tuple[str, ...] = tuple(field.encode_name for field in msgspec.structs.fields(Roles))


def shipped_themes() -> dict[str, Theme]:
    """Return the themes beside this file, by name."""
    themes = (load_theme(path) for path in sorted(FOLDER.glob("*.toml")))
    return {theme.name: theme for theme in themes}


def load_theme(path: Path) -> Theme:
    """Read one theme file; raises BadTheme."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise BadTheme(f"{_shown(path.name)}: cannot be read: {error.strerror}") from error
    if len(data) > SIZE_LIMIT:
        raise BadTheme(f"{_shown(path.name)}: more than {SIZE_LIMIT:,} bytes, a theme has about one thousand")
    return parse_theme(data, file=path.name)


def parse_theme(data: bytes, *, file: str) -> Theme:
    """Decode the bytes of a theme; `file` names them in errors. Raises BadTheme."""
    try:
        tree = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadTheme(f"{_shown(file)}: not TOML: {_shown(str(error))}") from error
    _check_keys(tree, Theme, table="", file=file)
    for table, struct in (("surfaces", Surfaces), ("roles", Roles)):
        if isinstance(tree[table], dict):
            _check_keys(tree[table], struct, table=table, file=file)
    try:
        theme = msgspec.convert(tree, Theme)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        key = where.rstrip("`") or "the file"
        raise BadTheme(f"{_shown(file)}: {key}: {_shown(what[:1].lower() + what[1:])}") from error
    if not theme.name or not theme.name.isprintable() or len(theme.name) > 40:
        raise BadTheme(f"{_shown(file)}: name: {_shown(repr(theme.name))} is not 1 to 40 printable characters")
    _check_colours(theme, file)
    return theme


def _check_keys(keys: dict[str, Any], struct: type[_Strict], *, table: str, file: str) -> None:
    allowed = [field.encode_name for field in msgspec.structs.fields(struct)]
    place = f" in [{table}]" if table else ""
    for key in keys:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise BadTheme(f"{_shown(file)}: unknown key {_shown(repr(key))}{place}{hint}")
    for key in allowed:
        if key not in keys:
            raise BadTheme(f"{_shown(file)}: key {key!r} is missing{place}")


def _check_colours(theme: Theme, file: str) -> None:
    for table, colours in (("surfaces", theme.surfaces), ("roles", theme.roles)):
        for key, value in msgspec.to_builtins(colours).items():
            if theme.ansi and value not in ANSI_COLOURS:
                near = difflib.get_close_matches(value, ANSI_COLOURS, n=1)
                allowed = "an ANSI colour such as ansi_cyan" + (f"; did you mean {near[0]}?" if near else "")
            elif not theme.ansi and not _HEX.fullmatch(value):
                allowed = "a colour such as #62d6e8"
            else:
                continue
            raise BadTheme(f"{_shown(file)}: {table}.{key}: {_shown(repr(value))} is not {allowed}")


def _shown(text: str) -> str:
    visible = "".join(c if c.isprintable() else "?" for c in text)
    return visible if len(visible) <= 120 else visible[:117] + "..."
