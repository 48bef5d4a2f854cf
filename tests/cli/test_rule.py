"""``ridgeline rule``: the list, a page, unknown codes."""

from typing import Any

import pytest

from ridgeline.core.finding import HEADINGS
from ridgeline.core.plugins import rules


def test_list_has_every_rule(ridgeline: Any) -> None:
    done = ridgeline("rule")
    assert done.code == 0
    assert [code for code in rules() if f"{code}  " not in done.out] == []


@pytest.mark.parametrize("code", list(rules())[:1])
def test_page_has_the_headings(ridgeline: Any, code: str) -> None:
    done = ridgeline("rule", code.lower())
    assert done.code == 0
    assert [heading for heading in HEADINGS if heading not in done.out] == []
    assert ridgeline("rule", code, "--json").json["code"] == code


@pytest.mark.parametrize("code", list(rules()))
def test_a_page_fits_the_terminal_and_keeps_every_word(ridgeline: Any, code: str) -> None:
    out = ridgeline("rule", code).out
    assert max(map(len, out.splitlines())) <= 80
    assert rules()[code].page.split() == out[out.index("## ") :].split()


def test_an_unknown_code_is_bad_input(ridgeline: Any) -> None:
    done = ridgeline("rule", "Z999")
    assert (done.code, done.out) == (2, "")
    assert "Z999" in done.err
