"""T402, T403 and T404: chips that run slower than the others, by what holds them back."""

import pytest
from tests.trace.charts import of_devices
from tests.trace.logs import samples
from tests.trace.runs import context, facts, finding, number
from tests.trace.traces import steady_rank

from ridgeline.trace.levels.l4 import rank_spread

# the reasons that a driver gives for the clock, by rule: held on one chip, and a case that passes
HEAT, POWER, UNEXPLAINED = ("T402", 0x40), ("T403", 0x4), ("T404", 0)
EVEN: dict[str, list[float]] = {"T402": [0, 0x40, 0, 0], "T403": [4, 4, 4, 4], "T404": [0, 0, 0, 0]}
RULES = pytest.mark.parametrize(("code", "reason"), [HEAT, POWER, UNEXPLAINED])


def held(reason: int) -> dict[str, list[float]]:
    return {"sm_clock_mhz": [2000, 1600, 2000, 2000], "clock_reasons": [0, reason, 0, 0]}


@RULES
def test_a_chip_that_is_held_fails(code: str, reason: int) -> None:
    found = finding(of_devices(**held(reason)), code)
    assert str(found.verdict) == "fail"
    assert "1 of 4 chips (rank1) run slower" in found.sentence
    assert number(found.value) == pytest.approx(80)
    assert found.cost.figures == {}


@RULES
def test_compute_times_give_a_cost(code: str, reason: int) -> None:
    ranks = [steady_rank(15.0, label=f"rank{i}", exposed_comm=5.0) for i in range(4)]
    found = finding(facts(context(), l4=rank_spread(buckets=ranks, samples=[samples(**held(reason))])), code)
    assert number(found.cost.seconds) == pytest.approx(2.0)
    assert number(found.cost.mfu_points) > 0


@pytest.mark.parametrize("code", list(EVEN))
def test_even_clocks_pass(code: str) -> None:
    assert str(finding(of_devices(clock_reasons=EVEN[code]), code).verdict) == "pass"


@RULES
def test_the_threshold_moves_the_verdict(code: str, reason: int) -> None:
    assert [str(finding(of_devices(**held(reason)), code, limit).verdict) for limit in (79, 81)] == ["pass", "fail"]
