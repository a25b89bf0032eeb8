"""What is read can be read: the contrast of every role on every surface it stands on."""

from __future__ import annotations

import msgspec
import pytest

from themes.contrast import RULES, broken_rules, contrast_ratio
from themes.loader import ROLES, SURFACES, shipped_themes


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#ffffff", "#ffffff", 1.0),
        ("#777777", "#ffffff", 4.48),
        ("#0000ff", "#ffffff", 8.59),
    ],
)
def test_the_ratio_is_that_of_wcag(one: str, other: str, ratio: float) -> None:
    assert contrast_ratio(one, other) == pytest.approx(ratio, abs=0.005)
    assert contrast_ratio(other, one) == contrast_ratio(one, other)


@pytest.mark.parametrize("name", sorted(shipped_themes()))
def test_the_shipped_themes_keep_every_rule(name: str) -> None:
    assert broken_rules(shipped_themes()[name]) == []


def test_a_theme_of_faint_text_breaks_its_rules_by_name() -> None:
    dark = shipped_themes()["tide-dark"]
    faint = msgspec.structs.replace(dark, roles=msgspec.structs.replace(dark.roles, text="#0a1a26", rule="#ffffff"))

    broken = broken_rules(faint)

    assert any(line.startswith("tide-dark: text on deep is 1.") for line in broken)
    assert any(line.startswith("tide-dark: rule on deep") for line in broken)
    assert len(broken) == 4


def test_every_role_and_surface_has_a_rule() -> None:
    assert {rule.role for rule in RULES} == set(ROLES)
    assert {rule.surface for rule in RULES} == set(SURFACES)
