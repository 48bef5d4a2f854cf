"""Non-negative least squares over subsets, and the cells of a grid that are started from."""

import numpy as np
import pytest
from scipy.optimize import nnls

from ridgeline.forecast.fitting.projection import distinct, nonnegative


def test_against_a_reference() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((50, 12, 3))
    target = rng.standard_normal((50, 12))
    gram = np.einsum("kni,knj->kij", features, features)
    moment = np.einsum("kni,kn->ki", features, target)
    found, gain = nonnegative(gram, moment)
    for k in range(50):
        expected, residual = nnls(features[k], target[k])
        assert found[k] == pytest.approx(expected, abs=1e-8)
        assert np.sum(target[k] ** 2) - gain[k] == pytest.approx(residual**2, abs=1e-8)


def test_local_minima_come_first_of_their_neighbourhood() -> None:
    score = np.full((9, 9), 9.0)
    score[1, 1], score[1, 2], score[7, 6] = 1.0, 1.5, 2.0
    score[4, 4] = np.nan
    cells = distinct(np.where(np.isnan(score), np.inf, score), keep=3)
    assert cells[:2] == [(1, 1), (7, 6)]
    assert (1, 2) not in cells
    assert (4, 4) not in cells
    assert len(distinct(score[:3, :3], keep=8)) <= 8
