"""The hold-out of a ladder: what is kept and tested, what is counted, and what a short ladder gets."""

import numpy as np
import pytest

from ridgeline.forecast.calibrate import Held, calibrate, pooled
from ridgeline.forecast.forecast import Options
from ridgeline.forecast.points import Points


def ladder(budgets: int = 5, noise: float = 0.001, bend: float = 0.0) -> Points:
    """Seven sizes at each of the budgets over two decades; ``bend`` makes the top budget better than its law."""
    rng = np.random.default_rng(3)
    compute = np.repeat(np.geomspace(1e19, 1e21, budgets), 7)
    n = 0.12 * np.sqrt(compute) * np.tile(np.geomspace(0.25, 4, 7), budgets)
    d = compute / (6 * n)
    loss = (1.82 + 480 / n**0.35 + 2100 / d**0.37) * np.exp(noise * rng.standard_normal(len(n)))
    loss[compute == compute.max()] *= 1 - bend
    return Points({"N": n, "D": d, "C": compute, "loss": loss}, {"budget": compute.astype(str)})


def test_every_run_is_kept_or_tested() -> None:
    points = ladder()
    found = calibrate(points, Options(draws=60), cuts=(0.5, 1.0))
    assert [one.kept + one.tested for one in found] == [35, 35]
    assert [one.kept for one in found] == [28, 21]


def test_runs_of_the_law_are_covered_and_a_bend_is_not_hidden() -> None:
    inside, tested = pooled(calibrate(ladder(), Options(draws=60), cuts=(0.5,)))
    assert tested == 7
    assert inside >= 6
    (bent,) = calibrate(ladder(bend=0.2), Options(draws=60), cuts=(0.5,))
    assert bent.covered < bent.tested
    assert bent.best == pytest.approx(0.25, abs=0.05)  # forecast too high


def test_a_cut_below_the_ladder_is_refused_in_words() -> None:
    (one,) = calibrate(ladder(), Options(draws=60), cuts=(5.0,))
    assert (one.kept, one.covered, one.refused) == (0, 0, "no run lies below the cut")


def test_a_cut_that_leaves_too_few_runs_says_why() -> None:
    points = ladder(budgets=3)
    few = points.take(np.flatnonzero((points["C"] > 2e19) | (np.arange(len(points)) < 2)))
    (one,) = calibrate(few, Options(draws=60), cuts=(1.5,))
    assert one.kept == 2
    assert one.refused


def test_cuts_without_a_forecast_count_for_nothing() -> None:
    good = Held(0.5, 10, 8, 6, 0.1, 0.01, 0.02)
    bad = Held(1.0, 2, 16, 0, np.nan, np.nan, np.nan, refused="too few")
    assert pooled([good, bad]) == (6, 8)
