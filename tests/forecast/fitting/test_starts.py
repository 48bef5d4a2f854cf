"""Variable projection on grids: basins, signs, and what settling does."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.starts import basins, boxed, grid, project, project_log, settle, spread
from ridgeline.forecast.laws import chinchilla

X = np.geomspace(1, 1e3, 20)


def test_grid_is_every_combination() -> None:
    cells, shape = grid(((1.0, 2.0), (3.0, 4.0, 5.0)))
    assert shape == (2, 3)
    assert cells.tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]


def test_basins_are_local_minima_first() -> None:
    surface = np.array([3.0, 1.0, 2.0, 5.0, 0.5, 4.0, np.nan])
    assert basins((7,), surface)[:2].tolist() == [4, 1]


def test_projection_finds_the_exponent_and_the_coefficients() -> None:
    loss = 2.0 + 5.0 * X**-0.5
    found = project(
        ((0.25, 0.5, 1.0),),
        lambda c: np.stack([spread(c[:, 0], X), np.ones((len(c), 20))], -1),
        np.log(loss),
        np.ones(20),
    )
    assert found.cells[0, 0] == 0.5
    assert found.linear[0] == pytest.approx([5 * np.exp(-0.5 * np.mean(np.log(X))), 2.0], rel=1e-6)


def test_a_term_that_would_be_negative_starts_small() -> None:
    loss = 2.0 - 0.5 * X**-0.5
    found = project(
        ((0.5,),), lambda c: np.stack([spread(c[:, 0], X), np.ones((len(c), 20))], -1), np.log(loss), np.ones(20)
    )
    assert np.all(found.linear > 0)
    assert found.linear[0, 0] * spread(np.array([0.5]), X).max() <= 0.021 * loss.max()


def test_log_projection_takes_either_sign() -> None:
    log_y = 1.5 - 0.25 * np.log(X)
    found = project_log(((0.0,),), lambda c: np.stack([np.ones((1, 20)), np.log(X)[None]], -1), log_y, np.ones(20))
    assert found.linear[0] == pytest.approx([1.5, -0.25], abs=1e-8)


def test_settling_lowers_the_squares_and_moves_only_what_is_free() -> None:
    form, truth = chinchilla.FORM, ladders.constants("besiroglu-2024")
    columns = ladders.mesh(N=np.geomspace(1e7, 1e9, 5), D=np.geomspace(1e9, 1e11, 5))
    log_y = form.log_loss(form.internal(truth), columns)
    start = form.internal({**truth, "A": 600.0, "B": 1500.0})[None]
    found = settle(form, start, (0, 1), columns, log_y, np.ones(25))
    assert found[0] == pytest.approx(form.internal(truth), rel=1e-6)
    assert settle(form, start, (2,), columns, log_y, np.ones(25))[0, [0, 1, 3, 4]] == pytest.approx(
        start[0, [0, 1, 3, 4]]
    )


def test_boxed() -> None:
    low, high = chinchilla.FORM.box
    assert boxed(chinchilla.FORM, np.full((1, 5), 1e9))[0] == pytest.approx(high)
    assert boxed(chinchilla.FORM, np.full((1, 5), -1e9))[0] == pytest.approx(low)
