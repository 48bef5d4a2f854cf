"""What FLOPs cost, what serving costs, and what a step of loss is worth in compute."""

import pytest
from tests.arithmetic.worked import number, printed, q

from ridgeline.core.errors import InputError, UnknownDeviceError
from ridgeline.forecast.deciding.worth import Machine, bill, first_order, machine, serving_flops, serving_price

PEAK, MFU, PRICE = q(1e15, "FLOP/s/chip", "peak"), q(50, "%", "mfu"), q(3, "USD/(chip*h)", "price")


def worth(step: float, loss: float, exponent: float = 0.5) -> float:
    at = (q(step, "nat", "step"), q(loss, "nat", "loss"), q(1.69, "nat", "floor"), q(exponent, "1", "exponent"))
    return float(number(first_order(*at, "worth")))


def test_a_hundredth_of_a_nat_near_1_75() -> None:
    assert worth(0.01, 1.75) == printed("33")


@pytest.mark.parametrize("step", [1e-6, 1e-7])
def test_first_order_is_the_slope_of_the_power_law(step: float) -> None:
    exact = (0.06 / (0.06 - step)) ** (1 / 0.5) - 1  # C from L - E = c C^-0.5
    assert worth(step, 1.75) / 100 == pytest.approx(exact, rel=1e-3)


def test_a_large_step_down_costs_more_than_its_first_order() -> None:
    assert worth(0.01, 1.75) / 100 < (0.06 / 0.05) ** 2 - 1


def test_no_step_is_worth_nothing() -> None:
    assert worth(0.0, 1.75) == 0


def test_a_loss_at_the_floor_is_refused() -> None:
    with pytest.raises(InputError, match=r"a loss above the floor of 1\.69"):
        worth(0.01, 1.69)


def test_a_bill_in_hours_and_dollars() -> None:
    found = bill(q(1.8e21, "FLOP", "C"), Machine(PEAK, MFU, PRICE), "run")
    assert number(found.chip_hours) == pytest.approx(1000)
    assert found.dollars is not None
    assert number(found.dollars) == pytest.approx(3000)
    assert found.dollars.name == "run.cost.rent"


def test_a_bill_without_a_price() -> None:
    found = bill(q(1.8e21, "FLOP", "C"), Machine(PEAK, MFU), "run")
    assert number(found.chip_hours) == pytest.approx(1000)
    assert found.dollars is None


def test_serving_is_two_flops_a_parameter() -> None:
    params = q(70e9, "param", "N")
    assert number(serving_flops(params, "x")) == pytest.approx(1.4e11)
    price = serving_price(params, Machine(PEAK, MFU, PRICE), "x")
    assert number(price, "USD/Mtoken") == pytest.approx(1.4e11 * 1e6 / 0.5e15 / 3600 * 3)
    with pytest.raises(InputError, match="a price per chip-hour"):
        serving_price(params, Machine(PEAK, MFU), "x")


def test_a_machine_of_the_catalog() -> None:
    found = machine("H100")
    assert found.peak.unit == "FLOP/s/chip"
    assert found.mfu.kind == "assumed"
    assert machine("H100", use=MFU, price=PRICE) == Machine(found.peak, MFU, PRICE)
    assert machine("H100", serving=True).mfu.name == "planning.serving_mfu"


def test_machines_that_cannot_be() -> None:
    with pytest.raises(UnknownDeviceError):
        machine("H1000")
    with pytest.raises(InputError, match="dense peak"):
        machine("H100", "fp4")
    with pytest.raises(InputError, match="at most 1"):
        machine("H100", use=q(140, "%", "mfu"))
