"""From loss to accuracy: what each form recovers, its limits, and its derivatives at the edges."""

import numpy as np
import pytest

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import LS
from ridgeline.forecast.laws.downstream import EXPONENTIAL, SIGMOID
from ridgeline.forecast.points import Points

HELLASWAG = {"floor": 0.26, "gain": 0.74, "steepness": 13.0, "midpoint": 0.76}  # near a real task's
AVERAGE = {"epsilon": 0.85, "k": 2.0, "gamma": 0.75}


def tasks(loss: np.ndarray, noise: float = 0.0) -> Points:
    jitter = noise * np.random.default_rng(0).standard_normal(loss.size)
    c, e = HELLASWAG, AVERAGE
    accuracy = c["floor"] + c["gain"] / (1 + np.exp(c["steepness"] * (loss - c["midpoint"])))
    return Points(
        {
            "loss": loss,
            "accuracy": accuracy + jitter,
            "error": e["epsilon"] - e["k"] * np.exp(-e["gamma"] * loss) + jitter,
        }
    )


def test_by_hand_and_at_the_ends() -> None:
    at = {"loss": np.array([0.76, 0.1, 50.0])}
    accuracy = np.exp(SIGMOID.log_loss(SIGMOID.internal(HELLASWAG), at))
    assert accuracy == pytest.approx([0.63, 0.26 + 0.74 / (1 + np.exp(-13.0 * 0.66)), 0.26])
    error = np.exp(EXPONENTIAL.log_loss(EXPONENTIAL.internal(AVERAGE), at))
    assert error[1:] == pytest.approx([1e-6, 0.85])  # below the losses fitted to it would be negative


def test_a_sigmoid_that_has_bent_is_found() -> None:
    points = tasks(np.linspace(0.5, 1.1, 25))
    found = fit(points, SIGMOID, LS)
    assert found.converged
    assert found.constants == pytest.approx(HELLASWAG, rel=1e-5)


def test_a_sigmoid_that_has_not_bent_does_not_tell_its_ceiling() -> None:
    noisy = fit(tasks(np.linspace(0.82, 1.2, 25), noise=0.004), SIGMOID, LS)
    bent = fit(tasks(np.linspace(0.5, 1.1, 25), noise=0.004), SIGMOID, LS)
    ceiling = [item.constants["floor"] + item.constants["gain"] for item in (noisy, bent)]
    assert abs(ceiling[1] - 1.0) < 0.02 < abs(ceiling[0] - 1.0)


def test_the_exponential() -> None:
    found = fit(tasks(np.linspace(2.3, 4.5, 30)), EXPONENTIAL, LS)
    assert found.converged
    assert found.constants == pytest.approx(AVERAGE, rel=1e-4)


def test_an_interval_by_bootstrap_covers_the_task() -> None:
    from ridgeline.forecast.fitting.bootstrap import bootstrap

    found = fit(tasks(np.linspace(0.6, 1.1, 25), noise=0.004), SIGMOID, LS)
    draws = bootstrap(found, count=200, seed=0)
    low, high = draws.interval({"loss": np.array([0.55])}, 0.95)
    truth = float(tasks(np.array([0.55]))["accuracy"][0])
    assert low[0] < truth < high[0]
    assert high[0] - low[0] < 0.1
