"""P103: one conversation against the chips it may occupy."""

from tests.plan.studies import NEED, finding, findings, number, plan, product_plan


def test_unknown_without_a_need() -> None:
    found = finding(plan(), "P103")
    assert str(found.verdict) == "unknown"
    assert "--turn" in found.fix


def test_a_chosen_product_passes_and_the_optimum_is_a_warning() -> None:
    found = {str(f.verdict): f for f in findings(product_plan(), "P103")}
    assert set(found) == {"pass", "warn"}
    assert number(found["pass"].value) == 4
    assert number(found["warn"].value) == 12
    over = {q.name: number(q) for q in found["warn"].cites}
    assert over["optimum.h100-sxm-80gb.serve.chips_exact.over"] == 3
    assert "times as many" in found["warn"].sentence
    assert "times as many" not in found["pass"].sentence


def test_a_choice_that_is_no_product_fails() -> None:
    found = findings(product_plan(choice="70B"), "P103")
    assert [(str(f.verdict), number(f.value)) for f in found] == [("fail", 9), ("warn", 12)]


def test_an_optimum_that_is_chosen_is_named_once() -> None:
    fails = finding(product_plan(candidates=["70B"]), "P103")
    assert (str(fails.verdict), number(fails.value)) == ("fail", 12)
    fits = finding(plan(need=NEED | {"chips_per_conversation": 12}), "P103")
    assert str(fits.verdict) == "pass"


def test_the_limit_itself_is_inside() -> None:
    at, below = (findings(plan(need=NEED | {"chips_per_conversation": n}, choice="70B"), "P103") for n in (9, 8))
    assert [str(f.verdict) for f in at] == ["warn", "pass"]
    assert [str(f.verdict) for f in below] == ["fail", "warn"]
