"""Serving and repeats: the first-order condition, the cheapest life, regrets, the best run of a limited corpus."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q

from ridgeline.arithmetic import laws
from ridgeline.core.case import Case
from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity
from ridgeline.forecast.deciding.scenarios import (
    Rates,
    Scenario,
    cheapest,
    condition,
    data_constrained,
    effective_tokens,
    equivalent_tokens,
    lifetime_cost,
    regrets,
)
from ridgeline.forecast.deciding.worth import Machine
from ridgeline.forecast.laws.data_constrained import FORM as REPEATS

LAWS = ["law-h", "besiroglu-2024", "busbridge-2025"]  # two parametric, one coupled


def target(name: str, params: float = 70e9, tokens: float = 1.4e12) -> Quantity:
    return laws.loss(law(name), q(params, "param", "N"), q(tokens, "token", "D"), "target")


def tokens(value: float, name: str = "served") -> Quantity:
    return q(value, "token", name)


def future(key: str, served: float, weight: float = 1.0, decoded: float = 0.0) -> Scenario:
    return Scenario(key, tokens(served, f"{key}.in"), tokens(decoded, f"{key}.out"), weight)


def on(mfu: float, price: float) -> Machine:
    return Machine(q(1e15, "FLOP/s/chip", "peak"), q(mfu, "1", f"mfu{mfu}"), q(price, "USD/(chip*h)", f"price{price}"))


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=15)
@for_all(served=st.floats(9, 16).map(lambda x: 10.0**x))
def test_the_first_order_condition_holds_at_the_cheapest(name: str, served: float) -> None:
    params, trained = cheapest(law(name), target(name), tokens(served), "x")
    left, wanted = condition(law(name), params, trained, tokens(served), "x")
    assert number(left) == pytest.approx(number(wanted), rel=1e-8)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("served", [0.0, 1e12, 1e14])
def test_no_other_size_at_that_loss_is_cheaper(name: str, served: float) -> None:
    params, trained = cheapest(law(name), target(name), tokens(served), "x")
    least = 6 * number(params) * number(trained) + 2 * number(params) * served
    assert number(laws.loss(law(name), params, trained, "l")) == pytest.approx(number(target(name)), rel=1e-12)
    for factor in (0.9, 0.99, 1.01, 1.1, 3.0):
        size = number(params) * factor
        try:
            other = laws.tokens_to_reach(law(name), q(size, "param", "n"), target(name), "t")
        except InputError:
            continue  # below the floor of the loss
        assert 6 * size * number(other) + 2 * size * served > least


def test_without_serving_it_is_the_compute_optimum() -> None:
    best = laws.optimum(law("law-h"), q(1e23, "FLOP", "C"), "best")
    assert best.loss is not None
    params, trained = cheapest(law("law-h"), best.loss, tokens(0.0), "x")
    assert number(params) == pytest.approx(number(best.params), rel=1e-9)
    assert number(trained) == pytest.approx(number(best.tokens), rel=1e-9)


def test_a_target_below_the_floor_is_refused() -> None:
    with pytest.raises(InputError):
        cheapest(law("law-h"), q(1.6, "nat", "target"), tokens(1e12), "x")


def test_dollars_with_one_price_are_flops() -> None:
    rates = Rates(on(0.4, 2.0), on(0.4, 2.0), on(0.4, 2.0))
    same = future("s", 1e13, decoded=1e12)
    assert number(equivalent_tokens(same, rates, "e")) == pytest.approx(1.1e13)
    n, d = q(10e9, "param", "N"), tokens(1e12, "D")
    flops, dollars = (lifetime_cost(n, d, same, r, "c") for r in (None, rates))
    assert number(dollars) == pytest.approx(number(flops) * 2.0 / (0.4e15 * 3600))


def test_slow_decoding_weighs_more() -> None:
    rates = Rates(on(0.4, 2.0), on(0.4, 2.0), on(0.02, 2.0))
    assert number(equivalent_tokens(future("s", 0.0, decoded=1e12), rates, "e")) == pytest.approx(20e12)


def test_dollars_need_a_price() -> None:
    free = Machine(q(1e15, "FLOP/s/chip", "peak"), q(0.4, "1", "mfu"))
    with pytest.raises(InputError, match="a price per chip-hour"):
        equivalent_tokens(future("s", 1e12), Rates(free, free, free), "e")


FUTURES = [future("low", 1e12, 0.5), future("mid", 1e13, 0.3), future("high", 2e14, 0.2)]
RATES = Rates(on(0.4, 2.0), on(0.4, 2.0), on(0.05, 2.0))


@pytest.mark.parametrize("rates", [None, RATES], ids=["flops", "dollars"])
def test_regrets(rates: Rates | None) -> None:
    found = regrets(law("law-h"), target("law-h"), FUTURES, rates)
    keys = [s.key for s in FUTURES]
    for key in keys:
        assert number(found.of(f"best.{key}").regrets[key]) == pytest.approx(0, abs=1e-9)
    assert all(number(c.regrets[k]) >= -1e-9 for c, k in product(found.choices, keys))
    for choice in found.choices:
        assert number(choice.worst) == pytest.approx(max(number(choice.regrets[k]) for k in keys))
        assert number(found.of("minimax").worst) <= number(choice.worst) * (1 + 1e-9)
        assert number(found.of("expected").expected) <= number(choice.expected) * (1 + 1e-5)
        mean = np.average([number(choice.costs[k]) for k in keys], weights=[s.weight for s in FUTURES])
        assert number(choice.expected) == pytest.approx(mean)


def test_the_robust_choice_is_no_scenarios_own() -> None:
    found = regrets(law("law-h"), target("law-h"), FUTURES)
    sizes = [number(found.of(f"best.{s.key}").params) for s in FUTURES]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < number(found.of("minimax").params) < sizes[0]
    assert number(found.of("minimax").worst) < 0.6 * min(number(found.of(f"best.{s.key}").worst) for s in FUTURES)
    ends = found.of("minimax").regrets
    assert number(ends["low"]) == pytest.approx(number(ends["high"]), rel=0.05)  # an interior minimax levels two ends


def test_one_scenario_has_one_answer() -> None:
    found = regrets(law("law-h"), target("law-h"), FUTURES[:1])
    assert number(found.of("minimax").params) == pytest.approx(number(found.of("best.low").params), rel=0.02)
    assert number(found.of("minimax").worst) == pytest.approx(0, abs=1e-3)


def test_the_regret_table_goes_into_a_case() -> None:
    found = regrets(law("law-h"), target("law-h"), FUTURES, RATES)
    case = Case("forecast", "regrets")
    case.add_table("regrets", found.table())
    table = case.tables["regrets"]
    assert len(table.rows) == len(FUTURES) + 3
    assert table.highlight is not None
    assert table.rows[table.highlight][0] == "minimax"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "at least one scenario"),
        ([FUTURES[0], FUTURES[0]], "different names"),
        ([future("x", 1e12, 0.0)], "a weight above zero"),
        ([future("x", -1.0)], "zero or more"),
    ],
)
def test_scenarios_that_cannot_be(wrong: list[Scenario], said: str) -> None:
    with pytest.raises(InputError, match=said):
        regrets(law("law-h"), target("law-h"), wrong)


def repeats(compute: float, unique: float) -> tuple[float, ...]:
    found = data_constrained(law("muennighoff"), q(compute, "FLOP", "C"), tokens(unique, "U"))
    kept = (found.params, found.tokens, found.epochs, found.loss, found.fresh_params, found.penalty)
    return tuple(float(number(item)) for item in kept)


@pytest.mark.parametrize("unique", [1e10, 1e11, 1e12])
def test_the_best_run_of_a_limited_corpus(unique: float) -> None:
    params, trained, epochs, loss, *_ = repeats(1e23, unique)
    theta = REPEATS.internal({s: float(law("muennighoff").constants[s].value) for s in REPEATS.symbols})
    sizes = params * np.geomspace(0.2, 5, 2001)
    columns = {"N": sizes, "D": 1e23 / (6 * sizes), "U": np.full_like(sizes, unique)}
    assert loss == pytest.approx(float(np.exp(REPEATS.log_loss(theta, columns)).min()), rel=1e-7)
    assert 6 * params * trained == pytest.approx(1e23)
    assert epochs == pytest.approx(trained / unique)


def test_less_data_means_more_epochs_and_a_higher_loss() -> None:
    rows = [repeats(1e24, unique) for unique in (3e12, 1e12, 3e11, 1e11)]
    epochs, losses = [row[2] for row in rows], [row[3] for row in rows]
    assert epochs == sorted(epochs)
    assert losses == sorted(losses)


def test_enough_data_is_no_limit() -> None:
    params, _, epochs, _, fresh, penalty = repeats(1e23, 1e13)
    assert epochs < 1
    assert params == pytest.approx(fresh, rel=1e-6)
    assert penalty == pytest.approx(0, abs=1e-12)


def test_another_kind_of_law_is_refused() -> None:
    with pytest.raises(InputError, match="data_constrained"):
        data_constrained(law("law-h"), q(1e23, "FLOP", "C"), tokens(1e12, "U"))


@pytest.mark.parametrize(
    ("epochs", "answer"),
    [(1, "100.0"), (2, "181.9"), (4, "303.8"), (8, "440.3"), (16, "529.2"), (32, "550.7")],
)
def test_effective_tokens_of_the_toy(epochs: int, answer: str) -> None:
    found = effective_tokens(tokens(100e9, "U"), q(epochs, "1", "R"), q(5, "1", "h"), "effective")
    assert number(found) / 1e9 == printed(answer)


def test_effective_tokens_add_up_pass_by_pass() -> None:
    found = effective_tokens(tokens(1.0, "U"), q(7, "1", "R"), q(3, "1", "h"), "effective")
    assert number(found) == pytest.approx(sum(np.exp(-k / 3) for k in range(7)))
