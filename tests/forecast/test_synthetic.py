"""Simulated ladders, and that the default interval covers on them."""

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.forecast import Options
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.synthetic import DESIGNS, NOISES, SIGMA, Design, Noise, coverage, errors, simulate, truth


@pytest.mark.parametrize(("design", "count"), [("epoch", 240), ("ladder", 16), ("isoflop", 35)])
def test_designs(design: Design, count: int) -> None:
    made = simulate(design, "gaussian", 0)
    assert len(made.points) == len(made.group) == count
    off = np.log(made.points["loss"]) - CHINCHILLA.log_loss(made.theta, {n: made.points[n] for n in ("N", "D")})
    assert np.abs(off).max() < 5 * SIGMA


@pytest.mark.parametrize("noise", NOISES)
def test_every_noise_has_the_stated_size(noise: Noise) -> None:
    group = np.repeat(np.arange(2000), 10)
    drawn = errors(noise, group, np.random.default_rng(0))
    assert drawn.std() == pytest.approx(SIGMA, rel=0.1)
    between = drawn.reshape(2000, 10).mean(axis=1).var() / drawn.var()
    assert between == pytest.approx(0.64 + 0.036 if noise == "grouped" else 0.1, abs=0.04)


def test_the_same_seed_gives_the_same_ladder() -> None:
    one, two, other = (simulate("ladder", "heavy", seed).points["loss"] for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_the_truth_is_a_published_law() -> None:
    assert CHINCHILLA.natural(truth())["E"] == pytest.approx(1.8172)
    with pytest.raises(InputError, match="parametric"):
        truth("llama3-2024")


def test_unknown_designs_are_refused() -> None:
    with pytest.raises(InputError, match="epoch, ladder, isoflop"):
        simulate("grid", "gaussian", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("design", DESIGNS)
def test_the_default_covers_grouped_noise(design: Design) -> None:
    cells = coverage(design, "grouped", range(4), options=Options(draws=40))
    assert [(cell.kind, cell.decades, cell.count, cell.failed) for cell in cells] == [
        ("calibrated", 1.0, 4, 0),
        ("calibrated", 2.0, 4, 0),
    ]
    assert all(cell.law >= 3 / 4 and cell.run >= 3 / 4 for cell in cells)
    assert cells[0].width < cells[1].width < 0.4
