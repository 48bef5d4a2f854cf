"""``ridgeline why``: the derivation as text."""

from collections.abc import Callable
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.report import why

Document = dict[str, Any]


def test_tree(document: Document, golden: Callable[[str, str], None]) -> None:
    golden("report-why.txt", why.tree(document, "optimum.tokens"))


def test_names(document: Document, golden: Callable[[str, str], None]) -> None:
    golden("report-why-names.txt", why.tree(document))


def test_a_shared_node_is_derived_once(document: Document) -> None:
    text = why.tree(document, "optimum.tokens")
    assert text.count("chips × peak × mfu × days") == 1
    assert text.count("derived above") == 1


def test_evidence_is_searched_too(document: Document) -> None:
    text = why.tree(document, "rank17.exposed_comm")
    assert text.startswith("evidence: Step trace of 24 ranks\n")
    assert "measured: rank17.json, step 400" in text


def test_an_unknown_name_gets_the_close_ones(document: Document) -> None:
    with pytest.raises(InputError, match=r"optimum\.params"):
        why.tree(document, "optimum.param")


def test_an_input_that_is_missing_is_left_out(document: Document) -> None:
    quantities = {"c": {"value": 6.0, "unit": "1", "kind": "derived", "formula": "a*b", "inputs": {"a": "gone"}}}
    assert why.tree({**document, "quantities": quantities}, "c").splitlines() == ["c = 6.00", "  a × b", "  = a × b"]


def test_no_numbers_in_words() -> None:
    assert why.tree({"schema": 1, "tool": "x", "quantities": {}, "findings": []}) == "This case has no numbers.\n"
