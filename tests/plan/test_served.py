"""The price of served tokens: from a serving case among the evidence, or else assumed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.plan.studies import TRAFFIC, number, plan, study

from ridgeline.core.case import Case
from ridgeline.core.quantity import given
from ridgeline.plan.memo import memo_case
from ridgeline.plan.plan import make_plan
from ridgeline.plan.served import served_price
from ridgeline.report import html, markdown

PRICED = {
    "serve.dollars_per_million_tokens": (13.0, "USD/(1e6*token)"),
    "params.active": (20e9, "param"),
    "serve.prompt": (8192, "token"),
    "serve.output": (128, "token"),
}


def document(without: str = "", price: float = 13.0) -> dict[str, Any]:
    """A serving case as its plain document."""
    case = Case("serve codesign", "what can be served")
    figures = PRICED | {"serve.dollars_per_million_tokens": (price, "USD/(1e6*token)")}
    case.add(*(given(name, *item, "the test") for name, item in figures.items() if name != without))
    return case.to_json()


def test_the_price_is_spread_over_the_prompt_and_scaled_with_size() -> None:
    priced, unused = served_price([("50-serve.json", document())])
    assert priced is not None
    assert unused == []
    found = make_plan(study(traffic=TRAFFIC, candidates=["10B"]), priced).scenarios[0]
    life = found.of("10b")
    assert life.serving_cost is not None
    assert number(life.serving_cost) == pytest.approx(13.0 / 1e6 * 128 / (8192 + 128) * 1e12 * 10e9 / 20e9, rel=1e-12)
    sources = {q.source.where for q in life.serving_cost.walk() if q.kind == "measured" and q.source}
    assert sources == {"evidence/50-serve.json, by ridgeline serve codesign"}
    assert "planning.serving_mfu" not in {q.name for q in life.serving_cost.walk()}
    assert life.saving is not None
    assert number(life.saving) == pytest.approx(number(found.lives[0].serving_cost) - number(life.serving_cost))


def test_without_evidence_the_assumed_mfu_prices_it() -> None:
    life = plan(traffic=TRAFFIC, candidates=["10B"]).scenarios[0].of("10b")
    assert life.serving_cost is not None
    assert "planning.serving_mfu" in {q.name for q in life.serving_cost.walk()}
    assert make_plan(study(traffic=TRAFFIC), None).priced is None


@pytest.mark.parametrize("without", ["params.active", "serve.prompt", "serve.output"])
def test_a_price_without_its_model_or_lengths_is_named_and_not_used(without: str) -> None:
    priced, unused = served_price([("50-serve.json", document(without))])
    assert priced is None
    assert unused == [f"50-serve.json: its price of served tokens is not used, it lacks {without}"]


def test_a_case_without_a_price_is_no_matter() -> None:
    assert served_price([("10-x.json", document("serve.dollars_per_million_tokens"))]) == (None, [])


def test_the_first_usable_case_counts() -> None:
    other = document(price=26.0)
    priced, _ = served_price([("a.json", document("params.active")), ("b.json", other), ("c.json", document())])
    assert priced is not None
    assert number(priced.price) == pytest.approx(26.0 * 128 / 8320)


def test_a_price_of_nothing_is_named_and_not_used() -> None:
    priced, (why,) = served_price([("a.json", document(price=0.0))])
    assert priced is None
    assert "above zero" in why


def test_the_memo_uses_it_and_its_derivation_opens(repo: Path, tmp_path: Path) -> None:
    shutil.copy(repo / "examples" / "flagship" / "study.toml", tmp_path)
    before = memo_case(tmp_path)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "50-serve.json").write_text(json.dumps(document()))
    case = memo_case(tmp_path)
    cost = case.find("life.s2.17b.serving_cost")
    assert cost.formula == "price*served*params/size"
    assert before.find("life.s2.17b.serving_cost").formula == "hours*price"
    assert case.lost == []
    for text in (markdown.render(case.to_json()), html.render(case.to_json())):
        assert "Price of a million served tokens" in text


def test_the_memo_names_a_price_that_it_cannot_use(repo: Path, tmp_path: Path) -> None:
    shutil.copy(repo / "examples" / "flagship" / "study.toml", tmp_path)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "50-serve.json").write_text(json.dumps(document("serve.prompt")))
    assert memo_case(tmp_path).lost == ["50-serve.json: its price of served tokens is not used, it lacks serve.prompt"]
