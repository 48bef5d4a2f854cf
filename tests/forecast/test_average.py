"""The choice of a form: only a clear and consistent win, on runs that were left out."""

import numpy as np
import pytest

from ridgeline.forecast.average import WIN, choose, weights
from ridgeline.forecast.rollout import Rollout, candidates

FORMS = candidates()[:3]


def rolled(cut: float, *typical: float, runs: int = 6) -> Rollout:
    """A rollout whose forms have these errors at every run."""
    errors = np.repeat(np.array(typical)[:, None], runs, axis=1)
    return Rollout(cut, np.ones(3, bool), np.arange(runs), np.ones(runs), errors, 0 * errors, ())


def test_a_form_that_wins_at_every_cut_is_chosen() -> None:
    found = choose([rolled(0.4, 0.02, 0.01, 0.005), rolled(0.6, 0.02, 0.01, 0.008)], FORMS)
    assert found.index == 2
    assert found.ratio[2] == pytest.approx(0.4)
    assert FORMS[2].title in found.because


@pytest.mark.parametrize(
    "cuts",
    [
        [rolled(0.4, 0.02, 0.001, 0.02)],  # one cut is luck
        [rolled(0.4, 0.02, 0.001, 0.02), rolled(0.6, 0.02, 0.018, 0.02)],  # it won once
        [rolled(0.4, 0.02, 0.001, 0.02), rolled(1.0, 0.02, 0.001, 0.02)],  # the second is too far down
        [rolled(0.4, 0.02, 0.001, 0.02, runs=3), rolled(0.6, 0.02, 0.001, 0.02)],  # three runs say little
    ],
)
def test_otherwise_it_is_the_first(cuts: list[Rollout]) -> None:
    assert choose(cuts, FORMS).index == 0


def test_a_win_is_a_third() -> None:
    def at(ratio: float) -> int:
        return choose([rolled(cut, 0.03, 0.03 * ratio, 0.03) for cut in (0.4, 0.6)], FORMS).index

    assert (at(WIN - 1e-6), at(WIN + 1e-6)) == (1, 0)


def test_a_form_without_a_floor_is_not_chosen() -> None:
    cuts = [rolled(cut, 0.02, 0.01, 0.005) for cut in (0.4, 0.6)]
    assert choose(cuts, FORMS, np.array([True, True, False])).index == 1


def test_weights_sum_to_one_and_follow_the_record() -> None:
    share = weights([rolled(0.4, 0.02, 0.01, 0.04), rolled(0.6, 0.02, 0.01, 0.04)], FORMS)
    assert share.sum() == pytest.approx(1)
    assert share[1] / share[0] == pytest.approx(4)
    assert list(weights([], FORMS)) == [1, 0, 0]
