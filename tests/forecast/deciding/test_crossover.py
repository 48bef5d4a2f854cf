"""Where two frontiers cross: known crossings, none at all, and what the draws say."""

import math

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.forecast.recipes import EARLY, RIVAL, H, scaled

from ridgeline.core.errors import InputError
from ridgeline.forecast.deciding.crossover import Window, crossings, crossover, frontier
from ridgeline.forecast.form import Array
from ridgeline.forecast.laws.chinchilla import FORM

WINDOW = Window((1e18, 1e21), 1e24)


def least(theta: Array, flops: float) -> float:
    """min L along 6ND = C by a scan: no closed form in it."""
    params = np.geomspace(1e2, flops / 6e2, 400_001)
    return float(np.exp(FORM.log_loss(theta, {"N": params, "D": flops / (6 * params)})).min())


def draws_of(theta: Array, spread: float, seed: int, count: int = 300) -> Array:
    return theta + np.random.default_rng(seed).normal(size=(count, 5)) * spread


@pytest.mark.parametrize("flops", [1e18, 1e21, 1e25])
def test_the_frontier_is_the_least_loss(flops: float) -> None:
    assert frontier(FORM, H, np.array([flops]))[0] == pytest.approx(least(H, flops), rel=1e-9)


def test_the_frontier_of_many_draws() -> None:
    theta, compute = np.stack([H, RIVAL]), np.array([1e18, 1e20, 1e22])
    found = frontier(FORM, theta, compute)
    assert found.shape == (2, 3)
    assert found[1, 2] == pytest.approx(float(frontier(FORM, RIVAL, np.array([1e22]))[0]))


def test_law_h_against_its_rival() -> None:
    found = crossover(FORM, (H, RIVAL), None, Window((1e13, 1e21), 1e21))
    assert found.compute is not None
    assert found.compute == pytest.approx(1.609e14, rel=1e-3)
    assert found.ahead == "candidate"
    assert found.place == "within"
    assert least(RIVAL, found.compute) == pytest.approx(least(H, found.compute), rel=1e-9)
    assert least(RIVAL, found.compute / 3) > least(H, found.compute / 3)
    assert least(RIVAL, found.compute * 3) < least(H, found.compute * 3)


def test_better_at_small_scale_with_the_worse_exponent() -> None:
    assert least(EARLY, 1e19) == pytest.approx(0.94 * least(H, 1e19), rel=0.005)
    found = crossover(FORM, (EARLY, H), None, Window((1e18, 1e19), 1e20))
    assert found.compute is not None
    assert found.place == "above"
    assert found.ahead == "candidate"
    assert least(H, found.compute * 2) < least(EARLY, found.compute * 2)
    assert least(H, found.compute / 2) > least(EARLY, found.compute / 2)


@pytest.mark.parametrize(("offset", "ahead"), [(0.05, "baseline"), (-0.05, "candidate")])
def test_a_constant_offset_never_crosses(offset: float, ahead: str) -> None:
    other = FORM.internal({**{k: float(v) for k, v in FORM.natural(H).items()}, "E": 1.69 + offset})
    found = crossover(FORM, (H, other), None, WINDOW)
    assert (found.compute, found.every, found.ahead) == (None, (), ahead)
    assert f"{ahead} is in front throughout" in found.sentence()


def test_one_law_twice_is_ahead_of_nothing() -> None:
    found = crossover(FORM, (H, H), None, WINDOW)
    assert (found.compute, found.ahead) == (None, "neither")


@for_all(factor=st.floats(0.9, 1.1).filter(lambda f: abs(f - 1) > 1e-6))
def test_a_constant_factor_never_crosses(factor: float) -> None:
    assert crossings(FORM, H[None], scaled(H, factor)[None], (1e12, 1e30)) == [[]]


@for_all(alpha=st.floats(0.30, 0.40), b=st.floats(300, 600))
def test_every_crossing_is_one(alpha: float, b: float) -> None:
    other = FORM.internal({"E": 1.69, "A": 406.4, "alpha": alpha, "B": b, "beta": 0.28})
    (found,) = crossings(FORM, H[None], other[None], (1e10, 1e30))
    for flops in found:
        at = np.array([flops])
        assert float(frontier(FORM, other, at)[0]) == pytest.approx(float(frontier(FORM, H, at)[0]), rel=1e-11)


def test_the_interval_holds_the_crossing_and_narrows_with_the_draws() -> None:
    window, widths = Window((1e18, 1e22), 1e24), []
    for spread in (0.001, 0.004):
        pairs = draws_of(EARLY, spread, 1), draws_of(H, spread, 2)
        found = crossover(FORM, (EARLY, H), pairs, window)
        assert found.low is not None
        assert found.high is not None
        assert found.compute is not None
        assert found.low < found.compute < found.high
        assert found.draws == 300
        widths.append(math.log(found.high / found.low))
    assert widths[0] < widths[1]


def test_draws_that_do_not_cross_open_the_interval() -> None:
    crossing = np.tile(H, (60, 1))
    never = np.tile(scaled(H, 1.1), (40, 1))  # H, the candidate, is in front of it everywhere
    base = np.concatenate([np.tile(EARLY, (60, 1)), never])
    found = crossover(FORM, (EARLY, H), (base, np.concatenate([crossing, crossing[:40]])), WINDOW)
    assert found.share == pytest.approx(0.6)
    assert found.never == pytest.approx(0.4)
    assert found.low is None
    assert found.high is not None
    assert "60% of 100 draws cross" in found.sentence()


def test_draws_in_which_the_other_one_stays_ahead_open_it_above() -> None:
    base = np.tile(EARLY, (100, 1))
    other = np.concatenate([np.tile(H, (90, 1)), np.tile(scaled(EARLY, 1.1), (10, 1))])
    found = crossover(FORM, (EARLY, H), (base, other), WINDOW)
    assert found.share == pytest.approx(0.9)
    assert found.never == 0
    assert found.low is not None
    assert found.high is None


def test_draws_that_cross_back_are_counted() -> None:
    base = np.concatenate([np.tile(EARLY, (80, 1)), np.tile(H, (20, 1))])
    other = np.concatenate([np.tile(H, (80, 1)), np.tile(EARLY, (20, 1))])
    found = crossover(FORM, (EARLY, H), (base, other), WINDOW)
    assert found.share == 1.0
    assert found.reversed_share == pytest.approx(0.2)
    assert found.high is None


@pytest.mark.parametrize("data", [(0.0, 1e20), (1e21, 1e20)])
def test_an_empty_window_is_refused(data: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="Expected computes above zero"):
        crossover(FORM, (H, RIVAL), None, Window(data, 1e24))


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_level_outside_is_refused(level: float) -> None:
    with pytest.raises(InputError, match="Expected a level"):
        crossover(FORM, (H, RIVAL), None, WINDOW, level)
