"""Ranks beside each other: who is late and what it costs, clocks and what holds them, links, errors."""

from pathlib import Path

import numpy as np
import pytest
from tests.trace.logs import sampled, samples, step_log
from tests.trace.synthetic import Table
from tests.trace.traces import steady_rank

from ridgeline.trace.events import Run
from ridgeline.trace.levels.devices import device_states
from ridgeline.trace.levels.l0 import run_buckets
from ridgeline.trace.levels.l1 import collectives
from ridgeline.trace.levels.l4 import RankSpread, quantities, rank_spread
from ridgeline.trace.read import read_run

US = 1000


def job(delays_us: list[list[int]], *, steps: int = 4, calls: int = 6) -> Run:
    """Ranks that compute 1 ms and meet in an all-reduce, ``calls`` times a step.

    ``delays_us[rank][call]`` is how much later a rank starts the call; the call ends 100 us after the last.
    """
    ranks = len(delays_us)
    tables = [Table(rank=i, world=ranks) for i in range(ranks)]
    now = 0
    for step in range(steps):
        begin = now
        for call in range(calls):
            late = [delays[(step * calls + call) % len(delays)] * US for delays in delays_us]
            end = now + 1000 * US + max(late) + 100 * US
            for i, table in enumerate(tables):
                table.work("gemm", now + 1, 1000 * US - 1, launch=now)
                start = now + 1000 * US + late[i]
                table.comm(start, end - start, size=ranks, launch=start - 500, seq=step * calls + call)
            now = end
        for table in tables:
            table.step(step, begin, now - begin)
    return Run(tuple(table.build() for table in tables), (0,) * ranks, 0)


def spread(run: Run) -> RankSpread:
    found = rank_spread(buckets=run_buckets(run), collectives=collectives(run))
    assert found is not None
    return found


def test_a_straggler_and_what_it_costs() -> None:
    found = spread(job([[0], [500], [10], [0]]))
    assert found.basis == "collectives"
    assert [rank.verdict for rank in found.ranks] == ["even", "straggler", "even", "even"]
    late = found.ranks[1]
    assert (late.last, late.calls) == (24, 24)
    assert late.cost_s == pytest.approx(6 * 490e-6, rel=1e-6)
    assert late.late_s == pytest.approx(6 * 490e-6, rel=1e-6)
    assert "gap" in late.reason
    assert found.wait_s == pytest.approx(6 * (500 + 490 + 500) / 4 * 1e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("delays", "exposed_s", "cost_s"),
    [
        ([[0], [10], [0], [500]], 4e-3, 4e-3),  # its own time says more than the calls
        ([[0], [10], [0], [500]], 2e-3, 6 * 490e-6),
        ([[0, 0], [0, 0], [0, 0], [400, 390], [390, 400]], 4e-3, 3 * 400e-6),  # two: who has which part is not known
    ],
)
def test_the_cost_of_a_single_straggler_is_at_least_its_own_time(
    delays: list[list[int]], exposed_s: float, cost_s: float
) -> None:
    exposed = [exposed_s if i != 3 else 0.0 for i in range(len(delays))]
    ranks = [steady_rank(0.02, label=f"rank{i}", exposed_comm=seconds) for i, seconds in enumerate(exposed)]
    found = rank_spread(buckets=ranks, collectives=collectives(job(delays)))
    assert found is not None
    assert found.ranks[3].verdict == "straggler"
    assert found.ranks[3].cost_s == pytest.approx(cost_s, rel=1e-6)


def test_two_stragglers_share_their_cost() -> None:
    found = spread(job([[0, 0], [0, 0], [0, 0], [400, 390], [390, 400]]))
    assert [rank.label for rank in found.judged("straggler")] == ["rank3", "rank4"]
    assert sum(rank.cost_s for rank in found.ranks) == pytest.approx(6 * 400e-6, rel=1e-6)


def test_ranks_that_take_turns_are_even() -> None:
    random = np.random.default_rng(3)
    for _ in range(10):
        found = spread(job([list(row) for row in random.integers(0, 300, (4, 24))]))
        assert {rank.verdict for rank in found.ranks} == {"even"}


def test_a_single_late_call_is_no_straggler() -> None:
    found = spread(job([[0] * 24, [5000] + [0] * 23, [1] * 24]))
    assert found.judged("straggler") == ()


def test_starts_closer_than_the_clocks_agree_have_no_order() -> None:
    run = job([[0], [500], [10]])
    found = spread(Run(run.ranks, run.offset_ns, 600 * US))
    assert found.judged("straggler") == ()
    assert "24 calls start closer together" in found.notes[0]


def test_without_collectives_own_time_decides() -> None:
    ranks = [steady_rank(1.0, label=f"rank{i}", exposed_comm=0.3 if i != 2 else 0.1) for i in range(4)]
    found = rank_spread(buckets=ranks)
    assert found is not None
    assert found.basis == "own time"
    assert [rank.verdict for rank in found.ranks] == ["even", "even", "straggler", "even"]
    assert found.ranks[2].cost_s == pytest.approx(0.2)
    assert found.own_spread == pytest.approx(0.9 / 0.7 - 1)
    assert "200 ms per step more compute" in found.ranks[2].reason


def test_logs_alone() -> None:
    logs = [step_log(np.full(30, 1.2 if i == 1 else 1.0), rank=i) for i in range(3)]
    found = rank_spread(logs=logs)
    assert found is not None
    assert found.basis == "step logs"
    assert found.ranks[1].cost_s == pytest.approx(0.2)
    assert found.ranks[1].step_s == pytest.approx(1.2)


def test_one_rank_is_no_spread() -> None:
    assert rank_spread() is None
    assert rank_spread(logs=[step_log(np.ones(30))]) is None
    assert rank_spread(buckets=[steady_rank(1.0)]) is None


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ({"clock_reasons": [0, 0x20, 0, 0]}, "throttled by heat"),
        ({"clock_reasons": [0, 0x4, 0, 0]}, "at the power limit"),
        ({"clock_reasons": [0, 0, 0, 0]}, "low clock"),
        ({"thermal_violation": [0, 1, 0, 0]}, "throttled by heat"),
        ({"power_violation_pct": [0, 40, 0, 0], "thermal_violation": [0, 0, 0, 0]}, "at the power limit"),
        ({"power_w": [500, 699, 500, 500], "power_limit_w": [700] * 4}, "at the power limit"),
        ({"temp_c": [60, 88, 61, 62], "power_w": [500] * 4}, "throttled by heat"),
        ({}, "low clock"),
    ],
)
def test_what_holds_a_clock_down(columns: dict[str, list[float]], verdict: str) -> None:
    found = rank_spread(samples=[samples(sm_clock_mhz=[1980, 1500, 1980, 1975], **columns)])
    assert found is not None
    assert [rank.verdict for rank in found.ranks] == ["even", verdict, "even", "even"]
    assert "1500 MHz under load, 76% of the best" in found.ranks[1].reason
    assert found.clock_rank == "rank1"
    assert [found.clock_mhz, found.reference_mhz] == pytest.approx([1500, 1980])
    assert found.clock_s is None


def test_heat_at_full_clock_is_no_throttling() -> None:
    found = rank_spread(samples=[samples(temp_c=[60, 88, 61, 62], clock_reasons=[0, 0x20, 0, 0])])
    assert found is not None
    assert {rank.verdict for rank in found.ranks} == {"even"}


def test_the_limit_of_the_device_serves_where_none_was_sampled() -> None:
    host = samples(sm_clock_mhz=[1980, 1500, 1980, 1980], power_w=[500, 695, 500, 500])
    known, unknown = rank_spread(samples=[host], power_limit_w=700), rank_spread(samples=[host])
    assert known is not None
    assert unknown is not None
    assert (known.ranks[1].verdict, unknown.ranks[1].verdict) == ("at the power limit", "low clock")


def test_the_clock_costs_compute() -> None:
    ranks = [steady_rank(1.0, label=f"rank{i}", exposed_comm=0.2) for i in range(4)]
    found = rank_spread(buckets=ranks, samples=[samples(sm_clock_mhz=[2000, 1600, 2000, 2000])])
    assert found is not None
    assert found.clock_s == pytest.approx(0.8 * 0.2)
    assert quantities(found)["ranks.clock_cost"].value == found.clock_s


def test_idle_samples_do_not_count() -> None:
    idle = np.arange(160) >= 80
    clock, busy = np.where(idle, 210.0, 1980.0), np.where(idle, 0.0, 99.0)
    found = device_states([sampled({"sm_clock_mhz": clock, "sm_pct": busy})])
    assert [d.clock_mhz for d in found] == [1980] * 4
    assert [d.samples for d in found] == [20] * 4


def test_hosts_follow_each_other() -> None:
    labels = [step_log(np.ones(30), rank=i) for i in range(8)]
    found = rank_spread(logs=labels, samples=[samples(), samples(sm_clock_mhz=[1980, 1980, 1500, 1980])])
    assert found is not None
    assert [rank.label for rank in found.judged("low clock")] == ["rank6"]
    device = found.ranks[6].device
    assert device is not None
    assert (device.host, device.gpu) == (1, 2)


def test_a_join_that_does_not_fit_is_noted() -> None:
    found = rank_spread(logs=[step_log(np.ones(30), rank=i) for i in range(2)], samples=[samples()])
    assert found is not None
    assert found.notes[-1].startswith("4 devices were sampled for 2 ranks")


def test_a_slow_link() -> None:
    found = rank_spread(samples=[samples(nvlink_rx_mb_s=[300e3, 290e3, 150e3, 305e3])])
    assert found is not None
    assert [rank.verdict for rank in found.ranks] == ["even", "even", "slow link", "even"]
    assert "nvlink rx at 51% of its host's median" in found.ranks[2].reason


def test_errors_are_what_counters_grew_by() -> None:
    steps = np.repeat(np.arange(40.0), 4)
    only = np.tile([0.0, 0.0, 1.0, 0.0], 40)
    values = {"pcie_errors": 1000 + steps * only, "sbe_errors": np.full(160, 7.0), "xid": 79 * only}
    found = rank_spread(samples=[sampled(values)])
    assert found is not None
    assert [rank.verdict for rank in found.ranks] == ["even", "even", "errors", "even"]
    assert found.ranks[2].device is not None
    assert found.ranks[2].device.errors == {"pcie_errors": 39, "xid 79": 1}


@pytest.mark.data
def test_rank_1_of_the_public_set_is_the_cause(data_dir: Path) -> None:
    run = read_run(sorted((data_dir / "trace" / "gpt_8xh100").glob("*.json.gz")))
    found = spread(run)
    (late,) = found.judged("straggler")
    assert late.label == "rank1"
    assert late.calls == 56
    assert late.cost_s == pytest.approx(6.1e-3, rel=0.05)
    assert "framework gap" in late.reason
