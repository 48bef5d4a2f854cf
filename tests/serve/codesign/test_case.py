"""The case: stable names, derivations that open, the honest none, and its pages."""

import json

import pytest
from tests.serve.codesign.asked import limits, none, turn

from ridgeline.core.case import Case
from ridgeline.report import html, markdown
from ridgeline.serve.codesign.case import codesign_case


@pytest.fixture(scope="module")
def case() -> Case:
    return codesign_case(limits(), command="ridgeline serve codesign")


def test_names_that_others_rely_on(case: Case) -> None:
    for name in ("params.total", "params.active", "budget.tokens", "codesign.loss", "codesign.excess", "latency.tpot",
                 "latency.ttft", "serve.dollars_per_million_tokens", "serve.prompt", "serve.output"):  # fmt: skip
        assert name in case.quantities, name
    assert "turn.total" in codesign_case(turn()).quantities


def test_every_row_of_the_front_opens(case: Case) -> None:
    rows = case.tables["codesign.front"].rows
    assert len(rows) > 2
    for number in range(1, len(rows) + 1):
        loss, total = (case.find(f"front.r{number}.{name}") for name in ("codesign.loss", "params.total"))
        assert {"N", "D"} <= set(loss.inputs)
        assert sum(1 for _ in total.walk()) > 10
        price = case.find(f"front.r{number}.serve.dollars_per_million_tokens")
        assert "prices.chip_hour.h100-sxm-80gb" in {q.name for q in price.walk()}
    assert rows[case.tables["codesign.front"].highlight or 0][0] == limits().winner.shape  # type: ignore[union-attr]


def test_the_decision_says_what_and_at_what_cost(case: Case) -> None:
    said = case.text(case.decision)
    assert said.startswith("Train ")
    assert "compute-optimal dense" in said
    assert "$" in said


def test_none_does_names_the_nearest_miss() -> None:
    missed = codesign_case(none())
    said = missed.text(missed.decision)
    assert said.startswith("None does")
    assert "TPOT takes" in said
    assert "params.total" not in missed.quantities
    assert [str(f.verdict) for f in missed.findings if f.code == "S501"] == ["fail"]


@pytest.mark.parametrize("which", [limits, turn, none])
def test_every_page_renders(which: object) -> None:
    document = json.loads(codesign_case(which()).dumps())  # type: ignore[operator]
    assert "codesign.map" in document["charts"]
    for page in (markdown.render(document), html.render(document)):
        assert "The limits" in page


def test_the_title_states_lengths_batch_and_limits(case: Case) -> None:
    assert "8,192 tokens in and 128 out, at batches of 1, 4, 16, 64 or 256, TTFT within" in case.title
    for words in ("TTFT within 0.500 s", "TPOT within 15.0 ms/token", "the price within $3.00 per million tokens"):
        assert words in case.title
    assert codesign_case(turn()).title.endswith("at a batch of 1, a turn within 1.00 s")
