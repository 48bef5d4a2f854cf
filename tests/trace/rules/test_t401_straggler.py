"""T401: a rank that makes the others wait."""

import pytest
from tests.trace.charts import of_devices
from tests.trace.runs import context, facts, finding, number
from tests.trace.test_l4 import job, spread
from tests.trace.traces import steady_rank

from ridgeline.trace.levels.l4 import rank_spread


def test_a_straggler_fails_with_its_cost() -> None:
    found = finding(facts(context(observed={"step": "7.2ms"}), l4=spread(job([[0], [500], [10], [0]]))), "T401")
    assert str(found.verdict) == "fail"
    assert "rank1 is last in 24 of 24 collectives" in found.sentence
    assert number(found.cost.seconds) == pytest.approx(6 * 490e-6, rel=1e-6)
    assert found.fix == "Look at what only rank1's host does; exchange the host if that changes nothing."


def test_even_ranks_pass() -> None:
    assert str(finding(facts(context(), l4=spread(job([[0, 9], [9, 0]]))), "T401").verdict) == "pass"


def test_own_time_serves_without_collectives() -> None:
    ranks = [steady_rank(1.0, label=f"rank{i}", exposed_comm=0.3 if i else 0.1) for i in range(3)]
    found = finding(facts(context(), l4=rank_spread(buckets=ranks)), "T401")
    assert str(found.verdict) == "fail"
    assert "rank0 is the slowest" in found.sentence
    assert number(found.value) == pytest.approx(20)
    assert found.fix.startswith("Look at the clock of rank0 and its share of the work; exchange the host")


def test_devices_alone_do_not_tell() -> None:
    assert str(finding(of_devices(), "T401").verdict) == "unknown"
