"""Drills from seeds."""

import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.drills.generate import drill
from ridgeline.trace.drills.job import job_of, small
from ridgeline.trace.drills.pathologies import CATALOGUE, fit

JOB = small(job_of(2))


def test_a_seed_gives_the_same_drill() -> None:
    first, second = drill(11), drill(11)
    assert first.planted == second.planted
    assert [tape.events for tape in first.tapes] == [tape.events for tape in second.tapes]


@pytest.mark.parametrize("seed", range(6))
def test_one_to_four_causes_that_fit_and_cost_enough(seed: int) -> None:
    found = drill(seed)
    names = tuple(cause.name for cause in found.planted)
    assert 1 <= len(names) <= 4
    assert fit(names)
    assert all(cause.seconds >= CATALOGUE[cause.name].least * found.step_s for cause in found.planted)


def test_the_truth_is_what_the_run_gains() -> None:
    nothing, both = drill(2, [], job=JOB), drill(2, ["input", "unfused"], job=JOB)
    assert nothing.planted == ()
    assert both.step_s - nothing.step_s == pytest.approx(sum(c.seconds for c in both.planted), rel=0.02)


def test_stalls_are_in_the_mean_step_and_not_in_the_trace() -> None:
    found = drill(2, ["checkpoint"], job=JOB)
    assert found.step_s == drill(2, [], job=JOB).step_s
    assert found.mean_s - found.step_s == pytest.approx(found.planted[0].seconds)


@pytest.mark.parametrize(("names", "match"), [(["inptu"], "input"), (["heat", "power"], "together")])
def test_impossible_causes_are_refused(names: list[str], match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        drill(1, names, job=JOB)
    assert match in f"{caught.value} {caught.value.hint}"
