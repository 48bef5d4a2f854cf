"""A life of serving: the worked scenarios, the crossover against a derivation of its own, the cheapest size."""

import numpy as np
import pytest
from tests.arithmetic.worked import printed
from tests.plan.studies import TRAFFIC, number, plan, product_plan, study

from ridgeline.arithmetic import laws
from ridgeline.core.catalog import law
from ridgeline.core.quantity import Source, given
from ridgeline.plan.budget import cluster
from ridgeline.plan.candidates import Candidate, candidate, key_of, sized
from ridgeline.plan.lifetime import Scenario, scenarios

B = {"E": 1.8172, "A": 482.01, "alpha": 0.3478, "B": 2085.43, "beta": 0.3658}  # besiroglu-2024


def loss_of(params: float, tokens: float) -> float:
    return float(B["E"] + B["A"] / params ** B["alpha"] + B["B"] / tokens ** B["beta"])


def trained(params: float, tokens: float) -> Candidate:
    """A candidate that spends exactly 6ND."""
    compute = given("compute", 6 * params * tokens, "FLOP")
    losing = {"besiroglu-2024": laws.optimum(law("besiroglu-2024"), compute, "best")}
    return candidate(sized(params, Source("the test")), compute, losing, None, key=key_of(params))


@pytest.fixture(scope="module")
def worked() -> list[Scenario]:
    """70e9 on 1.4e12 against 20e9 on 8e12, served 1e12, 1e14, 1e16 tokens."""
    big, small = trained(70e9, 1.4e12), trained(20e9, 8e12)
    best = laws.optimum(law("besiroglu-2024"), given("compute", 5.88e23, "FLOP"), "best")
    return scenarios(study(traffic=TRAFFIC).traffic, cluster(study()), big, [small], best)


@pytest.mark.parametrize(
    ("which", "big", "small"),
    [(0, "7.280e23", "1.000e24"), (1, "1.459e25", "4.960e24"), (2, "1.401e27", "4.010e26")],
)
def test_lifetime_row_of_section_b(worked: list[Scenario], which: int, big: str, small: str) -> None:
    scenario = worked[which]
    assert number(scenario.of("70b").compute) == printed(big)
    assert number(scenario.of("20b").compute) == printed(small)
    assert scenario.optimum_compute is scenario.of("70b").compute


def test_cost_of_serving_and_what_is_saved(worked: list[Scenario]) -> None:
    big, small = worked[1].of("70b"), worked[1].of("20b")
    hours = 2 * 70e9 * 1e14 / (989.4e12 * 0.4) / 3600
    assert number(big.serving_hours, "chip*h") == pytest.approx(hours, rel=1e-9)
    assert number(big.serving_cost) == pytest.approx(hours * 2.5, rel=1e-9)
    assert number(small.saving) == pytest.approx(hours * 2.5 * 50 / 70, rel=1e-9)
    assert big.saving is None
    assert (small.word, small.difference) == ("saves", small.saving)


def test_a_larger_model_adds_to_the_bill() -> None:
    life = plan(traffic=TRAFFIC, candidates=["200B"]).middle.of("200b")
    assert number(life.saving) < 0
    assert life.word == "adds"
    assert number(life.difference) == pytest.approx(-number(life.saving))


def test_without_a_price_there_is_no_cost() -> None:
    life = plan({"chips": "256xTPU v3"}, traffic=TRAFFIC).middle.lives[1]
    assert (life.serving_cost, life.saving, life.difference) == (None, None, None)
    assert number(life.compute) > 0


def test_names_follow_the_order_of_the_study_and_the_middle_is_by_served_tokens() -> None:
    made = plan(traffic=[TRAFFIC[2], TRAFFIC[0], TRAFFIC[1]])
    assert [(s.key, s.name) for s in made.scenarios] == [("s1", "platform"), ("s2", "pilot"), ("s3", "product")]
    assert made.middle.name == "product"
    assert plan(traffic=[{"served": "1T"}]).middle.name == "s1"


def test_crossover_is_where_two_lives_of_equal_loss_cost_the_same() -> None:
    made = product_plan()
    optimum = number(made.optimum.params)
    target = loss_of(optimum, number(made.optimum.tokens))
    assert set(made.equal) == {"70b", "30b", "17b"}  # 8B cannot reach it with any number of tokens
    assert loss_of(8e9, 1e60) > target
    for key, size in (("70b", 70e9), ("30b", 30e9), ("17b", 17e9)):
        found = made.equal[key]
        low, high = 1e9, 1e30  # bisection on tokens, not the inverse of the law
        for _ in range(300):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if loss_of(size, middle) > target else (low, middle)
        assert number(found.tokens) == pytest.approx(low, rel=1e-9)
        served = number(found.crossover)
        if served:
            small = 6 * size * low + 2 * size * served
            assert small == pytest.approx(number(made.cluster.compute) + 2 * optimum * served, rel=1e-9)
        else:
            assert 6 * size * low <= number(made.cluster.compute)


def test_a_larger_model_has_no_crossover() -> None:
    made = plan(candidates=["200B", "30B"])
    assert set(made.equal) == {"30b"}


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_cheapest_size_at_equal_loss_against_a_finer_search(which: int) -> None:
    made = product_plan()
    scenario, served = made.scenarios[which], float(TRAFFIC[which]["served"])  # type: ignore[arg-type]
    target = loss_of(number(made.optimum.params), number(made.optimum.tokens))
    sizes = np.geomspace(5e9, 400e9, 200_000)
    room = target - B["E"] - B["A"] / sizes ** B["alpha"]
    with np.errstate(invalid="ignore"):
        tokens = (B["B"] / room) ** (1 / B["beta"])
    life = np.where(room > 0, 6 * sizes * tokens + 2 * sizes * served, np.inf)
    assert number(scenario.best_compute) == pytest.approx(float(life.min()), rel=2e-3)
    assert number(scenario.best_compute) >= float(life.min()) * (1 - 1e-9)
    assert number(scenario.best_params) == pytest.approx(float(sizes[life.argmin()]), rel=0.03)
    assert loss_of(number(scenario.best_params), number(scenario.best_tokens)) == pytest.approx(target, rel=1e-9)
    assert number(scenario.best_compute) <= number(scenario.optimum_compute)


def test_more_traffic_means_a_smaller_cheapest_size() -> None:
    sizes = [number(s.best_params) for s in product_plan().scenarios]
    assert sizes == sorted(sizes, reverse=True)
