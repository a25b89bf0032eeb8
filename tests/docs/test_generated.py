"""Generated pages are what the program would generate now."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@pytest.mark.parametrize("name", GENERATOR.PAGES)
def test_a_generated_page_has_not_drifted(name: str) -> None:
    stored = GENERATOR.REFERENCE / name

    assert stored.is_file(), f"docs/reference/{name} is missing: run make docs"
    assert stored.read_text(encoding="utf-8") == GENERATOR.PAGES[name](), f"{name} has drifted: run make docs"


def test_make_docs_writes_what_differs_and_only_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(GENERATOR, "ROOT", tmp_path)
    monkeypatch.setattr(GENERATOR, "REFERENCE", tmp_path)
    monkeypatch.setattr(GENERATOR, "PAGES", {"same.md": lambda: "same", "new.md": lambda: "new"})
    (tmp_path / "same.md").write_text("same")

    GENERATOR.main()

    assert capsys.readouterr().out == "wrote new.md\n"
    assert (tmp_path / "new.md").read_text() == "new"
