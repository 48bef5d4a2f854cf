"""Bootstraps: the published intervals, groups that stay together, failures and degenerate basins counted."""

from pathlib import Path

import numpy as np
import pytest
from tests.forecast.fitting.test_fit import points_240
from tests.forecast.ladders import law_h, noisy

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.bootstrap import bootstrap
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import LOGLS, objective
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.points import Points

FAR = {"N": np.array([1e11]), "D": np.array([1e13])}


@pytest.mark.data
def test_intervals_of_the_240_points(data_dir: Path) -> None:
    draws = bootstrap(fit(points_240(data_dir), FORM), count=4000)
    expected = {
        "A": (284.5, 722.9),
        "B": (1084.6, 5848.1),
        "E": (1.772, 1.871),
        "alpha": (0.316, 0.372),
        "beta": (0.334, 0.416),
    }
    assert draws.count == 4000
    assert draws.failed == 0
    for symbol, (low, high) in expected.items():
        assert np.quantile(draws.constants[symbol], [0.025, 0.975]) == pytest.approx([low, high], rel=0.05)


def test_the_seed_decides_and_methods_differ() -> None:
    found = fit(noisy(), FORM)
    one, same, other = (bootstrap(found, count=50, seed=seed).theta for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    residual = bootstrap(found, "residual", count=50, seed=1)
    assert residual.method == "residual"
    assert not np.array_equal(residual.theta, one)


def test_a_refit_is_a_fit_of_the_resample() -> None:
    points = noisy()
    draws = bootstrap(fit(points, FORM, LOGLS), count=3, seed=4)
    times = np.random.default_rng(4).multinomial(30, np.full(30, 1 / 30), size=3)
    for row in range(3):
        alone = fit(points.take(np.repeat(np.arange(30), times[row])), FORM, LOGLS)
        assert draws.value[row] == pytest.approx(alone.value, rel=1e-8)


def test_errors_that_groups_share_need_the_group_bootstrap() -> None:
    n, d = (grid.ravel() for grid in np.meshgrid(np.geomspace(3e7, 3e9, 6), np.geomspace(1e9, 3e11, 8)))
    group = np.repeat(np.arange(8), 6)
    shared = 0.01 * np.random.default_rng(3).standard_normal(8)[group]
    points = Points({"N": n, "D": d, "loss": law_h(n, d) * np.exp(shared)}, {"seed": group.astype(str)})
    found = fit(points, FORM, LOGLS)
    widths = {}
    for method in ("point", "group"):
        low, high = bootstrap(found, method, count=300, by="seed").interval(FAR)
        widths[method] = float(high[0] - low[0])
    assert widths["group"] > 1.3 * widths["point"]


def test_interval_with_noise_is_wider_and_ordered() -> None:
    draws = bootstrap(fit(noisy(noise=0.01), FORM), count=400)
    inside = {"N": np.array([3e8]), "D": np.array([2e10])}
    low, high = draws.interval(inside)
    wide_low, wide_high = draws.interval(inside, noise=True)
    assert wide_low < low < high < wide_high
    low, high = draws.interval(FAR)
    inner_low, inner_high = draws.interval(FAR, level=0.5)
    assert low < inner_low < inner_high < high
    with pytest.raises(InputError, match="level"):
        draws.interval(FAR, level=95.0)


def test_noise_of_a_new_run_has_the_size_of_the_residuals() -> None:
    found = fit(noisy(noise=0.01), FORM, LOGLS)
    draws = bootstrap(found, count=2000)
    spread = np.std(np.log(draws.predict(FAR, noise=True)) - draws.log_loss(FAR))
    assert spread == pytest.approx(found.scatter, rel=0.1)


def test_noise_that_falls_with_size_is_small_at_a_large_target() -> None:
    rng = np.random.default_rng(0)
    n, d = (np.tile(noisy()[name], 4) for name in ("N", "D"))
    spread = 0.01 * (n / np.exp(np.mean(np.log(n)))) ** -0.3
    points = Points({"N": n, "D": d, "loss": law_h(n, d) * np.exp(spread * rng.standard_normal(len(n)))})
    draws = bootstrap(fit(points, FORM, objective("mle", noise="size")), "residual", count=1000)
    large, small = ({"N": np.array([size]), "D": np.array([1e12])} for size in (1e11, 3e7))
    sizes = [np.std(np.log(draws.predict(c, noise=True)) - draws.log_loss(c)) for c in (large, small)]
    assert sizes[0] < 0.3 * sizes[1]


def test_degenerate_basins_are_found_and_counted() -> None:
    """Few noisy runs whose loss has hardly a floor: many resamples want none at all."""
    n, d = (grid.ravel() for grid in np.meshgrid(np.geomspace(1e7, 3e8, 4), np.geomspace(1e9, 2e10, 4)))
    loss = law_h(n, d, E=0.15) * np.exp(0.03 * np.random.default_rng(8).standard_normal(16))
    draws = bootstrap(fit(Points({"N": n, "D": d, "loss": loss}), FORM), count=200)
    assert 0.05 < draws.degenerate.mean() <= 1
    assert draws.starts >= 2
    assert draws.count == 200


def test_resamples_with_too_few_runs_are_failures() -> None:
    n = np.geomspace(1e8, 1e10, 6)
    d = np.array([3e9, 1e11, 1e10, 2e9, 3e11, 2e10])
    draws = bootstrap(fit(Points({"N": n, "D": d, "loss": law_h(n, d)}), FORM), count=300)
    assert draws.failed > 50
    assert len(draws.theta) + draws.failed == 300


def test_what_it_refuses() -> None:
    found = fit(noisy(), FORM)
    with pytest.raises(InputError, match="point, group, residual"):
        bootstrap(found, "jackknife")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="column of groups"):
        bootstrap(found, "group", by="recipe")
    labelled = Points(found.points.columns, {"recipe": np.full(len(found.points), "one")})
    with pytest.raises(InputError, match="two groups"):
        bootstrap(fit(labelled, FORM), "group", by="recipe")
