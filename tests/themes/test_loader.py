"""Themes load strictly, and what is wrong with one is one line that names file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from themes.loader import FOLDER, ROLES, SURFACES, BadTheme, load_theme, parse_theme, shipped_themes

GOOD = (FOLDER / "tide-dark.toml").read_text()


def test_the_shipped_themes_have_every_role() -> None:
    themes = shipped_themes()

    assert set(themes) == {"tide-dark", "tide-light", "tide-16"}
    for theme in themes.values():
        assert set(theme.colours()) == {*ROLES, *SURFACES}
    assert themes["tide-dark"].dark
    assert not themes["tide-light"].dark


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("text =", "txt =", r"night.toml: unknown key 'txt' in \[roles\]; did you mean 'text'\?"),
        ("[roles]", "[rolls]", r"night.toml: unknown key 'rolls'; did you mean 'roles'\?"),
        ('wake = "#c1a6f5"', "", r"night.toml: key 'wake' is missing in \[roles\]"),
        ("dark = true", "", "night.toml: key 'dark' is missing"),
        ("dark = true", 'dark = "yes"', "night.toml: dark: expected `bool`, got `str`"),
        ('deep = "#071722"', "deep = 7", "night.toml: surfaces.deep: expected `str`, got `int`"),
        ('deep = "#071722"', 'deep = "#07172"', "night.toml: surfaces.deep: '#07172' is not a colour such as #62d6e8"),
        ('deep = "#071722"', 'deep = "navy"', "night.toml: surfaces.deep: 'navy' is not a colour"),
        ("ansi = false", "ansi = true", "night.toml: surfaces.deep: '#071722' is not an ANSI colour such as ansi_cyan"),
        ("dark = true", "dark = ", "night.toml: not TOML"),
        ('name = "tide-dark"', 'name = ""', "night.toml: name: '' is not 1 to 40 printable characters"),
        ('name = "tide-dark"', 'name = "\\u001b[2J"', "night.toml: name: .* is not 1 to 40 printable characters"),
        ("[roles]", "[roles]\n[roles.x]", r"night.toml: unknown key 'x' in \[roles\]"),
    ],
    ids=[
        "misspelt-role",
        "misspelt-table",
        "missing-role",
        "missing-key",
        "wrong-type",
        "colour-is-a-number",
        "short-colour",
        "colour-by-name",
        "hex-in-an-ansi-theme",
        "broken-toml",
        "no-name",
        "escape-in-name",
        "table-in-roles",
    ],
)
def test_a_theme_that_cannot_be_used_is_told_in_one_line(old: str, new: str, message: str) -> None:
    assert old in GOOD

    with pytest.raises(BadTheme, match=message) as caught:
        parse_theme(GOOD.replace(old, new, 1).encode(), file="night.toml")

    assert str(caught.value).isprintable()


def test_a_table_that_is_not_one_is_told() -> None:
    text = GOOD.partition("[surfaces]")[0] + 'surfaces = "blue"\n[roles]\n' + GOOD.partition("[roles]\n")[2]

    with pytest.raises(BadTheme, match=r"night\.toml: surfaces: expected `object`, got `str`"):
        parse_theme(text.encode(), file="night.toml")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x00" * 10, b"a = [" * 5000], ids=["not-utf-8", "zeros", "deep"])
def test_bytes_that_are_no_theme_are_told(data: bytes) -> None:
    with pytest.raises(BadTheme, match=r"night\.toml: ") as caught:
        parse_theme(data, file="night.toml")

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_a_file_that_is_missing_or_huge_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadTheme, match=r"none\.toml: cannot be read: No such file or directory"):
        load_theme(tmp_path / "none.toml")
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * 100_000)
    with pytest.raises(BadTheme, match=r"huge\.toml: more than 65,536 bytes"):
        load_theme(huge)
