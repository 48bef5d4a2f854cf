"""One design for two ladders: pairs where there are pairs, else the shared range."""

from dataclasses import replace

import numpy as np
import pytest
from tests.forecast.recipes import H, ladder

from ridgeline.core.errors import InputError, NotEnoughDataError
from ridgeline.forecast.deciding.pairing import pairs, share
from ridgeline.forecast.points import Points


def moved(points: Points, factor: float) -> Points:
    """The ladder with every N and D times ``factor``."""
    columns = {**points.columns, "N": points["N"] * factor, "D": points["D"] * factor}
    return replace(points, columns={**columns, "C": 6 * columns["N"] * columns["D"]})


def test_the_same_design_pairs_run_by_run_in_any_order() -> None:
    base, other = ladder(H, seed=1), ladder(H, seed=2)
    order = np.random.default_rng(0).permutation(len(other))
    found = share(base, other.take(order), 6)
    assert found.kind == "paired"
    assert found.left_out == (0, 0)
    np.testing.assert_allclose(found.baseline["N"], found.candidate["N"])
    np.testing.assert_allclose(found.baseline["D"], found.candidate["D"])
    np.testing.assert_array_equal(found.candidate["loss"], other["loss"])


def test_runs_of_one_ladder_alone_are_left_out_and_said() -> None:
    base, other = ladder(H), ladder(H).take(np.arange(18))
    found = share(base, other, 6)
    assert found.kind == "paired"
    assert found.left_out == (12, 0)
    assert "12 runs of the baseline and 0 of the candidate are left out" in found.said
    assert found.high == pytest.approx(3.2e19)


@pytest.mark.parametrize(("factor", "count"), [(1.01, 30), (1.05, 0)])
def test_nearly_equal_runs_are_one_design_point(factor: float, count: int) -> None:
    left, right = pairs(ladder(H), moved(ladder(H), factor))
    assert len(left) == len(right) == count


def test_seeds_that_agree_go_together() -> None:
    one = ladder(H).take(np.array([0, 0, 5]))
    base = replace(one, labels={"seed": np.array(["a", "b", "a"])})
    other = replace(one, labels={"seed": np.array(["b", "a", "a"])})
    left, right = pairs(base, other)
    assert dict(zip(left.tolist(), right.tolist(), strict=True)) == {0: 1, 1: 0, 2: 2}


def test_a_run_is_used_once() -> None:
    one = ladder(H).take(np.array([0, 0, 0]))
    left, right = pairs(one, one.take(np.array([0])))
    assert (len(left), len(right)) == (1, 1)


def test_other_sizes_are_cut_to_the_shared_range() -> None:
    base = ladder(H, budgets=(1e18, 1e19, 1e20, 1e21))
    other = moved(ladder(H, budgets=(1e19, 1e20, 1e21, 1e22)), 1.1)
    found = share(base, other, 6)
    assert found.kind == "range"
    assert found.left_out[0] > 0
    assert found.left_out[1] > 0
    assert found.baseline["C"].min() >= 1e19
    assert found.candidate["C"].max() <= 1e21 * 1.3
    assert "cut to" in found.said


def test_ladders_without_a_shared_range_are_refused() -> None:
    with pytest.raises(NotEnoughDataError, match="Expected 6 different"):
        share(ladder(H, budgets=(1e18, 1e19)), ladder(H, budgets=(1e21, 1e22)), 6)


def test_different_counts_of_n_are_refused() -> None:
    with pytest.raises(InputError, match="Expected N counted as"):
        share(ladder(H), replace(ladder(H), params="non-embedding"), 6)


def test_an_unstated_count_is_accepted() -> None:
    assert share(ladder(H), replace(ladder(H), params="unstated"), 6).kind == "paired"
