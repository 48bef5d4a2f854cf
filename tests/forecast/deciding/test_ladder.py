"""A ladder to buy: the worked budgets, what limits them, the table, the variance at the flagship, its cost."""

import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q

from ridgeline.core.case import Case
from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError
from ridgeline.forecast.deciding.ladder import Ladder, Order, design_ladder, extrapolation_variance, filled
from ridgeline.forecast.deciding.worth import Machine

PLAN = Machine(q(1e15, "FLOP/s/chip", "peak"), q(0.4, "1", "mfu"), q(2.5, "USD/(chip*h)", "price"))


def order(flagship: float = 1e25, fraction: float = 3, low: float = 1e18, **more: Any) -> Order:
    return Order(
        q(flagship, "FLOP", "flagship"), q(fraction, "%", "fraction"), q(low, "FLOP", "low"), law("law-h"), **more
    )


def variance(logs: list[float], goal: float = 25) -> float:
    runs = [q(10.0**x, "FLOP", f"C{i}") for i, x in enumerate(logs)]
    return float(number(extrapolation_variance(runs, q(10.0**goal, "FLOP", "target"), "variance")))


def by_matrices(logs: list[float], goal: float) -> float:
    """x0' (X'X)^-1 x0 of a line."""
    design = np.stack([np.ones(len(logs)), np.array(logs)], axis=1)
    at = np.array([1.0, goal])
    return float(at @ np.linalg.solve(design.T @ design, at))


@pytest.mark.parametrize(
    ("logs", "answer"),
    [
        ([19, 19.2, 19.4, 19.6], "162.70"),
        ([18, 19, 20, 21], "6.30"),
        ([18, 18.5, 19, 21.5], "4.81"),
        ([18, 21], "7.22"),
    ],
)
def test_extrapolation_variance(logs: list[float], answer: str) -> None:
    assert variance(logs) == printed(answer)


@for_all(logs=st.lists(st.floats(15, 24), min_size=2, max_size=8), goal=st.floats(20, 27))
def test_extrapolation_variance_is_the_leverage_of_least_squares(logs: list[float], goal: float) -> None:
    if max(logs) - min(logs) > 0.1:
        assert variance(logs, goal) == pytest.approx(by_matrices(logs, goal), rel=1e-6)


def test_one_compute_has_no_line() -> None:
    with pytest.raises(InputError, match="at least two computes"):
        variance([19, 19, 19])


def test_the_worked_ladder() -> None:
    found = design_ladder(order())
    answers = ["1.000e18", "1.968e19", "3.873e20", "7.622e21", "1.500e23"]
    assert [number(b) for b in found.budgets] == [printed(a) for a in answers]
    assert number(found.total) == printed("1.580e23")
    assert number(found.share) == printed("1.58")
    assert number(found.decades) == printed("5.2")
    assert found.limit == "its share of the allowance"


def runs_of(found: Ladder, budget: int) -> list[tuple[float, int]]:
    return [(float(r.params.value), r.seed) for r in found.runs if r.budget == budget]


def test_sizes_surround_the_optimum_and_seeds_repeat_the_middle() -> None:
    found = design_ladder(order(sizes=5, seeds=3, step=2.0))
    for budget in (1, 2, 3):
        sizes = sorted({size for size, _ in runs_of(found, budget)})
        assert np.array(sizes[1:]) / np.array(sizes[:-1]) == pytest.approx(2.0)
        middle = sizes[2]
        seeds = [seed for size, seed in runs_of(found, budget) if size == middle]
        assert seeds == ([0, 1, 2] if budget <= 2 else [0])
    assert len(found.runs) == 5 * 5 + 2 * 2


@pytest.mark.parametrize("sizes", [1, 3, 4, 7])
@pytest.mark.parametrize("seeds", [1, 4])
def test_all_runs_together_stay_within_the_allowance(sizes: int, seeds: int) -> None:
    found = design_ladder(order(sizes=sizes, seeds=seeds))
    assert number(found.total) <= number(found.allowance) * (1 + 1e-9)
    assert number(found.total) == pytest.approx(sum(float(r.compute.value) for r in found.runs))
    if sizes > 2:
        assert found.limit == "the cost of all runs together"
        assert number(found.total) == pytest.approx(number(found.allowance), rel=1e-6)


def test_every_run_spends_its_budget() -> None:
    found = design_ladder(order(sizes=3))
    for run in found.runs:
        assert number(run.compute) == pytest.approx(number(found.budgets[run.budget - 1]), rel=1e-12)
        assert number(run.ratio) == pytest.approx(number(run.tokens) / number(run.params))


def test_the_bill() -> None:
    found = design_ladder(order(), PLAN)
    assert found.bill is not None
    hours = 1.5802997e23 / (1e15 * 0.4) / 3600
    assert number(found.bill.chip_hours) == pytest.approx(hours, rel=1e-6)
    assert found.bill.dollars is not None
    assert number(found.bill.dollars) == pytest.approx(hours * 2.5, rel=1e-6)


def test_without_a_price_there_are_hours_and_no_dollars() -> None:
    found = design_ladder(order(), Machine(PLAN.peak, PLAN.mfu))
    assert found.bill is not None
    assert found.bill.dollars is None
    assert design_ladder(order()).bill is None


def test_the_csv_is_the_table() -> None:
    found = design_ladder(order(sizes=3, seeds=2))
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert len(rows) == len(found.runs) == len(found.table().rows)
    for row, run in zip(rows, found.runs, strict=True):
        assert float(row["C"]) == pytest.approx(6 * float(row["N"]) * float(row["D"]), rel=1e-4)
        assert (row["budget"], row["seed"], row["loss"]) == (str(run.budget), str(run.seed), "")


def test_the_table_goes_into_a_case() -> None:
    case = Case("forecast", "a ladder")
    case.add_table("ladder", design_ladder(order(sizes=3, seeds=3)).table())
    assert "ladder.budget.5.size.2.params" in case.quantities


def test_advice_has_the_numbers() -> None:
    reach, now, ends = design_ladder(order()).advice
    assert "1.8 decades above a ladder of 5.2 decades" in reach
    assert f"{variance([18, 19.294, 20.588, 21.882, 23.176]):.2f}" in now
    assert f"{variance([18, 18, 20.588, 23.176, 23.176]):.2f}" in ends
    assert "longer than the ladder" in design_ladder(order(flagship=1e27, low=1e24)).advice[-1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"budgets": 2}, "at least 3 budgets"),
        ({"sizes": 0}, "at least 1 sizes"),
        ({"seeds": 0}, "at least 1 seeds"),
        ({"step": 1.0}, "a factor above 1"),
        ({"top": 0.0}, "a share above 0"),
        ({"low": 2e23}, "a smallest budget with room above it"),
        ({"low": 0.0}, "a value above zero"),
        ({"fraction": 300.0}, "at most 1"),
    ],
)
def test_orders_that_cannot_be_filled(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        design_ladder(order(**wrong))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"budgets": 10**9}, "at most 200 budgets"),
        ({"seeds": 10**8}, "at most 200 seeds"),
        ({"sizes": 99}, "at most 200 runs"),
        ({"low": 1.0}, "at least 1000 parameters and tokens"),
        ({"top": 1.5}, "at --top"),
    ],
)
def test_ladders_that_nobody_trains_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        design_ladder(order(**more))


def test_a_ladder_with_a_loss_in_it_is_told_from_an_empty_one() -> None:
    text = design_ladder(order()).csv()
    assert not filled(text)
    header, first, *rest = text.splitlines()
    assert filled("\n".join([header, first + "3.1", *rest]))
    assert filled("N,D,loss\n1e8,2e9,\n")
    assert not filled("")
