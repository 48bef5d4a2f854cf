"""T402: chips that heat holds back."""

import pytest
from tests.trace.charts import of_devices
from tests.trace.logs import samples
from tests.trace.runs import context, facts, finding, number
from tests.trace.traces import steady_rank

from ridgeline.trace.levels.l4 import rank_spread

HELD: dict[str, list[float]] = {"sm_clock_mhz": [2000, 1600, 2000, 2000], "clock_reasons": [0, 0x40, 0, 0]}


def test_a_chip_that_is_held_fails() -> None:
    found = finding(of_devices(**HELD), "T402")
    assert str(found.verdict) == "fail"
    assert "1 of 4 chips (rank1) run slower" in found.sentence
    assert number(found.value) == pytest.approx(80)
    assert found.cost.figures == {}


def test_compute_times_give_a_cost() -> None:
    ranks = [steady_rank(15.0, label=f"rank{i}", exposed_comm=5.0) for i in range(4)]
    found = finding(facts(context(), l4=rank_spread(buckets=ranks, samples=[samples(**HELD)])), "T402")
    assert number(found.cost.seconds) == pytest.approx(2.0)
    assert number(found.cost.mfu_points) > 0


def test_even_clocks_pass() -> None:
    assert str(finding(of_devices(clock_reasons=[0, 0x40, 0, 0]), "T402").verdict) == "pass"


def test_the_threshold_moves_the_verdict() -> None:
    assert [str(finding(of_devices(**HELD), "T402", limit).verdict) for limit in (79, 81)] == ["pass", "fail"]
