"""Figures of a run: definitions, percentiles with their errors, goodput, energy; and laws that every run obeys."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.simulate.studies import DECODE_S, PREFILL_S, engine, load, table

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.engine.engine import Speculation
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.metrics import BATCHES, Power, Slo, counted, meets, metrics, parse_slo, spread
from ridgeline.serve.simulate.traffic.arrivals import gamma, poisson
from ridgeline.serve.simulate.traffic.workload import Workload


def test_alone_a_request_takes_the_sum_of_its_steps() -> None:
    found = metrics(simulate(load([0.0, 100.0, 200.0]), table(), engine()))
    ttft, tpot, e2e = (found.latencies[name] for name in ("ttft", "tpot", "e2e"))
    assert ttft is not None
    assert tpot is not None
    assert e2e is not None
    assert ttft.mean == pytest.approx(PREFILL_S)
    assert tpot.p99 == pytest.approx(DECODE_S)
    assert e2e.p50 == pytest.approx(PREFILL_S + 49 * DECODE_S)


@given(st.integers(0, 30), st.floats(0.5, 12.0))
def test_little(seed: int, rate: float) -> None:
    """What is in steps on average is the rate of arrivals times the time from the first step to the last."""
    times = poisson(rate, 120, np.random.default_rng(seed))
    result = simulate(load(times), table(), engine())
    in_steps = float((result.finished_s - result.scheduled_s).sum())
    assert result.preemptions.sum() == 0
    assert result.totals.sequence_s.sum() == pytest.approx(in_steps, rel=1e-6)
    busy = result.totals.busy_s.sum()
    assert metrics(result).batch == pytest.approx(in_steps / busy)


def test_the_same_seed_gives_the_same_figures() -> None:
    times = gamma(5.0, 2.0, 500, np.random.default_rng(3))
    drafts = engine(speculation=Speculation.of_length(3, 2.5))
    first, second = (metrics(simulate(load(times), table(), drafts, seed=4, record_steps=True)) for _ in range(2))
    assert first == second
    assert metrics(simulate(load(times), table(), drafts, seed=5, record_steps=True)) != first


def test_bursts_cost_several_times_the_first_token_at_equal_throughput() -> None:
    """inference-sim 818: Gamma arrivals with a CV of 3 gave 3.2 to 4.0 times the mean TTFT of Poisson ones."""
    found = []
    for cv in (1.0, 3.0):
        times = gamma(6.0, cv, 8000, np.random.default_rng(0))
        found.append(metrics(simulate(load(times), table(), engine()), warmup=0.05))
    calm, bursty = found
    assert bursty.requests_per_s == pytest.approx(calm.requests_per_s, rel=0.1)
    ttft = [item.latencies["ttft"] for item in found]
    assert ttft[0] is not None
    assert ttft[1] is not None
    assert 3.2 < ttft[1].mean / ttft[0].mean < 4.2


def test_with_speculation_gaps_are_longer_than_the_time_per_token() -> None:
    """sglang 12064: several tokens come at once, so the gap between steps is not the time per token."""
    drafts = engine(speculation=Speculation(3, (1.0, 1.0, 1.0)))
    found = metrics(simulate(load(np.arange(20.0), made=401), table(), drafts, record_steps=True))
    tpot = found.latencies["tpot"]
    assert tpot is not None
    assert found.itl is not None
    assert found.itl.mean == pytest.approx(4 * tpot.mean, rel=0.05)


def test_without_speculation_both_agree() -> None:
    found = metrics(simulate(load(np.arange(20.0) * 10), table(), engine(), record_steps=True))
    assert found.itl is not None
    assert found.itl.p50 == pytest.approx(DECODE_S)


def test_an_answer_of_one_token_has_no_time_per_token_and_misses_no_limit_on_it() -> None:
    result = simulate(load([0.0, 50.0], made=1), table(), engine())
    found = metrics(result, {"": Slo(tpot_s=1e-9)})
    assert found.latencies["tpot"] is None
    assert found.goodput is not None
    assert found.goodput.share == 1.0


def test_goodput_wants_both_limits() -> None:
    result = simulate(load([0.0, 0.0, 0.0, 100.0]), table(), engine(max_num_batched_tokens=1000))
    late = Slo(ttft_s=PREFILL_S * 1.01)
    assert meets(result, late).tolist() == [True, False, False, True]
    both = Slo(ttft_s=PREFILL_S * 1.01, tpot_s=DECODE_S * 1.001)
    assert meets(result, both).tolist() == [False, False, False, True]
    found = metrics(result, {"": both})
    assert found.goodput is not None
    assert found.goodput.share == 0.25
    assert not found.goodput.met
    assert found.goodput.requests_per_s == pytest.approx(1 / result.makespan_s)


def test_each_class_by_its_own_limit() -> None:
    work = load([0.0, 50.0, 100.0, 150.0], classes=("fast", "slow"), service=np.array([0, 1, 0, 1]))
    slos = {"fast": Slo(ttft_s=PREFILL_S / 2), "": Slo(ttft_s=1.0)}
    found = metrics(simulate(work, table(), engine()), slos)
    assert {name: item.share for name, item in found.by_class.items()} == {"fast": 0.0, "slow": 1.0}
    assert found.goodput is not None
    assert (found.goodput.share, found.goodput.met) == (0.5, False)


def test_unserved_requests_miss_the_slo() -> None:
    found = metrics(simulate(load([0.0, 1.0, 2.0]), table(), engine(max_context=100)), {"": Slo(ttft_s=1.0)})
    assert (found.unserved, found.requests_per_s) == (3, 0.0)
    assert found.goodput is not None
    assert found.goodput.share == 0.0
    assert found.latencies["ttft"] is None


def test_warm_up_leaves_out_the_first_arrivals() -> None:
    result = simulate(load(np.arange(10.0)), table(), engine())
    assert counted(result, 0.3).tolist() == [False] * 3 + [True] * 7
    assert metrics(result, warmup=0.3).requests == 7
    assert counted(result).all()
    with pytest.raises(InputError, match="share from 0"):
        counted(result, 1.0)


def test_a_closed_loop_leaves_out_its_start() -> None:
    """Four clients send at once: their first prompts wait for each other, the later ones hardly do."""
    answers = np.random.default_rng(0).integers(20, 400, 200)
    work = load(np.zeros(200), concurrency=4).replace(output_tokens=answers)
    result = simulate(work, table(), engine(max_num_batched_tokens=1000))
    found, whole = metrics(result), metrics(result, warmup=0.0)
    assert found.requests == 192
    assert found.latencies["ttft"] is not None
    assert whole.latencies["ttft"] is not None
    assert found.latencies["ttft"].p99 < 0.9 * whole.latencies["ttft"].p99
    assert metrics(simulate(load(np.zeros(6), concurrency=4), table(), engine())).requests == 3


def test_the_error_of_a_mean_covers_it_four_times_in_five() -> None:
    random = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        item = spread(random.exponential(1.0, 2000))
        assert item is not None
        inside += abs(item.mean - 1.0) <= item.error["mean"]
    assert 0.74 < inside / 300 < 0.86


def test_a_percentile_with_too_few_beyond_it_has_no_error() -> None:
    item = spread(np.random.default_rng(0).random(40 * BATCHES))
    assert item is not None
    assert set(item.error) == {"mean", "p50"}
    assert spread(np.array([np.nan, np.nan])) is None


def test_energy_of_busy_and_idle_chips() -> None:
    result = simulate(load([0.0, 100.0]), table(), engine(replicas=2))
    busy = float(result.totals.busy_s.sum())
    idle = 2 * result.makespan_s - busy
    assert Power(700.0, 100.0).joules(result, 8) == pytest.approx(8 * (700 * busy + 100 * idle))
    assert Power(700.0, 700.0).joules(result, 8) == pytest.approx(8 * 700 * 2 * result.makespan_s)


@pytest.mark.parametrize(
    ("text", "slo"),
    [
        ("ttft=1s,tpot=50ms", Slo(1.0, 0.05)),
        ("tpot=50ms", Slo(math.inf, 0.05)),
        (" ttft = 2s , at=95% ", Slo(2.0, at=0.95)),
    ],
)
def test_an_slo_as_people_type_it(text: str, slo: Slo) -> None:
    found = parse_slo(text)
    assert (found.ttft_s, found.tpot_s, found.at) == pytest.approx((slo.ttft_s, slo.tpot_s, slo.at))


@pytest.mark.parametrize(
    "text", ["", "at=99", "ttft", "ttft=fast", "ttft=-1s", "latency=1s", "ttft=1s,at=0", "ttft=1s,at=101"]
)
def test_an_slo_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_slo(text)


def test_words() -> None:
    assert Slo(1.0, 0.05, 0.95).words == "ttft 1.00 s, tpot 50.0 ms for 95%"


def test_counts_of_preemption_and_recomputation() -> None:
    tight = engine(kv_blocks=200, max_num_seqs=8)
    found = metrics(simulate(load(np.zeros(8), given=400, made=400), table(), tight))
    assert found.preemptions > 0
    assert found.recomputed > 0
    assert found.kv_peak > 0.9
    roomy = metrics(simulate(load(np.zeros(8), given=400, made=400), table(), engine()))
    assert (roomy.preemptions, roomy.recomputed) == (0, 0.0)


def test_hits_are_of_prompt_tokens() -> None:
    hashes = np.tile(np.arange(62), 2)
    work = Workload(np.array([0.0, 50.0]), np.array([1000, 1000]), np.array([5, 5]), hashes=hashes,
                    hash_offsets=np.array([0, 62, 124]), hash_tokens=16)  # fmt: skip
    found = metrics(simulate(work, table(), engine()))
    assert found.hit_rate == pytest.approx(62 * 16 / 2000)
