"""Scaling laws: worked numbers of section D, the optimum as a minimum, inverses, every kind of law, refusals."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q

from ridgeline.arithmetic import laws
from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, leaf

H = law("law-h")
LOSSES = ["hoffmann-2022", "besiroglu-2024", "busbridge-2025"]  # two parametric, one coupled
budgets = st.floats(17, 27).map(lambda exponent: 10.0**exponent)


def size(value: Any) -> Quantity:
    return q(value, "param", "N")


def data(value: Any) -> Quantity:
    return q(value, "token", "D")


def compute(value: float) -> Quantity:
    return q(value, "FLOP", "C")


def by_hand(chosen: Law, params: float, tokens: float) -> float:
    """L(N, D) in plain Python."""
    c = {symbol: float(item.value) for symbol, item in chosen.constants.items()}
    bracket = c["A"] / params ** c["alpha"] + c["B"] / tokens ** c["beta"]
    return c["E"] + float(bracket ** c.get("gamma", 1.0))


def least_loss(chosen: Law, flops: float) -> tuple[float, float]:
    """(N, loss) of least loss along 6ND = C, by ternary search in log N: no formula of the optimum in it."""
    low, high = math.log(1e3), math.log(flops / 6 / 1e3)
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        at = [by_hand(chosen, math.exp(x), flops / (6 * math.exp(x))) for x in (left, right)]
        low, high = (low, right) if at[0] < at[1] else (left, high)
    best = math.exp((low + high) / 2)
    return best, by_hand(chosen, best, flops / (6 * best))


def test_terms_at_70e9_and_1_4e12() -> None:
    found = laws.loss(H, size(70e9), data(1.4e12), "loss")
    assert number(found) == printed("1.9366")
    assert found.unit == "nat"
    assert number(H.constants["E"]) == printed("1.6900")
    far = 1e60  # with one of the two out of the way the other term is left
    assert number(laws.loss(H, size(70e9), data(far), "l")) - 1.69 == printed("0.0835")
    assert number(laws.loss(H, size(far), data(1.4e12), "l")) - 1.69 == printed("0.1632")


@pytest.mark.parametrize(
    ("params", "answer"),
    [(1e8, "2.6198"), (3e8, "2.4344"), (1e9, "2.3400"), (3e9, "2.3363"), (1e10, "2.4160"), (3e10, "2.5687")],
)
def test_six_sizes_at_1e21(params: float, answer: str) -> None:
    assert number(laws.loss(H, size(params), data(1e21 / (6 * params)), "loss")) == printed(answer)


@pytest.mark.parametrize(
    ("flops", "params", "ratio"),
    [(1e19, "2.280e8", "32.1"), (1e21, "1.824e9", "50.1"), (1e23, "1.460e10", "78.2"), (1e25, "1.168e11", "122.1")],
)
def test_closed_form_optimum(flops: float, params: str, ratio: str) -> None:
    best = laws.optimum(H, compute(flops), "best")
    assert number(best.params) == printed(params)
    assert number(best.tokens_per_param) == printed(ratio)
    assert 6 * number(best.params) * number(best.tokens) == pytest.approx(flops, rel=1e-12)
    assert [item.name for item in (best.params, best.tokens, best.tokens_per_param)] == [
        "best.params", "best.tokens", "best.tokens_per_param",
    ]  # fmt: skip


def test_exponent_of_the_optimum() -> None:
    low, high = (number(laws.optimum(H, compute(c), "best").params) for c in (1e19, 1e25))
    assert math.log10(high / low) / 6 == printed("0.4516")


@pytest.mark.parametrize("slug", LOSSES)
@for_all(flops=budgets)
def test_the_optimum_is_the_minimum_along_6nd(slug: str, flops: float) -> None:
    chosen = law(slug)
    best = laws.optimum(chosen, compute(flops), "best")
    params, least = least_loss(chosen, flops)
    assert number(best.params) == pytest.approx(params, rel=1e-4)  # a minimum is flat: N is known to a root of epsilon
    assert best.loss is not None
    assert number(best.loss) == pytest.approx(least, rel=1e-12)


@for_all(flops=budgets, factor=st.floats(0.05, 20))
def test_any_other_size_has_more_loss(flops: float, factor: float) -> None:
    best = laws.optimum(H, compute(flops), "best")
    assert best.loss is not None
    other = number(best.params) * factor
    assert number(laws.loss(H, size(other), data(flops / (6 * other)), "loss")) >= number(best.loss) * (1 - 1e-14)


@pytest.mark.parametrize("slug", LOSSES)
@pytest.mark.parametrize("factor", [0.1, 0.5, 2.0])
def test_equivalent_compute_is_the_budget_whose_optimum_has_that_loss(slug: str, factor: float) -> None:
    chosen, flops = law(slug), 1.026e24
    best = laws.optimum(chosen, compute(flops), "best")
    assert best.loss is not None
    params = number(best.params) * factor
    deviating = laws.loss(chosen, size(params), data(flops / (6 * params)), "deviating")
    worth = laws.equivalent_compute(chosen, best.loss, deviating, "worth")
    assert worth.unit == "%"
    low, high = math.log(flops / 1e4), math.log(flops)  # bisection over budgets, each minimized directly
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if least_loss(chosen, math.exp(middle))[1] > number(deviating) else (low, middle)
    assert number(worth, "1") == pytest.approx(math.exp(low) / flops, rel=1e-6)
    assert 0 < number(worth, "1") < 1


def test_the_optimum_is_worth_all_of_its_compute() -> None:
    best = laws.optimum(H, compute(1e24), "best")
    assert best.loss is not None
    assert number(laws.equivalent_compute(H, best.loss, best.loss, "worth")) == pytest.approx(100)


@pytest.mark.parametrize("slug", LOSSES)
@for_all(params=st.floats(8, 13), tokens=st.floats(9, 14))
def test_tokens_to_reach_inverts_the_loss(slug: str, params: float, tokens: float) -> None:
    chosen, n, d = law(slug), size(10.0**params), data(10.0**tokens)
    target = laws.loss(chosen, n, d, "target")
    assert number(laws.tokens_to_reach(chosen, n, target, "tokens")) == pytest.approx(10.0**tokens, rel=1e-6)


@pytest.mark.parametrize("slug", LOSSES)
def test_below_the_floor_no_number_of_tokens_is_enough(slug: str) -> None:
    chosen = law(slug)
    target = laws.loss(chosen, size(30e9), data(5e12), "target")
    floor = number(laws.floor_params(chosen, target, "floor"))
    assert floor < 30e9
    assert by_hand(chosen, floor, 1e80) == pytest.approx(number(target), rel=1e-9)
    assert number(laws.tokens_to_reach(chosen, size(floor * 1.001), target, "tokens")) > 1e15
    with pytest.raises(InputError, match="Expected a finite tokens"):
        laws.tokens_to_reach(chosen, size(floor * 0.999), target, "tokens")


def test_the_coupled_law_is_its_bracket_to_the_power() -> None:
    coupled = law("busbridge")
    assert number(laws.loss(coupled, size(7e9), data(1e12), "loss")) == pytest.approx(by_hand(coupled, 7e9, 1e12))
    assert by_hand(coupled, 7e9, 1e12) == pytest.approx(
        1.22 + (3355 / 7e9**0.408 + 18186 / 1e12**0.431) ** 0.452, rel=1e-12
    )


def test_arrays_go_through_the_same_formula() -> None:
    sizes = np.array([1e8, 1e9, 1e10])
    params = leaf("N", sizes, "param", "specified")
    found = laws.loss(H, params, leaf("D", 1e21 / (6 * sizes), "token", "specified"), "loss")
    assert np.asarray(found.value) == pytest.approx([by_hand(H, n, 1e21 / (6 * n)) for n in sizes], rel=1e-14)


def test_the_ratio_law() -> None:
    best = laws.optimum(law("20x"), compute(1.026e24), "best")
    assert number(best.tokens_per_param) == pytest.approx(20)
    assert number(best.params) == printed("92.5e9")
    assert best.loss is None


def test_a_power_law_that_predicts_tokens() -> None:
    best = laws.optimum(law("llama3"), compute(3.8e25), "best")
    assert number(best.tokens) == pytest.approx(0.299 * 3.8e25**0.537)
    assert number(best.params) == pytest.approx(402e9, rel=0.1)  # the size its authors chose from this fit
    assert best.loss is None


def test_a_power_law_that_predicts_params(tmp_path: Any) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'name = "Own"\nkind = "power"\npredicts = "params"\nparams = "total"\n[source]\ntitle = "own"\n'
        "[constants]\na = 0.1\nb = 0.5\n"
    )
    best = laws.optimum(law(str(file)), compute(1e20), "best")
    assert (number(best.params), number(best.tokens)) == (pytest.approx(1e9), pytest.approx(1e20 / 6e9))


@pytest.mark.parametrize("slug", ["kaplan", "muennighoff", "joint-moe", "krajewski", "abnar"])
def test_a_law_without_an_optimum_is_refused(slug: str) -> None:
    with pytest.raises(InputError, match="Expected a law that says where the optimum lies"):
        laws.optimum(law(slug), compute(1e20), "best")


@pytest.mark.parametrize("slug", ["20x", "llama3", "kaplan"])
def test_a_law_without_a_loss_is_refused(slug: str) -> None:
    target = q(2.0, "nat", "target")
    calls: list[Callable[[], Quantity]] = [
        lambda: laws.loss(law(slug), size(1e9), data(1e10), "loss"),
        lambda: laws.equivalent_compute(law(slug), target, target, "worth"),
        lambda: laws.floor_params(law(slug), target, "floor"),
        lambda: laws.tokens_to_reach(law(slug), size(1e9), target, "tokens"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="Expected a law that predicts loss"):
            call()


@pytest.mark.parametrize("wrong", [0.0, -1.0])
def test_sizes_that_cannot_be_are_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="Expected a value above zero"):
        laws.loss(H, size(wrong), data(1e10), "loss")
    with pytest.raises(InputError, match="Expected a value above zero"):
        laws.loss(H, size(1e9), data(wrong), "loss")
    with pytest.raises(InputError, match="Expected a value above zero"):
        laws.optimum(H, compute(wrong), "best")


def test_a_target_below_the_irreducible_loss_is_refused() -> None:
    with pytest.raises(InputError, match="Expected a finite floor"):
        laws.floor_params(H, q(1.5, "nat", "target"), "floor")


def test_the_joint_law_of_dense_and_mixtures() -> None:
    joint = law("ludziejewski-2025")
    active, tokens, one = size(2e9), q(1e11, "token", "D"), q(1, "1", "E")
    dense = laws.joint_loss(joint, active, tokens, one, "dense")
    fold = np.log(2.0732)  # Eh of one expert is E_start
    of_size = 35.91 * np.exp(-0.2285 * fold) * 2e9 ** (-0.1889 + 0.0098 * fold)
    of_data = 35.98 * np.exp(0.5529 * fold) * 1e11 ** (-0.1775 - 0.0259 * fold)
    assert float(dense.value) == pytest.approx(of_size + of_data + 1.3637, rel=1e-9)
    same = laws.dense_equivalent(joint, active, tokens, one, "same")
    assert float(same.value) == pytest.approx(2e9, rel=1e-9)
    mixed = q(8, "1", "mixed")
    equal = laws.dense_equivalent(joint, active, tokens, mixed, "equal")
    there = laws.joint_loss(joint, equal, tokens, one, "there")
    assert float(there.value) == pytest.approx(float(laws.joint_loss(joint, active, tokens, mixed, "m").value))
    assert float(equal.value) > 2e9


def test_only_a_joint_law_speaks_of_mixtures() -> None:
    asked = (size(2e9), q(1e11, "token", "D"), q(8, "1", "E"))
    with pytest.raises(InputError, match="joint law"):
        laws.joint_loss(law("besiroglu-2024"), *asked, "x")
