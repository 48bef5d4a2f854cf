"""Kaplan to Chinchilla: an offset moves only E, one shared horizon tilts the exponent, and so does a count."""

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from tests.arithmetic.worked import number, printed, q
from tests.forecast.recipes import H

from ridgeline.core.errors import InputError
from ridgeline.forecast.deciding.mismatch import (
    Experiment,
    Grid,
    Shape,
    counting,
    envelope,
    excess,
    experiment,
    exponent,
    penalty,
    runs,
    tilt,
)
from ridgeline.forecast.form import Array
from ridgeline.forecast.laws.chinchilla import FORM

GRID = Grid(tuple(np.geomspace(1e7, 3e9, 6)), tuple(2e10 * np.geomspace(1 / 32, 1, 6)))
BUDGETS = tuple(6 * 2e10 * np.geomspace(1e7, 3e9, 13))
TRUTH = 0.28 / 0.62


@pytest.fixture(scope="module")
def found() -> Experiment:
    return experiment(FORM, H, GRID)


@pytest.mark.parametrize(("horizon", "answer"), [(1, "0"), (2, "0.0750"), (5, "0.1200"), (10, "0.1350")])
def test_the_worked_penalty(horizon: float, answer: str) -> None:
    parts = q(1e9, "token", "D"), q(horizon * 1e9, "token", "horizon"), q(0.15, "nat", "scale")
    assert number(penalty(*parts, "excess")) == printed(answer)


def test_a_horizon_before_the_end_is_refused() -> None:
    with pytest.raises(InputError, match="a horizon at or beyond D"):
        penalty(q(2e9, "token", "D"), q(1e9, "token", "horizon"), q(0.15, "nat", "scale"), "excess")


def test_without_a_penalty_the_truth_comes_back(found: Experiment) -> None:
    assert found.truth == pytest.approx(TRUTH, rel=1e-12)
    assert found.clean.exponent == pytest.approx(TRUTH, abs=1e-9)


def test_a_uniform_offset_moves_only_e(found: Experiment) -> None:
    clean, moved = found.clean.fit.constants, found.matched.fit.constants
    assert np.ptp(found.matched.penalty) == pytest.approx(0, abs=1e-15)
    assert moved["E"] - clean["E"] == pytest.approx(0.075, abs=1e-8)
    for symbol in ("A", "B", "alpha", "beta"):
        assert moved[symbol] == pytest.approx(clean[symbol], rel=1e-6)
    assert found.matched.exponent == pytest.approx(TRUTH, abs=1e-8)


@settings(max_examples=25)
@for_all(offset=st.floats(-1.0, 1.0), e=st.floats(1.2, 3.0))
def test_an_offset_of_e_moves_no_optimum(offset: float, e: float) -> None:
    """The closed form: E is in neither N* nor D*."""

    def with_e(value: float) -> Array:
        return FORM.internal({"E": value, "A": 406.4, "alpha": 0.34, "B": 410.7, "beta": 0.28})

    at = np.array([1e19, 1e25])
    one, two = (FORM.optimum(with_e(value), at) for value in (e, e + offset))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_one_shared_horizon_tilts_the_exponent_and_sinks_the_floor(found: Experiment) -> None:
    shared = found.shared
    assert shared.exponent < TRUTH - 0.1
    assert shared.fit.constants["E"] < 1.0
    assert shared.fit.constants["beta"] < 0.2
    assert shared.fit.constants["alpha"] == pytest.approx(0.34, abs=0.005)  # the penalty does not see N


def test_more_penalty_more_tilt() -> None:
    tilts = [abs(tilt(experiment(FORM, H, GRID, scale))[2][2]) for scale in (0.02, 0.05, 0.15)]
    assert tilts == sorted(tilts)
    assert tilts[0] > 0.01


def test_the_envelope_of_one_horizon_is_steep() -> None:
    free, capped, late = (envelope(FORM, H, BUDGETS, h, s) for h, s in ((np.inf, 0.0), (2e10, 0.0), (2e10, 0.15)))
    assert free == pytest.approx(TRUTH, abs=1e-3)
    assert TRUTH + 0.1 < capped < late


def test_beyond_the_horizon_the_exponent_is_one() -> None:
    far = tuple(flops * 1e4 for flops in BUDGETS)
    assert envelope(FORM, H, far, 2e10, 0.0) == pytest.approx(1.0, abs=1e-6)


def test_excess_is_the_penalty_of_many() -> None:
    assert excess(np.array([1.0, 2.0]), np.array([4.0, 4.0])) == pytest.approx([0.1125, 0.075])


def test_the_exponent_is_that_of_the_law() -> None:
    assert exponent(FORM, H, (1e18, 1e24)) == pytest.approx(TRUTH, rel=1e-12)


def test_leaving_the_embeddings_out_steepens_small_scales() -> None:
    shape = Shape(vocab=50257, aspect=40)
    total, body = counting(FORM, H, shape, (1e16, 1e19))
    assert total.exponent == pytest.approx(TRUTH, abs=1e-4)
    assert body.exponent > 0.7
    far_total, far_body = counting(FORM, H, shape, (1e22, 1e25))
    assert far_total.exponent == pytest.approx(TRUTH, abs=1e-4)
    assert far_body.exponent == pytest.approx(TRUTH, abs=0.01)


def test_two_tables_weigh_more_than_one() -> None:
    one, two = (counting(FORM, H, Shape(50257, 40, tables), (1e16, 1e19))[1].exponent for tables in (1, 2))
    assert two > one


def test_a_shape_adds_its_tables() -> None:
    width = np.cbrt(12e6 * 40 / 12)
    assert Shape(1000, 40).total(np.array([12e6]))[0] == pytest.approx(12e6 + 1000 * width)


def test_budgets_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InputError, match="the smaller first"):
        counting(FORM, H, Shape(50257, 40), (1e19, 1e16))


def test_runs_of_a_known_law() -> None:
    found = runs(FORM, H, [70e9], [1.4e12])
    assert found["loss"][0] == printed("1.9366")
    assert found["C"][0] == pytest.approx(5.88e23)
    with pytest.raises(InputError, match="2 token counts"):
        runs(FORM, H, [1e9, 2e9], [1e10])
