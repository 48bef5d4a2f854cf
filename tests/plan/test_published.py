"""The shipped constants on the runs that they were fitted to: the file belongs to this version of the model."""

from pathlib import Path

import numpy as np
import pytest
from scripts.published_rows import Row, layout_of, rows

from ridgeline.plan.steps.expected import expect

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def published(data_dir: Path) -> list[Row]:
    assert (data_dir / "plan").is_dir()
    return rows(("published_runs.csv",))


@pytest.fixture(scope="module")
def misses(published: list[Row]) -> np.ndarray:
    """ln(measured/predicted) and the interval's ends, a row each."""
    found = []
    for row in published:
        told = expect(row.spec, row.cluster, row.batch, layout_of(row), row.software, site=row.source)
        ends = [np.log(end[0] / told.steps.step_s[0]) for end in told.interval(0.80)]
        found.append([np.log(row.step_s / told.steps.step_s[0]), *ends])
    return np.array(found)


def test_no_row_is_one_that_was_kept_aside(published: list[Row]) -> None:
    assert len(published) > 550
    assert len({row.row_id for row in published}) == len(published)
    assert len({row.group for row in published}) < len(published)  # a configuration repeats over releases


def test_the_median_error_is_that_of_the_benchmark_page(misses: np.ndarray) -> None:
    assert np.median(np.abs(np.expm1(-misses[:, 0]))) < 0.06


def test_multi_node_vtrain(published: list[Row], misses: np.ndarray) -> None:
    own = np.array([row.source == "vtrain-multi" for row in published])
    assert np.mean(np.abs(np.expm1(-misses[own, 0]))) < 0.075


def test_intervals_cover_at_least_as_often_as_they_say(misses: np.ndarray) -> None:
    """In sample the residuals are smaller than the held-out ones that the intervals come from."""
    inside = (misses[:, 1] <= misses[:, 0]) & (misses[:, 0] <= misses[:, 2])
    assert 0.80 <= np.mean(inside) <= 0.95
