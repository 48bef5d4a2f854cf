"""The catalogue: every pathology costs something, and what it changes is what it says."""

import pytest

from ridgeline.core.plugins import rules
from ridgeline.trace.drills.generate import drill
from ridgeline.trace.drills.job import job_of, small
from ridgeline.trace.drills.pathologies import CATALOGUE, EXCLUDES, fit
from ridgeline.trace.drills.schedule import healthy

JOB = small(job_of(5))


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_costs_time(name: str) -> None:
    found = drill(5, [name], job=JOB)
    (cause,) = found.planted
    assert cause.seconds > 0.005 * found.step_s
    assert found.schedule != healthy(JOB)


def test_rules_exist() -> None:
    assert {code for item in CATALOGUE.values() for code in item.codes} <= set(rules())
    assert set(EXCLUDES) <= set(CATALOGUE)


@pytest.mark.parametrize(
    ("names", "fits"),
    [
        ((), True),
        (("input", "fp32", "heat", "checkpoint"), True),
        (("input", "input"), False),
        (("heat", "power"), False),
        (("slow_link", "unfused"), False),
        (("unfused", "slow_link"), False),
    ],
)
def test_what_can_be_planted_together(names: tuple[str, ...], fits: bool) -> None:
    assert fit(names) is fits
