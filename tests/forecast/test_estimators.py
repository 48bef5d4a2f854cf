"""The estimator study."""

import numpy as np

from ridgeline.forecast.estimators import QUANTITIES, estimators
from ridgeline.forecast.fitting.objective import HUBER, LOGLS

SEEDS = range(12)


def test_every_objective_and_quantity_is_there() -> None:
    found = estimators("isoflop", "gaussian", SEEDS, (HUBER, LOGLS))
    assert [(one.objective, one.quantity) for one in found] == [(o, q) for o in ("huber", "logls") for q in QUANTITIES]
    assert all(one.count + one.lost == len(SEEDS) for one in found)
    assert all(one.error == np.hypot(one.bias, one.spread) for one in found)


def test_least_squares_suits_gaussian_noise_and_huber_heavy_tails() -> None:
    def error(noise: str, name: str) -> float:
        found = estimators("isoflop", noise, range(150), (HUBER, LOGLS))  # type: ignore[arg-type]
        return next(one.error for one in found if one.objective == name and one.quantity == "loss +1")

    assert error("gaussian", "logls") < error("gaussian", "huber")
    assert error("heavy", "huber") < error("heavy", "logls")
