"""Every hop against averages: the retriever that finds one hop at once and never the other."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.evidence.retrieval import read_gold, read_run
from ridgeline.gate.gates.multihop import decide
from ridgeline.gate.registration.plan import Plan

Ranked = Callable[[int, Sequence[str]], list[str]]


def one_hop(at: int, evidence: Sequence[str]) -> list[str]:
    return [evidence[0], *(f"n{i}" for i in range(9))]


def late(at: int, evidence: Sequence[str]) -> list[str]:
    return ["n0", "n1", "n2", *evidence, *(f"n{i}" for i in range(3, 8))]


def decided(tmp_path: Path, base: Ranked | None, cand: Ranked, n: int = 69, **keys: Any) -> Decided:
    gold: list[dict[str, Any]] = [
        {"id": f"q{i}", "evidence_ids": [f"a{i}", f"b{i}"], "hops": 2 if i % 10 else 3} for i in range(n)
    ]

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def run(name: str, ranked: Ranked) -> Any:
        found = [{"id": row["id"], "retrieved": ranked(i, row["evidence_ids"])} for i, row in enumerate(gold)]
        return read_run(write(name, found))

    questions = read_gold(write("gold.jsonl", gold))
    plan = build(Plan, {"gate": "multihop", **keys})
    return decide(questions, run("base.jsonl", base) if base else None, run("cand.jsonl", cand), plan)


def check_of(found: Decided, metric: str, name: str = "overall") -> Check:
    return next(check for check in found.checks if (check.name, check.metric) == (name, metric))


def test_averages_do_not_see_the_hop_that_is_never_found(tmp_path: Path) -> None:
    found = decided(tmp_path, late, one_hop)
    assert found.outcome is Outcome.NO_SHIP
    assert check_of(found, "all-evidence recall@5").interval.estimate == -1
    assert check_of(found, "any-evidence recall@5").interval.estimate == 0
    for metric in ("MRR", "nDCG@5"):
        assert check_of(found, metric).interval.estimate > 0
        assert not check_of(found, metric).required
    said = " ".join(found.sections[0].paragraphs)
    assert "fell for certain" in said
    assert "any-evidence recall@5, MRR, nDCG@5, MAP did not show it" in said
    case_of(found).dumps()


def test_a_retriever_as_good_ships_where_there_are_questions_enough(tmp_path: Path) -> None:
    def near(at: int, evidence: Sequence[str]) -> list[str]:
        return one_hop(at, evidence) if at % 200 == 0 else late(at, evidence)

    def other(at: int, evidence: Sequence[str]) -> list[str]:
        return one_hop(at, evidence) if at % 200 == 1 else late(at, evidence)

    assert decided(tmp_path, near, other, 2000).outcome is Outcome.SHIP
    few = decided(tmp_path, near, other, 69)
    assert few.outcome is Outcome.INCONCLUSIVE
    (check,) = [check for check in few.checks if check.required]
    assert check.needed is not None
    assert check.needed > 69


def test_what_69_questions_cannot_see_is_said(tmp_path: Path) -> None:
    def some(at: int, evidence: Sequence[str]) -> list[str]:
        return one_hop(at, evidence) if at % 3 == 0 else late(at, evidence)

    def others(at: int, evidence: Sequence[str]) -> list[str]:
        return one_hop(at, evidence) if at % 3 == 1 else late(at, evidence)

    found = decided(tmp_path, some, others)
    text = case_of(found).text(found.change)
    assert text.startswith("With 69 questions one recall alone is known to 11.5 points either way")
    assert (check_of(found, "all-evidence recall@5").detectable or 0) > 0.12


def test_hops_decide_when_asked(tmp_path: Path) -> None:
    def three_lost(at: int, evidence: Sequence[str]) -> list[str]:
        return late(at, evidence) if at % 10 else one_hop(at, evidence)

    plain = decided(tmp_path, late, three_lost, 900, margin=0.2)
    assert not check_of(plain, "all-evidence recall@5", "3 hops").required
    assert plain.outcome is Outcome.SHIP
    strict = decided(tmp_path, late, three_lost, 900, margin=0.2, slices="hops")
    assert check_of(strict, "all-evidence recall@5", "3 hops").outcome is Outcome.NO_SHIP
    assert strict.outcome is Outcome.NO_SHIP


def test_a_run_alone_never_ships(tmp_path: Path) -> None:
    found = decided(tmp_path, None, late)
    assert found.outcome is Outcome.INCONCLUSIVE
    (check,) = found.checks
    assert check.interval.degenerate == "no baseline to compare with"
    assert check.needed
    case_of(found).dumps()


def test_the_same_run_twice_is_not_a_comparison(tmp_path: Path) -> None:
    assert decided(tmp_path, late, late).outcome is Outcome.INCONCLUSIVE


def test_an_unknown_metric_names_the_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="all-evidence recall@5"):
        decided(tmp_path, late, one_hop, metrics=["recall"])


def test_a_baseline_that_finds_nothing_cannot_be_lost_against(tmp_path: Path) -> None:
    def other(at: int, evidence: Sequence[str]) -> list[str]:
        return ["x", *one_hop(at, evidence)]

    found = decided(tmp_path, one_hop, other, 2000)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "cannot show" in check_of(found, "all-evidence recall@5").interval.degenerate
