"""T307: a step time that grows."""

import numpy as np
import pytest
from tests.trace.charts import of_log, steady
from tests.trace.runs import context, facts, finding, number


def test_growth_warns_with_its_mean_cost() -> None:
    found = finding(of_log(steady() + np.linspace(0, 4, 600)), "T307")
    assert str(found.verdict) == "warn"
    assert "by and by" in found.sentence
    assert number(found.cost.seconds) == pytest.approx(2, abs=0.3)


def test_a_jump_is_dated() -> None:
    x = steady()
    x[300:] += 3
    assert "at step 30" in finding(of_log(x), "T307").sentence


def test_a_run_that_becomes_faster_passes() -> None:
    found = finding(of_log(steady() - np.linspace(0, 4, 600)), "T307")
    assert str(found.verdict) == "pass"
    assert "It fell from" in found.sentence


def test_a_steady_log_passes() -> None:
    assert str(finding(of_log(steady()), "T307").verdict) == "pass"


def test_nothing_is_said_without_a_log() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        finding(facts(context()), "T307")
