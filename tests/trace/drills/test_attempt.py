"""The tool's own answer: what it may say, and that each second is said once."""

from pathlib import Path

import pytest

from ridgeline.core.finding import RuleConfig
from ridgeline.trace.analyse import analyse
from ridgeline.trace.context import read_context
from ridgeline.trace.drills.attempt import SOURCES, attempt, causes_of
from ridgeline.trace.drills.generate import drill
from ridgeline.trace.drills.job import job_of, small
from ridgeline.trace.drills.render import write
from ridgeline.trace.facts import TraceFacts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drill whose exposed gathers two rules see."""
    made = drill(6, ["resharding", "input"], job=small(job_of(6)))
    return write(made, tmp_path_factory.mktemp("attempt") / "drill")


def test_an_exchange_outside_the_plan_is_no_scheduling_as_well(folder: Path) -> None:
    found = attempt(folder)
    assert [answer.code for answer in found] == ["T101", "T155"]
    assert found[0].seconds >= found[1].seconds


def test_the_configuration_counts(folder: Path) -> None:
    facts = analyse([folder / name for name in SOURCES], read_context(folder))
    assert [answer.code for answer in causes_of(facts, RuleConfig(ignore=("T101",)))] == ["T155"]
    assert [answer.code for answer in causes_of(facts, RuleConfig(select=("T101",)))] == ["T101"]


def test_nothing_known_is_no_answer() -> None:
    assert causes_of(TraceFacts()) == []
