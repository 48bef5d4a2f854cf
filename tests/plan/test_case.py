"""The case of a plan: names that others rely on, every citation resolves, the decision tells the story."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.plan.studies import NEED, SIZES, TRAFFIC, study

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.core.finding import RuleConfig
from ridgeline.core.format import PLACEHOLDER
from ridgeline.plan.case import plan_case

STORY: dict[str, Any] = {"need": NEED, "traffic": TRAFFIC, "candidates": SIZES}
STUDIES: dict[str, dict[str, Any]] = {
    "bare": {},
    "story": STORY,
    "mixture": {**STORY, "moe": {"experts": 64, "top_k": 8}},
    "two serving chips": {**STORY, "need": NEED | {"chip": "TPU v5e", "also": ["H100"]}},
    "nothing fits": {**STORY, "candidates": ["70B", "50B"]},
    "larger choice": {**STORY, "choice": "200B"},
    "choice without a need": {"choice": "30B", "traffic": TRAFFIC},
    "no price": {"budget": {"chips": "512xGaudi2"}, **STORY},
    "no shape": {"budget": {"chips": "1xH100", "days": "1s"}},
    "one law": {"laws": ["hoffmann"]},
    "coupled law": {"laws": ["busbridge", "20x"], **STORY},
    "site": {"budget": {"site_power_mw": 1.0}},
}


def document(name: str) -> dict[str, Any]:
    return dict(json.loads(plan_case(study(**STUDIES[name])).dumps()))


def cited(case: dict[str, Any]) -> Iterator[str]:
    """Every quantity that a document names: in prose, in findings, in tables, under other quantities."""
    prose = [case["decision_template"], case.get("because_template", ""), case.get("because", "")]
    for finding in case["findings"]:
        yield from finding["cites"]
        yield from finding["cost"].values()
        yield from filter(None, (finding["value"], finding["threshold"]))
        prose += [finding["template"], finding["fix_template"]]
    for section in case["sections"]:
        prose += section["templates"]
    for text in prose:
        yield from (match.group(1) for match in PLACEHOLDER.finditer(text))
    for table in case["tables"].values():
        yield from (cell["q"] for row in table["rows"] for cell in row if isinstance(cell, dict))
    for quantity in case["quantities"].values():
        yield from quantity["inputs"].values()


@pytest.mark.parametrize("name", STUDIES)
def test_every_citation_resolves(name: str) -> None:
    case = document(name)
    assert set(cited(case)) - set(case["quantities"]) == set()


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_shown_is_there_and_no_place_is_left_open(name: str) -> None:
    case = document(name)
    for section in case["sections"]:
        assert set(section["show"]) <= set(case["tables"]) | set(case["charts"])
    assert all(chart["table"] in case["tables"] for chart in case["charts"].values())
    spoken = [case["decision"], case["title"], *(c["title"] for c in case["charts"].values())]
    spoken += [f["sentence"] for f in case["findings"]] + [f["fix"] for f in case["findings"]]
    spoken += [p for s in case["sections"] for p in s["paragraphs"]]
    for text in spoken:
        assert not re.search(r"[{}]|\bNone\b|\bnan\b|\$-|\.\.$", text), text


@pytest.mark.parametrize("name", STUDIES)
def test_every_rule_of_the_family_speaks(name: str) -> None:
    codes = {f["code"] for f in document(name)["findings"]}
    assert codes == {f"P{number}" for number in range(101, 111)}


@pytest.mark.parametrize("name", ["story", "mixture"])
def test_two_runs_give_the_same_document(name: str) -> None:
    assert plan_case(study(**STUDIES[name])).dumps() == plan_case(study(**STUDIES[name])).dumps()


def test_names_that_others_rely_on() -> None:
    names = set(document("mixture")["quantities"])
    assert names >= {
        "compute", "optimum.params", "optimum.tokens", "optimum.tokens_per_param", "cluster.chips", "cluster.mfu",
        "cluster.time", "cost.rent", "cost.electricity", "cost.per_1e21", "energy.training", "servable.params",
        "state.share", "candidate.30b.tokens", "candidate.30b.besiroglu-2024.loss",
        "law.hoffmann-2022.optimum.params",
        "recipe.balanced.params.total", "recipe.moe.params.active", "recipe.balanced.memory.device",
        "life.s2.30b.saving", "equal_loss.30b.crossover", "need.budget", "planning.vocab",
    }  # fmt: skip
    own = {n for n in names if not n.startswith("law.")}  # a law's constants keep the symbols of its paper
    assert {n for n in own if not re.fullmatch(r"[a-z0-9_.\-]+", n)} == set()


def test_derived_values_are_their_formulas() -> None:
    quantities = document("story")["quantities"]
    params, tokens = quantities["optimum.params"]["value"], quantities["optimum.tokens"]["value"]
    assert quantities["compute"]["value"] == pytest.approx(6 * params * tokens)
    assert quantities["compute"]["formula"] == "chips*peak*mfu*time"
    assert quantities["compute"]["text"] == "1.026e24 FLOP"
    silent = {name for name, q in quantities.items() if q["kind"] in ("published", "specified") and not q["source"]}
    assert {name for name in silent if quantities[name]["value"]} == set()  # a zero is the absence of something


def test_assumptions_are_what_the_study_left_out() -> None:
    def assumed(**rest: Any) -> set[str]:
        return {q.name for q in plan_case(study(**rest)).assumptions}

    assert "planning.vocab" in assumed()
    assert "planning.vocab" not in assumed(vocab=32_000)
    assert "energy.pue" in assumed()
    assert "energy.pue" not in assumed(budget={"pue": 1.3})
    assert "need.overhead" in assumed(need={"budget": "1s"})
    assert "need.overhead" not in assumed(need={"budget": "1s", "overhead": "0.1s"})


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("bare", "Train 92.5B on 1.85T tokens: compute-optimal under 20 tokens per parameter."),
        (
            "story",
            (
                "Train 30B on 5.70T tokens: one conversation takes 4 chips of H100-SXM-80GB within 1.00 s, "
                "where the compute-optimal 92.5B takes 12 chips."
            ),
        ),
        (
            "nothing fits",
            (
                "Train 92.5B on 1.85T tokens: it is compute-optimal, but one conversation takes 12 chips of "
                "H100-SXM-80GB within 1.00 s, where 4 chips may be used."
            ),
        ),
        (
            "larger choice",
            (
                "Train 200B on 855B tokens: one conversation takes 25 chips of H100-SXM-80GB within 1.00 s, "
                "where 4 chips may be used; the compute-optimal 92.5B takes 12 chips."
            ),
        ),
        (
            "choice without a need",
            "Train 30B on 5.70T tokens: the study's choice, where 92.5B is compute-optimal under 20 tokens per",
        ),
    ],
)
def test_the_decision(name: str, start: str) -> None:
    assert document(name)["decision"].startswith(start)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bare", "a latency need or a traffic forecast would change it"),
        ("story", "and saves $21.9M of serving over 100T tokens"),
        ("larger choice", "and adds $37.7M of serving over 100T tokens"),
        ("nothing fits", "at most 32.3B params, would make it a product"),
        ("choice without a need", "It gives up loss (0.0125 nat under besiroglu-2024"),
    ],
)
def test_what_the_decision_rests_on(name: str, said: str) -> None:
    assert said in document(name)["because"]


def test_configuration_reaches_the_rules() -> None:
    case = plan_case(study(), config=RuleConfig(ignore=("P10",), thresholds={"P110": 1}))
    assert [(f.code, str(f.verdict)) for f in case.findings] == [("P110", "fail")]
    with pytest.raises(InputError, match="a rule with a threshold, got 'P103'"):
        plan_case(study(), config=RuleConfig(thresholds={"P103": 1}))


def test_title_and_question_are_the_study_s() -> None:
    case: Case = plan_case(study(name="Ours", question="What now?"), command="ridgeline plan")
    assert (case.title, case.sections[0].paragraphs, case.command) == ("Ours", ("What now?",), "ridgeline plan")
    assert plan_case(study()).title == "1,000 H100-SXM-80GB for 30.0 days"
