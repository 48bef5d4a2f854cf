"""Dollars from chip-hours, energy and compute."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.money import chip_hours, cost_of_compute, electricity, electricity_rate, rent
from ridgeline.core import format as formats
from ridgeline.core.errors import InputError

PRICE = q(2.5, "USD/(chip*h)", "price")


def test_chip_hours() -> None:
    assert number(chip_hours(q(1000, "chip", "chips"), q(30, "day", "days"))) == pytest.approx(720_000)


@given(chips=st.integers(1, 10**6), days=st.floats(0.01, 1000))
def test_rent_is_linear(chips: int, days: float) -> None:
    found = rent(q(chips, "chip", "chips"), q(days, "day", "days"), PRICE)
    assert number(found) == pytest.approx(chips * days * 24 * 2.5)


def test_free_chips_cost_nothing() -> None:
    assert number(rent(q(1, "chip", "chips"), q(1, "h", "time"), q(0, "USD/(chip*h)", "price"))) == 0


def test_cost_per_compute_reads_as_dollars() -> None:
    found = cost_of_compute(q(1.8e6, "USD", "cost"), q(1e24, "FLOP", "C"))
    assert number(found) == pytest.approx(1800)
    assert formats.show(found).startswith("$1,800/")


@given(kilowatts=st.floats(0.1, 1e6), tariff=st.floats(0, 1))
def test_a_rate_for_a_day_is_the_energy_of_a_day(kilowatts: float, tariff: float) -> None:
    price = q(tariff, "USD/kWh", "tariff")
    per_day = electricity_rate(q(kilowatts, "kW", "power"), price)
    assert number(per_day) == pytest.approx(number(electricity(q(24 * kilowatts, "kWh", "energy"), price)))


@pytest.mark.parametrize(("chips", "price"), [(0, 2.5), (-1, 2.5), (1, -2.5)])
def test_refusals(chips: int, price: float) -> None:
    with pytest.raises(InputError, match="Expected a value"):
        rent(q(chips, "chip", "chips"), q(1, "h", "time"), q(price, "USD/(chip*h)", "price"))


def test_no_compute_is_refused() -> None:
    with pytest.raises(InputError, match="above zero"):
        cost_of_compute(q(1, "USD", "cost"), q(0, "FLOP", "C"))
