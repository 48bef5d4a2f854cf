"""The frontier and the highest rate under an SLO."""

import numpy as np
import pytest
from tests.serve.simulate.studies import DECODE_S, PREFILL_S, engine, load, table

from ridgeline.core.errors import InfeasibleError
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.engine.result import Result
from ridgeline.serve.simulate.frontier import alone, at_rate, frontier, max_rate
from ridgeline.serve.simulate.metrics import Slo
from ridgeline.serve.simulate.traffic.arrivals import poisson, rate_of
from ridgeline.serve.simulate.traffic.workload import Workload

SLO = {"": Slo(ttft_s=0.5, tpot_s=0.05)}


def run(workload: Workload) -> Result:
    return simulate(workload, table(), engine())


def traffic(rate: float = 3.0, n: int = 1500) -> Workload:
    return load(poisson(rate, n, np.random.default_rng(0)))


def test_the_highest_rate_lies_between_a_pass_and_a_fail() -> None:
    found = max_rate(run, traffic(), SLO)
    passed = [rate for rate, share in found.tried if share >= 0.99]
    failed = [rate for rate, share in found.tried if share < 0.99]
    assert found.monotone
    assert found.rate_per_s == max(passed)
    assert min(failed) / max(passed) <= 1.02
    assert found.share >= 0.99


def test_it_does_not_depend_on_the_rate_of_the_trace() -> None:
    slow, fast = (max_rate(run, traffic(rate), SLO).rate_per_s for rate in (0.3, 60.0))
    assert slow == pytest.approx(fast, rel=0.03)


def test_two_replicas_take_about_twice_the_rate() -> None:
    def twice(workload: Workload) -> Result:
        return simulate(workload, table(), engine(replicas=2))

    one, two = (max_rate(each, traffic(), SLO).rate_per_s for each in (run, twice))
    assert 1.8 < two / one < 2.8


def test_an_slo_below_the_floor_is_refused_with_the_floor() -> None:
    with pytest.raises(InfeasibleError, match=r"alone in the system 0\.0% of the requests meet it") as caught:
        max_rate(run, traffic(), {"": Slo(ttft_s=PREFILL_S / 2)})
    assert "ttft 60.0 ms at the median" in caught.value.limit
    assert f"tpot {1e3 * DECODE_S:.1f} ms" in caught.value.limit


def test_a_list_that_is_over_before_a_queue_forms_has_no_highest_rate() -> None:
    with pytest.raises(InfeasibleError, match="however fast requests arrive") as caught:
        max_rate(run, traffic(n=3), {"": Slo(ttft_s=100.0)})
    assert "more requests" in caught.value.hint


def test_alone_serves_one_at_a_time() -> None:
    result = run(alone(traffic(50.0)))
    assert (result.arrival_s[1:] >= result.finished_s[:-1]).all()
    assert result.ttft_s.max() == pytest.approx(PREFILL_S)


def test_at_rate_keeps_the_pattern() -> None:
    work = traffic()
    again = at_rate(work, 30.0)
    assert rate_of(again.arrival_s) == pytest.approx(30.0)
    assert np.corrcoef(np.diff(work.arrival_s), np.diff(again.arrival_s))[0, 1] == pytest.approx(1.0)


def test_an_open_frontier_rises() -> None:
    found = frontier(run, traffic(), [12.0, 1.0, 6.0], SLO)
    ttft = [point.metrics.latencies["ttft"] for point in found.points]
    assert [point.load for point in found.points] == [1.0, 6.0, 12.0]
    means = [item.mean for item in ttft if item is not None]
    assert means == sorted(means)


def test_a_closed_frontier_counts_clients() -> None:
    work = traffic(n=400).replace(concurrency=4)
    found = frontier(run, work, [1, 4, 16], SLO)
    rates = [point.metrics.requests_per_s for point in found.points]
    assert found.closed
    assert rates == sorted(rates)
    assert found.points[0].metrics.requests_per_s == pytest.approx(1 / (PREFILL_S + 49 * DECODE_S), rel=0.01)
