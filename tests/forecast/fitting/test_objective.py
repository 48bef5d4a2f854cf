"""Losses of residuals: their derivatives, sums, and what happens to them when data are repeated."""

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.objective import HUBER, LAD, LOGLS, LS, OBJECTIVES, Objective, objective

LOG_Y = np.log(np.array([2.0, 2.5, 3.0, 3.5]))
AT = LOG_Y + np.array([[0.0003, -0.01, 0.2, -0.0007]])


@pytest.mark.parametrize("which", [HUBER, LS, LOGLS, *LAD.path[:2]], ids=lambda o: f"{o.name}-{o.delta:g}")
def test_slope_and_bend_are_derivatives(which: Objective) -> None:
    response = which.respond(LOG_Y, AT)
    step = 1e-8
    up, down = which.respond(LOG_Y, AT + step), which.respond(LOG_Y, AT - step)
    assert response.slope == pytest.approx((up.value - down.value) / (2 * step), rel=1e-5, abs=1e-9)
    assert response.bend == pytest.approx((up.slope - down.slope) / (2 * step), rel=1e-5, abs=1e-6)
    assert np.all(response.major >= response.bend - 1e-12) or which is LS


def test_huber_is_square_inside_and_linear_outside() -> None:
    inside, outside = HUBER.respond(np.zeros(2), np.array([[0.0005, -0.5]])).value[0]
    assert inside == pytest.approx(0.5 * 0.0005**2)
    assert outside == pytest.approx(1e-3 * (0.5 - 0.5e-3))


def test_objective_of_a_diverged_run() -> None:
    """Four runs on their law but one, 1.5 nats too high: the worked figures of the three objectives."""
    observed = np.array([2.0, 2.4, 2.8, 3.2])
    predicted = observed.copy()
    observed = observed + np.array([0.0, 0.0, 0.0, 1.5])
    ones, log_y, at = np.ones(4), np.log(observed), np.log(predicted)
    assert 2 * LS.total(log_y, at, ones) == pytest.approx(1.5**2)
    assert 2 * LOGLS.total(log_y, at, ones) == pytest.approx(np.log(4.7 / 3.2) ** 2)
    assert HUBER.total(log_y, at, ones) == pytest.approx(1e-3 * (np.log(4.7 / 3.2) - 5e-4))


@pytest.mark.parametrize("which", list(OBJECTIVES.values()), ids=lambda o: o.name)
def test_it_is_a_sum_and_not_a_mean(which: Objective) -> None:
    once = which.total(LOG_Y, AT[0], np.ones(4))
    assert which.total(np.tile(LOG_Y, 3), np.tile(AT[0], 3), np.ones(12)) == pytest.approx(3 * once)
    assert which.total(LOG_Y, AT[0], np.full(4, 3.0)) == pytest.approx(3 * once)


def test_lad_is_the_limit_of_its_path() -> None:
    exact = LAD.total(LOG_Y, AT[0], np.ones(4))
    assert exact == pytest.approx(np.sum(np.abs(LOG_Y - AT[0])))
    assert np.sum(LAD.path[-1].respond(LOG_Y, AT[0]).value) == pytest.approx(exact, abs=1e-7)
    deltas = [step.delta for step in LAD.path]
    assert deltas == sorted(deltas, reverse=True)


def test_names_and_settings() -> None:
    assert objective("huber", delta=0.05).delta == 0.05
    assert objective("mle", noise="group").noise == "group"
    with pytest.raises(InputError, match="huber"):
        objective("hubber")
    with pytest.raises(InputError, match="positive delta"):
        objective("huber", delta=0.0)
    with pytest.raises(InputError, match="noise model"):
        objective("mle", noise="pink")
