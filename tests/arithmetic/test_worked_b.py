"""Worked numbers, section B: budget to model, money, energy; and the energy row of section F."""

import pytest
from tests.arithmetic.worked import chip, number, power, printed, q

from ridgeline.arithmetic.budget import compute_budget, lifetime_compute, tokens_for
from ridgeline.arithmetic.energy import decode_energy, decode_power, training_energy
from ridgeline.arithmetic.latency import chips_to_hold
from ridgeline.arithmetic.laws import optimum
from ridgeline.arithmetic.memory import state_of_count
from ridgeline.arithmetic.money import cost_of_compute, electricity, electricity_rate, rent
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.core.catalog import law
from ridgeline.core.quantity import Quantity, derive

CHIPS = q(1000, "chip", "chips")
DAYS = q(30, "day", "days")
TARIFF = q(0.12, "USD/kWh", "tariff")


def budget() -> Quantity:
    return compute_budget(CHIPS, chip("H100").peak, q(40, "%", "mfu"), DAYS)


def test_budget_of_1000_h100_for_30_days() -> None:
    assert number(budget(), "FLOP") == printed("1.026e24")


def test_compute_optimal_at_20_tokens_per_parameter() -> None:
    best = optimum(law("tokens-per-param-20"), budget(), "optimum")
    assert number(best.params) == printed("92.5e9")
    assert number(best.tokens) == printed("1.85e12")
    assert number(best.tokens) < 15e12


def test_check_serving_weights_take_three_h100() -> None:
    best = optimum(law("tokens-per-param-20"), budget(), "optimum")
    weights = derive("weights", "N*width", "B", N=best.params, width=q(2, "B/param", "width"))
    assert number(weights, "GB") == printed("185")
    assert number(chips_to_hold(weights, chip("H100").memory)) == 3


def test_check_optimizer_state_fits_the_cluster() -> None:
    best = optimum(law("tokens-per-param-20"), budget(), "optimum")
    state = state_of_count(best.params, Sharding.of())
    assert number(state.total, "GB") == printed("1480")
    memory = derive("memory", "chips*memory", "B", chips=CHIPS, memory=chip("H100").memory)
    assert number(memory, "GB") == pytest.approx(80_000)


def test_check_energy_without_overhead() -> None:
    energy = training_energy(CHIPS, power("H100"), DAYS)
    assert number(energy, "MWh") == pytest.approx(504.0, rel=1e-12)
    assert number(electricity(energy, TARIFF)) == pytest.approx(60_480, rel=1e-12)


def test_cost_row_rent() -> None:
    assert number(rent(CHIPS, DAYS, q(2.50, "USD/(chip*h)", "price"))) == pytest.approx(1_800_000, rel=1e-12)


def test_cost_row_energy_with_pue() -> None:
    energy = training_energy(CHIPS, power("H100"), DAYS, pue=q(1.2, "1", "pue"))
    assert number(energy) == pytest.approx(604_800, rel=1e-12)
    assert number(electricity(energy, TARIFF)) == pytest.approx(72_576, rel=1e-12)


def test_cost_row_dollars_per_1e21_flops() -> None:
    cost = rent(CHIPS, DAYS, q(2.50, "USD/(chip*h)", "price"))
    assert number(cost_of_compute(cost, budget())) == printed("1753.65")


def test_deviation_30e9_on_5_5e12_tokens_is_the_same_compute_within_4_percent() -> None:
    tokens = number(tokens_for(budget(), q(30e9, "param", "N")))
    assert tokens == pytest.approx(5.5e12, rel=0.04)
    assert tokens != pytest.approx(5.5e12, rel=0.03)


@pytest.mark.parametrize(
    ("params", "trained", "served", "flops"),
    [
        (70e9, 1.4e12, 1e12, "7.280e23"),
        (70e9, 1.4e12, 1e14, "1.459e25"),
        (70e9, 1.4e12, 1e16, "1.401e27"),
        (20e9, 8e12, 1e12, "1.000e24"),
        (20e9, 8e12, 1e14, "4.960e24"),
        (20e9, 8e12, 1e16, "4.010e26"),
    ],
)
def test_lifetime_compute(params: float, trained: float, served: float, flops: str) -> None:
    found = lifetime_compute(q(params, "param", "N"), q(trained, "token", "t"), q(served, "token", "s"))
    assert number(found) == printed(flops)


@pytest.mark.parametrize(
    ("bits", "joules", "dollars"), [(32, "44.8", "1493"), (16, "22.4", "747"), (8, "11.2", "373"), (4, "5.6", "187")]
)
def test_decode_energy_of_section_f(bits: int, joules: str, dollars: str) -> None:
    width = q(bits, "bit/param", "width")
    energy = decode_energy(q(70e9, "param", "N"), width, q(20, "pJ/bit", "pj_per_bit"))
    assert energy.unit == "J/token"
    assert number(energy) == printed(joules)
    per_day = decode_power(energy, q(1e9, "token/day", "rate"))
    assert number(electricity_rate(per_day, TARIFF)) == printed(dollars)
