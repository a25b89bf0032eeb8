"""The pages about images say what the code does: tables, examples, the program in the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.fsimage.columns import Tree, make_block_columns, make_inode_columns
from engine.fsimage.container import KNOWN_SECTIONS
from engine.fsimage.legacy_layout import _ANCESTORS, _BROUGHT
from engine.fsimage.load import load_image
from engine.fsimage.tree import index_children, walk
from engine.measure.clock import SystemClock
from tests.conftest import ROOT
from tests.fsimage.legacy_writer import ROOT as LEGACY_ROOT
from tests.fsimage.legacy_writer import Dir, File, write_legacy
from tests.fsimage.protobuf_writer import directory, entry, file, write_image
from tests.fsimage.test_save_properties import _SCHEMA

FORMAT = (ROOT / "docs/reference/fsimage-format.md").read_text(encoding="utf-8")
NAMESPACE = (ROOT / "docs/reference/namespace.md").read_text(encoding="utf-8")


def table(page: str, head: str) -> list[list[str]]:
    """Return the rows of every table with that head."""
    rows = []
    for found in re.finditer(rf"^\| {re.escape(head)} \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", page, re.M):
        rows += [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]
    return rows


def example(number: int) -> bytes:
    return bytes.fromhex(re.findall(r"```text\n([0-9a-f \n]+)```", FORMAT)[number])


def test_the_messages_are_those_that_protobufs_own_parser_is_told():
    found = {}
    for name, cell in table(FORMAT, "message | fields"):
        plain = re.sub(r"\([^)]*\)", "", cell)
        fields = [re.match(r"(\d+) (\w+) (\w+)(, repeated)?", part.strip()) for part in plain.split(";")]
        found[name.strip("`")] = [
            (int(f[1]), f[2], ("*" if f[4] else "") + f[3]) for f in fields if f is not None
        ]  # fmt: skip

    assert found == _SCHEMA


def test_the_sections_are_those_that_are_known():
    named = {name for names, _ in table(FORMAT, "section | what stands in it") for name in re.findall(r"\w+", names)}

    assert named == {name for name in KNOWN_SECTIONS if not name.endswith("_SUB")} - {"EXTENDED_ACL"}


def test_the_legacy_versions_are_those_of_the_code():
    assert {int(a): int(b) for a, b in table(FORMAT, "version | ancestor")} == _ANCESTORS
    assert [int(version) for version, _ in table(FORMAT, "version | brought")] == sorted(_BROUGHT, reverse=True)


def test_the_examples_are_what_the_tests_own_writers_write(tmp_path: Path):
    inodes = [directory(16385, b""), file(16386, b"f", [(1073741825, 1001, 100)])]
    protobuf = write_image(tmp_path / "p", inodes, [entry(16385, [16386])])
    legacy = write_legacy(tmp_path / "l", -16, [LEGACY_ROOT, Dir(b"/a"), File(b"/a/f", blocks=[(7, 100, 1001)])])

    assert (example(0), example(1)) == (protobuf.read_bytes(), legacy.read_bytes())
    for path, size in ((protobuf, 100), (legacy, 100)):
        namespace = load_image(path, clock=SystemClock(), check_md5=False).namespace
        assert sum(namespace.size(row) for _, row in walk(namespace)) == size


@pytest.mark.parametrize(
    "number, columns",
    [
        (0, make_inode_columns(1)),
        (1, make_block_columns(1)),
        (2, index_children(make_inode_columns(1).parent - 1)),
    ],
    ids=["inodes", "blocks", "tree"],
)
def test_the_columns_are_those_of_the_code(number, columns: Tree):
    rows = re.split(r"^\| column \| type \| meaning \|\n", NAMESPACE, flags=re.M)[number + 1]
    named = re.findall(r"^\| (\w+) \| (\w+) \|", rows.split("\n\n")[0], re.M)

    assert named == [(name, str(column.dtype)) for name, column in zip(columns._fields, columns, strict=True)]


def test_the_program_in_the_page_runs(tmp_path: Path):
    image = write_legacy(tmp_path / "l", -16, [LEGACY_ROOT, Dir(b"/a"), File(b"/a/f", blocks=[(7, 100, 1001)])])
    (program,) = re.findall(r"```python\n(.*?)```", NAMESPACE, re.S)

    found: dict[str, object] = {"IMAGE": image}
    exec(program, found)

    assert found["owner"] == "hdfs"
    assert found["paths"] == [b"/", b"/a", b"/a/f"]
