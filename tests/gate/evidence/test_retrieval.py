"""Gold questions and retrieval runs: what is read and refused, and the mistakes of published scorers."""

import json
from math import log2
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.retrieval import Gold, hops_of, read_gold, read_run, scored
from ridgeline.gate.evidence.samples import Samples

QUESTION = {"id": "q1", "evidence_titles": ["A", "B"], "answer": "x", "hops": 2}


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score(tmp_path: Path, retrieved: list[Any], k: int, **question: Any) -> dict[str, float]:
    gold = read_gold(lines(tmp_path / "gold.jsonl", {**QUESTION, **question}))
    run = read_run(lines(tmp_path / "run.jsonl", {"id": "q1", "retrieved": retrieved, "answer": "X."}))
    return {name: float(values[0]) for name, values in scored(gold, run, k).scores.items()}


def test_all_hops_or_none(tmp_path: Path) -> None:
    half, whole = score(tmp_path, ["A", "n"], 2), score(tmp_path, ["n", "A", "B"], 3)
    assert (half["all-evidence recall@2"], half["any-evidence recall@2"], half["evidence recall@2"]) == (0, 1, 0.5)
    assert (half["MRR"], half["MAP"]) == (1, 0.5)
    assert whole["all-evidence recall@3"] == 1
    assert whole["MRR"] == 0.5
    assert whole["MAP"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert whole["nDCG@3"] == pytest.approx((1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3)))
    assert (whole["answer EM"], whole["answer F1"]) == (1, 1)


def test_k_is_k(tmp_path: Path) -> None:
    """A published scorer takes the first eleven for k = 10."""
    ranked = ["A", *(f"n{i}" for i in range(9)), "B"]
    assert score(tmp_path, ranked, 10)["all-evidence recall@10"] == 0
    assert score(tmp_path, ranked, 11)["all-evidence recall@11"] == 1


def test_hits_are_counted_on(tmp_path: Path) -> None:
    """A published scorer begins its count of hits anew at each rank, so that the second hit adds 1/rank, not 2/rank."""
    assert score(tmp_path, ["A", "B"], 2)["MAP"] == 1.0


def test_an_item_retrieved_twice_counts_once(tmp_path: Path) -> None:
    gold = read_gold(lines(tmp_path / "gold.jsonl", QUESTION))
    run = read_run(lines(tmp_path / "run.jsonl", {"id": "q1", "retrieved": ["A", "A"]}))
    found = scored(gold, run, 5)
    assert found.scores["all-evidence recall@5"][0] == 0
    assert [loss.count for loss in found.lost] == [1]


def test_items_may_be_objects_and_numbers(tmp_path: Path) -> None:
    found = score(tmp_path, [{"title": "A", "score": 0.3}, {"id": 7}], 5, evidence_titles=["A", 7])
    assert found["all-evidence recall@5"] == 1


def two(tmp_path: Path, *rows: Any, on_error: str = "wrong") -> Samples:
    gold = read_gold(lines(tmp_path / "gold.jsonl", QUESTION, {**QUESTION, "id": "q2", "hops": 3}))
    return scored(gold, read_run(lines(tmp_path / "run.jsonl", *rows)), 5, on_error)


def test_a_missing_question_stays_in_the_denominator(tmp_path: Path) -> None:
    row = {"id": "q1", "retrieved": ["A", "B"]}
    found = two(tmp_path, row, {"id": "q9", "retrieved": []})
    assert found.scores["all-evidence recall@5"].tolist() == [1, 0]
    assert not found.errors.any()
    assert {loss.what: loss.count for loss in found.lost} == {
        "gold questions that the run does not have, counted as nothing found": 1,
        "questions of the run that are not gold": 1,
    }
    assert two(tmp_path, row, on_error="drop").errors.tolist() == [False, True]
    with pytest.raises(InputError, match="every gold question in the run, got '1 missing'"):
        two(tmp_path, row, on_error="refuse")


def test_an_answer_that_is_missing_is_wrong(tmp_path: Path) -> None:
    rows = [{"id": "q1", "retrieved": ["A"], "answer": "x"}, {"id": "q2", "retrieved": []}]
    found = two(tmp_path, *rows)
    assert found.scores["answer EM"].tolist() == [1, 0]
    assert [loss.what for loss in found.lost] == ["questions without an answer, counted as wrong"]
    assert "answer EM" not in two(tmp_path, {"id": "q1", "retrieved": ["A"]}, rows[1]).scores


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{**QUESTION, "evidence_titles": []}], "evidence of every question, got \"none for 'q1'\""),
        ([{"id": "q1", "answer": "x"}], "evidence of every question"),
        ([QUESTION, QUESTION], "one line a question, got \"another of 'q1'\""),
        ([{**QUESTION, "evidence_titles": ["A", "A"]}], "each piece of evidence once"),
        ([{**QUESTION, "evidence_titles": "A"}], "a list of items"),
        ([{**QUESTION, "evidence_titles": [None, "A"]}], "an item's name"),
        ([{**QUESTION, "hops": 0}], "a whole number of hops"),
        ([{**QUESTION, "id": None}], "an id of the question"),
    ],
)
def test_gold_that_is_refused(tmp_path: Path, rows: list[Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_gold(lines(tmp_path / "gold.jsonl", *rows))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "k", "says"),
    [
        ([{"id": "q1", "retrieved": ["A"]}] * 2, 5, "one line a question"),
        ([{"id": "q1"}], 5, "a ranked list of retrieved items"),
        ([{"id": "q1", "retrieved": ["A"]}], 0, "k of at least 1, got 0"),
        ([{"id": "q9", "retrieved": ["A"]}], 5, "a run of the gold questions, got 'none of them'"),
        ([{"id": "q1", "retrieved": ["doc-17"]}], 5, "retrieved items named as the evidence is, got 'doc-17'"),
    ],
)
def test_runs_that_are_refused(tmp_path: Path, rows: list[Any], k: int, says: str) -> None:
    gold = read_gold(lines(tmp_path / "gold.jsonl", QUESTION))
    with pytest.raises(InputError) as caught:
        scored(gold, read_run(lines(tmp_path / "run.jsonl", *rows)), k)
    assert says in str(caught.value)


@pytest.mark.data
def test_the_public_questions(data_dir: Path) -> None:
    found: Gold = read_gold(data_dir / "gates" / "multihop_gold_69.jsonl")
    assert len(found) == 69
    assert hops_of(found) == {"2 hops": 59, "3 hops": 4, "4 hops": 6}


def test_one_piece_of_evidence_a_question_is_no_multihop(tmp_path: Path) -> None:
    one = {"id": "q2", "evidence_ids": ["A"], "hops": 3}
    with pytest.raises(InputError, match="two pieces of evidence"):
        read_gold(lines(tmp_path / "g.jsonl", one))
    found = read_gold(lines(tmp_path / "g.jsonl", one, {"id": "q3", "evidence_ids": ["A", "B"]}))
    assert {"one piece" in item.what or "more hops" in item.what for item in found.lost} == {True}
    assert len(found.lost) == 2
