"""Every rule that is found: one code, a page with the fixed headings, a threshold with a reason."""

import re

import pytest

from ridgeline.core.finding import CODE, HEADINGS, Rule
from ridgeline.core.plugins import rules

RULES = list(rules().values())


def sections(page: str) -> dict[str, str]:
    """Heading -> text of a rule's page, in order."""
    pieces = re.split(rf"^#*\s*({'|'.join(map(re.escape, HEADINGS))}):?\s*$", page, flags=re.MULTILINE)
    return {heading: text.strip() for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def test_rules_are_found() -> None:
    assert RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_page_has_the_headings_in_order(rule: Rule) -> None:
    found = sections(rule.page)
    assert tuple(found) == HEADINGS
    assert [heading for heading, text in found.items() if len(text) < 20] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_code_and_title(rule: Rule) -> None:
    assert CODE.match(rule.code)
    assert 5 <= len(rule.title) <= 80
    assert not rule.title.endswith(".")


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_threshold_has_a_reason(rule: Rule) -> None:
    if rule.threshold is not None:
        assert rule.threshold.kind == "assumed"
        assert len(rule.threshold.note) >= 10


def test_one_rule_per_file() -> None:
    homes = [rule.check.__module__ for rule in RULES]
    assert sorted(homes) == sorted(set(homes))
    assert [home for home in homes if ".rules." not in home] == []
