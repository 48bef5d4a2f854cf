"""Energy of training and decoding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import number, power, q

from ridgeline.arithmetic.energy import decode_energy, decode_power, training_energy
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError

CHIPS, HOUR = q(10, "chip", "chips"), q(1, "h", "hour")


def test_ten_chips_for_an_hour() -> None:
    assert number(training_energy(CHIPS, power("H100"), HOUR)) == pytest.approx(7.0)


def test_formula_names_only_what_was_given() -> None:
    energy = training_energy(CHIPS, power("H100"), HOUR, pue=q(1.2, "1", "pue"), load=q(90, "%", "load"))
    assert energy.formula == "chips*power*time*pue*load"
    assert number(energy) == pytest.approx(7.0 * 1.2 * 0.9)
    assert training_energy(CHIPS, power("H100"), HOUR).formula == "chips*power*time"


@given(pue=st.floats(1.0, 3.0), load=st.floats(0.01, 1.0))
def test_bounded_by_rated_power_times_pue(pue: float, load: float) -> None:
    energy = training_energy(CHIPS, power("H100"), HOUR, q(pue, "1", "pue"), q(load, "1", "load"))
    assert number(energy) <= 7.0 * pue * (1 + 1e-12)


def test_draws_of_a_load_give_draws_of_energy() -> None:
    low, high = constant("energy.power_fraction.low"), constant("energy.power_fraction.high")
    loads = np.array([number(low), number(high)])
    energy = training_energy(CHIPS, power("H100"), HOUR, load=q(loads, "1", "load"))
    np.testing.assert_allclose(energy.value, 7.0 * loads)


@pytest.mark.parametrize(("pue", "load"), [(0.9, 1.0), (1.2, 1.1), (1.2, 0.0)])
def test_impossible_buildings_are_refused(pue: float, load: float) -> None:
    with pytest.raises(InputError):
        training_energy(CHIPS, power("H100"), HOUR, q(pue, "1", "pue"), q(load, "1", "load"))


@given(bits=st.sampled_from([1, 2, 4, 8, 16, 32]), params=st.floats(1e6, 1e13))
def test_halving_the_width_halves_the_energy(bits: int, params: float) -> None:
    def joules(width: float) -> float:
        found = decode_energy(q(params, "param", "N"), q(width, "bit/param", "width"), constant("energy.dram_per_bit"))
        return float(number(found))

    assert joules(bits) == pytest.approx(2 * joules(bits / 2))


def test_width_may_come_in_bytes() -> None:
    per_bit, params = constant("energy.dram_per_bit"), q(70e9, "param", "N")
    in_bytes = decode_energy(params, q(2, "B/param", "width"), per_bit)
    assert number(in_bytes) == pytest.approx(number(decode_energy(params, q(16, "bit/param", "width"), per_bit)))


def test_a_token_a_day_of_one_kilowatt_hour() -> None:
    assert number(decode_power(q(3.6e6, "J/token", "energy"), q(1, "token/day", "rate"))) == pytest.approx(1.0)
