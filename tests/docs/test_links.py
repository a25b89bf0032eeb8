"""Links between pages lead somewhere: to a file of the repository, and to a heading that is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def pages() -> list[Path]:
    skipped = {".venv", ".git", "scratch", "node_modules"}
    return sorted(
        path
        for path in ROOT.rglob("*.md")
        if not any(p in skipped or p.startswith(".") for p in path.relative_to(ROOT).parts)
    )


def links_of(page: Path) -> list[str]:
    return _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)

    assert broken == []


def test_every_page_of_docs_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    seen, pending = set(), [index]
    while pending:
        page = pending.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        pending += [(page.parent / link.partition("#")[0]).resolve() for link in links_of(page) if ":" not in link]

    lost = {path for path in pages() if path.is_relative_to(ROOT / "docs")} - seen

    assert {str(path.relative_to(ROOT)) for path in lost} == set()


def test_no_tracked_file_names_a_place_of_one_machine() -> None:
    """A path below /root or /home in a page or a program works for one person."""
    found = subprocess.run(
        ["git", "grep", "-nIE", r"/(root|home/[a-z]+)/", "--", ".", ":!tests/docs/test_links.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode > 1:
        pytest.skip("not a git checkout")

    assert found.stdout == ""
