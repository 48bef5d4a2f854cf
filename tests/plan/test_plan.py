"""The plan: which sizes are compared, which one is chosen, what the laws say side by side."""

from typing import Any

import pytest
from tests.arithmetic.worked import printed
from tests.plan.studies import NEED, SIZES, number, plan, product_plan

from ridgeline.plan.plan import LAWS


def sizes(made: object) -> list[str]:
    return [c.label for c in made.candidates]  # type: ignore[attr-defined]


def test_the_laws_side_by_side() -> None:
    made = plan()
    assert tuple(made.optima) == LAWS
    assert made.judge.law.slug == "besiroglu-2024"
    for best in made.optima.values():
        assert 6 * number(best.params) * number(best.tokens) == pytest.approx(number(made.cluster.compute))
    assert made.optimum.params is made.optima["tokens-per-param-20"].params
    assert made.optimum.params.name == "optimum.params"
    assert made.optima["hoffmann-2022"].params.name == "law.hoffmann-2022.optimum.params"


def test_the_first_law_decides() -> None:
    made = plan(laws=["hoffmann", "20x"])
    assert number(made.optimum.params) == printed("41.8e9")
    assert made.judge.law.slug == "hoffmann-2022"
    assert list(made.optimum.losses) == ["hoffmann-2022"]
    assert number(made.optimum.excess["hoffmann-2022"]) == pytest.approx(0, abs=1e-12)


def test_without_candidates_parts_of_the_optimum_are_compared() -> None:
    made = plan()
    assert sizes(made) == ["46B", "23B", "12B"]
    assert {c.params.source.title for c in made.candidates if c.params.source} == {"chosen by the plan"}


def test_with_a_need_the_largest_servable_size_joins_them() -> None:
    made = plan(need=NEED)
    assert sizes(made) == ["46B", "32B", "23B", "12B"]
    assert made.choice.label == "32B"
    assert number(made.choice.params) <= number(made.servable)


def test_a_servable_size_above_the_optimum_is_not_a_candidate() -> None:
    made = plan(need=NEED | {"chips_per_conversation": 64})
    assert sizes(made) == ["46B", "23B", "12B"]
    assert made.choice is made.optimum
    assert not made.deviates


def test_candidates_of_the_study_are_the_only_ones() -> None:
    made = product_plan()
    assert sizes(made) == SIZES
    assert [c.label for c in made.everyone] == ["92.5B", *SIZES]
    source = made.candidates[0].params.source
    assert source is not None
    assert (source.title, source.where) == ("given by the user", "candidates")


def test_a_size_is_compared_once_and_never_beside_itself() -> None:
    assert sizes(plan(candidates=["30B", "30e9", "92.5B"], choice="30B")) == ["30B"]


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, "92.5B"),
        ({"choice": "17B"}, "17B"),
        ({"choice": "92.5B"}, "92.5B"),
        ({"need": NEED, "candidates": SIZES}, "30B"),
        ({"need": NEED | {"chips_per_conversation": 9}, "candidates": SIZES}, "70B"),
        ({"need": NEED | {"chips_per_conversation": 12}, "candidates": SIZES}, "92.5B"),
        ({"need": NEED, "candidates": SIZES, "choice": "70B"}, "70B"),
        ({"need": NEED, "candidates": ["70B", "50B"]}, "92.5B"),  # nothing fits
    ],
)
def test_the_choice(changes: dict[str, Any], chosen: str) -> None:
    made = plan(**changes)
    assert made.choice.label == chosen
    assert made.deviates == (chosen != "92.5B")


def test_unique_tokens_are_given_or_assumed() -> None:
    assert (plan().unique_tokens.name, plan().unique_tokens.kind) == ("token_supply.plan", "assumed")
    given = plan({"unique_tokens": "2T"}).unique_tokens
    assert (given.name, given.kind, number(given)) == ("data.unique_tokens", "specified", 2e12)


def test_a_size_without_a_shape_leaves_the_rest_of_the_plan_standing() -> None:
    made = plan({"chips": "1xH100", "days": "1s"})
    assert made.recipes == ()
    assert "No aligned shape" in made.no_shape
    assert number(made.optimum.params) > 0
