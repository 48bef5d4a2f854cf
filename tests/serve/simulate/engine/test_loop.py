"""What must hold of any simulation, and cases small enough to work out by hand."""

import os
import subprocess
import sys
import time
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.serve.simulate.grids import a_table, a_workload, constant_table, engines, workloads

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.engine.engine import Engine, Pools, Speculation
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.engine.policy import schedulers
from ridgeline.serve.simulate.engine.result import NO_MEMORY, OVER_BUDGET, SERVED, TOO_LONG
from ridgeline.serve.simulate.traffic.workload import Workload

TABLE = a_table()
STEP_S = 0.01
CONSTANT = constant_table(STEP_S)


@hypothesis.settings(max_examples=300)
@hypothesis.given(workload=workloads(most=25), engine=engines(), seed=st.integers(0, 5))
def test_what_goes_in_comes_out(workload: Workload, engine: Engine, seed: int) -> None:
    result = simulate(workload, TABLE, engine, seed, record_steps=True)
    steps, totals = result.steps, result.totals
    assert steps is not None
    assert (result.emitted == workload.output_tokens).all()
    assert (result.free_blocks == engine.kv_blocks).all()
    assert (steps.tokens <= engine.max_num_batched_tokens).all()
    assert ((steps.blocks >= 0) & (steps.blocks <= engine.kv_blocks)).all()
    assert (steps.waiting >= 0).all()
    assert (np.diff(steps.start_s) >= 0).all()
    assert (steps.decodes <= engine.max_num_seqs).all()
    assert totals.steps.sum() == len(steps)
    assert totals.prompt_tokens.sum() == steps.prompt_tokens.sum()
    assert totals.prompt_tokens.sum() + totals.decode_tokens.sum() == steps.tokens.sum()
    assert (result.arrival_s <= result.scheduled_s).all()
    assert (result.scheduled_s < result.first_token_s).all()
    assert (result.first_token_s <= result.finished_s).all()
    if not workload.closed:
        np.testing.assert_array_equal(result.arrival_s, workload.arrival_s)


@hypothesis.settings(max_examples=150)
@hypothesis.given(workload=workloads(most=25), engine=engines())
def test_tokens_of_prompts_and_hits_add_up(workload: Workload, engine: Engine) -> None:
    result = simulate(workload, TABLE, engine)
    computed = int(result.totals.prompt_tokens.sum() + result.hit_tokens.sum())
    assert computed >= workload.input_tokens.sum()
    if not result.preemptions.any():
        assert computed == workload.input_tokens.sum()


@hypothesis.settings(max_examples=150)
@hypothesis.given(workload=workloads(most=25), engine=engines(), seed=st.integers(0, 5))
def test_the_same_seed_gives_the_same_run(workload: Workload, engine: Engine, seed: int) -> None:
    once, again = simulate(workload, TABLE, engine, seed), simulate(workload, TABLE, engine, seed)
    np.testing.assert_array_equal(once.finished_s, again.finished_s)


@hypothesis.settings(max_examples=150)
@hypothesis.given(workload=workloads(most=25), engine=engines())
def test_first_come_first_scheduled_within_a_rank(workload: Workload, engine: Engine) -> None:
    hypothesis.assume(engine.workers == 1)
    result = simulate(workload, TABLE, engine)
    ranks = workload.priority if engine.by_priority else np.zeros(len(workload))
    for rank in np.unique(ranks):
        assert (np.diff(result.scheduled_s[ranks == rank]) >= 0).all()


def test_one_request_takes_one_step_for_its_prompt_and_one_per_further_token() -> None:
    result = simulate(a_workload([1.0], [20], [5]), CONSTANT, Engine(kv_blocks=100))
    assert result.ttft_s[0] == pytest.approx(STEP_S)
    assert result.e2e_s[0] == pytest.approx(5 * STEP_S)
    assert result.tpot_s[0] == pytest.approx(STEP_S)
    assert result.makespan_s == pytest.approx(5 * STEP_S)
    assert result.totals.steps.tolist() == [5]


def test_a_prompt_is_cut_to_what_decodes_leave_of_the_budget() -> None:
    engine = Engine(kv_blocks=100, max_num_batched_tokens=10)
    result = simulate(a_workload([0.0, 0.0], [5, 25], [9, 2]), CONSTANT, engine, record_steps=True)
    assert result.steps is not None
    assert result.steps.prompt_tokens.tolist()[:4] == [10, 9, 9, 2]
    assert result.ttft_s == pytest.approx([STEP_S, 4 * STEP_S])


@pytest.mark.parametrize(
    ("scheduler", "first", "second"),
    [
        ("vllm", [1, 10], [4, 5]),  # the second prompt rides with the third decode
        ("sglang", [1, 11], [4, 5]),  # the second prompt has a step of its own
        ("prefill-first", [1, 11], [4, 5]),
        ("orca", [1, 10], [4, 5]),
        ("static", [1, 10], [11, 12]),  # the second waits for the first batch
    ],
)
def test_schedulers_order_the_steps(scheduler: str, first: list[int], second: list[int]) -> None:
    workload = a_workload([0.0, 2.5 * STEP_S], [20, 20], [10, 2])
    result = simulate(workload, CONSTANT, Engine(kv_blocks=100, scheduler=scheduler))
    ends = np.stack([result.first_token_s, result.finished_s], axis=1) / STEP_S
    np.testing.assert_allclose(ends, [first, second])


def test_static_batches_hold_their_blocks_to_the_end() -> None:
    workload = a_workload([0.0, 0.0], [16, 16], [1, 30])
    result = simulate(workload, CONSTANT, Engine(kv_blocks=100, scheduler="static"), record_steps=True)
    assert result.steps is not None
    assert set(result.steps.blocks.tolist()) == {1 + 3}
    assert result.steps.decodes.tolist()[1:] == [2] * 29
    assert result.finished_s == pytest.approx([STEP_S, 30 * STEP_S])


def test_orca_reserves_the_whole_answer() -> None:
    workload = a_workload([0.0, 0.0], [16, 16], [17, 17])
    few, more = (simulate(workload, CONSTANT, Engine(kv_blocks=n, scheduler="orca")) for n in (3, 4))
    assert few.queueing_s == pytest.approx([0.0, 17 * STEP_S])
    assert more.queueing_s == pytest.approx([0.0, 0.0])


def test_the_last_one_in_is_preempted_and_computed_again() -> None:
    # 3 blocks of 4: both prompts take one each; the third goes to the first request at its second decode.
    workload = a_workload([0.0, 0.0], [4, 4], [6, 3])
    engine = Engine(kv_blocks=3, block_size=4)
    result = simulate(workload, CONSTANT, engine, record_steps=True)
    assert result.preemptions.tolist() == [0, 1]
    assert result.steps is not None
    # The second comes back when the first has left, with 4 + 1 tokens to compute.
    assert result.steps.prompt_tokens.tolist() == [8, 0, 0, 0, 0, 0, 5, 0]
    assert result.finished_s == pytest.approx([6 * STEP_S, 8 * STEP_S])
    assert result.longest_gap_s == pytest.approx([STEP_S, 6 * STEP_S])


def test_a_prompt_waits_until_all_of_it_fits_unless_told_otherwise() -> None:
    workload = a_workload([0.0, 0.0], [4, 12], [4, 1])
    whole, chunk = (
        simulate(workload, CONSTANT, Engine(kv_blocks=3, block_size=4, max_num_batched_tokens=8, whole_prompt=flag))
        for flag in (True, False)
    )
    assert whole.queueing_s == pytest.approx([0.0, 4 * STEP_S])
    assert chunk.queueing_s == pytest.approx([0.0, 0.0])


def test_swapping_keeps_what_was_computed_and_takes_its_bytes() -> None:
    workload = a_workload([0.0, 0.0], [4, 4], [6, 3])
    engine = Engine(kv_blocks=3, block_size=4, preemption="swap", swap_bytes_per_s=1e3, kv_bytes_per_token=1.0)
    result = simulate(workload, CONSTANT, engine, record_steps=True)
    assert result.preemptions.tolist() == [0, 1]
    assert result.totals.swap_s.sum() == pytest.approx(2 * 4 * 1e-3)  # 4 computed tokens, out and in
    assert result.totals.prompt_tokens.sum() == 8
    assert result.finished_s == pytest.approx([6 * STEP_S + 4e-3, 8 * STEP_S + 8e-3])


def test_priority_goes_first_and_is_preempted_last() -> None:
    workload = a_workload([0.0, 0.0, 0.0], [4, 4, 4], [6, 3, 3], priority=np.array([2, 1, 0]))
    result = simulate(workload, CONSTANT, Engine(kv_blocks=100, block_size=4, max_num_seqs=1, by_priority=True))
    assert np.argsort(result.scheduled_s).tolist() == [2, 1, 0]
    tight = Engine(kv_blocks=3, block_size=4, by_priority=True)
    pushed = simulate(workload.take([0, 2]), CONSTANT, tight)
    assert pushed.preemptions.tolist() == [1, 0]


def test_a_cached_prompt_still_computes_its_last_block() -> None:
    shared = {"hashes": np.array([7, 8, 7, 8]), "hash_offsets": np.array([0, 2, 4]), "hash_tokens": 16}
    workload = a_workload([0.0, 1.0], [32, 32], [2, 2], **shared)
    result = simulate(workload, CONSTANT, Engine(kv_blocks=100), record_steps=True)
    assert result.hit_tokens.tolist() == [0, 16]
    assert result.hit_rate == pytest.approx(0.25)
    assert result.totals.prompt_tokens.sum() == 32 + 16
    off = simulate(workload, CONSTANT, Engine(kv_blocks=100, prefix_cache=False))
    assert off.hit_tokens.tolist() == [0, 0]


def test_cached_blocks_leave_least_recently_used_first() -> None:
    def asked(*stories: int) -> Workload:
        hashes = np.array([10 * story + j for story in stories for j in range(2)])
        offsets = np.arange(len(stories) + 1) * 2
        more = {"hashes": hashes, "hash_offsets": offsets, "hash_tokens": 4}
        return a_workload([float(i) for i in range(len(stories))], [9] * len(stories), [1] * len(stories), **more)

    engine = Engine(kv_blocks=5, block_size=4)  # two stories do not fit: 3 + 3 blocks
    assert simulate(asked(1, 1), CONSTANT, engine).hit_tokens.tolist() == [0, 8]
    # The second story takes the two unused blocks and the third block of the first, which holds no prompt block.
    assert simulate(asked(1, 2, 1), CONSTANT, engine).hit_tokens.tolist() == [0, 0, 8]
    # A third one pushes out the end of the first story before its beginning.
    assert simulate(asked(1, 2, 3, 1), CONSTANT, engine).hit_tokens.tolist()[-1] < 8


def test_speculation_emits_what_is_accepted() -> None:
    workload = a_workload([0.0], [10], [13])
    sure = Engine(kv_blocks=100, speculation=Speculation(3, (1.0, 1.0, 1.0)))
    never = Engine(kv_blocks=100, speculation=Speculation(3, (0.0, 0.0, 0.0), draft_step_s=1e-3))
    assert simulate(workload, CONSTANT, sure).finished_s[0] == pytest.approx((1 + 3) * STEP_S)
    slow = simulate(workload, CONSTANT, never)
    assert slow.finished_s[0] == pytest.approx(13 * STEP_S + 12 * 3e-3)
    assert slow.totals.decode_tokens.sum() == 12 * 4


def test_speculation_draws_the_stated_length() -> None:
    workload = a_workload([0.0] * 200, [10] * 200, [400] * 200)
    speculation = Speculation.of_length(4, 2.8)
    assert speculation.length == pytest.approx(2.8)
    result = simulate(workload, CONSTANT, Engine(kv_blocks=10_000, speculation=speculation), seed=1)
    decodes = result.totals.decode_tokens.sum() / 5
    assert (399 * 200) / decodes == pytest.approx(2.8, rel=0.02)


def test_pools_prefill_here_and_decode_there() -> None:
    pools = Pools(1, 1, bandwidth_bytes_per_s=1e3, latency_s=0.5)
    engine = Engine(kv_blocks=100, kv_bytes_per_token=10.0, pools=pools)
    result = simulate(a_workload([0.0, 0.0], [20, 10], [3, 1]), CONSTANT, engine)
    assert result.first_token_s == pytest.approx([STEP_S, STEP_S])
    assert result.finished_s == pytest.approx([STEP_S + 0.5 + 0.2 + 2 * STEP_S, STEP_S])
    assert result.worker.tolist() == [1, 0]
    assert result.totals.steps.tolist() == [1, 2]


def test_prefill_stages_overlap_successive_chunks() -> None:
    workload = a_workload([0.0], [40], [2])

    def first_token_s(stages: int) -> float:
        pools = Pools(1, 1, 1e9, prefill_stages=stages)
        engine = Engine(kv_blocks=100, max_num_batched_tokens=10, kv_bytes_per_token=1.0, pools=pools)
        return float(simulate(workload, CONSTANT, engine).first_token_s[0])

    assert first_token_s(1) == pytest.approx(4 * STEP_S)
    assert first_token_s(4) == pytest.approx((4 + 3) / 4 * STEP_S)


@pytest.mark.parametrize(
    ("routing", "workers"),
    [("round-robin", [0, 1, 0, 1]), ("least-loaded", [0, 1, 1, 1]), ("prefix", [0, 1, 1, 0])],
)
def test_routing(routing: str, workers: list[int]) -> None:
    hashes = {"hashes": np.array([1, 2, 3, 4, 5, 1, 2]), "hash_offsets": np.array([0, 2, 3, 5, 7]), "hash_tokens": 16}
    workload = a_workload([0.0, 0.0, 0.0, 0.005], [40, 16, 32, 40], [40, 4, 4, 20], **hashes)
    engine = Engine(kv_blocks=100, replicas=2, routing=routing)
    assert simulate(workload, CONSTANT, engine).worker.tolist() == workers


def test_random_routing_follows_the_seed() -> None:
    workload = a_workload([0.0] * 400, [10] * 400, [2] * 400)
    engine = Engine(kv_blocks=1000, replicas=4, routing="random")
    once, other = (simulate(workload, CONSTANT, engine, seed).worker for seed in (0, 1))
    assert np.bincount(once, minlength=4).min() > 60
    assert (once != other).any()


def test_a_closed_loop_sends_the_next_when_the_last_is_done() -> None:
    workload = a_workload([0.0] * 3, [10] * 3, [4] * 3, concurrency=1, think_s=0.5)
    result = simulate(workload, CONSTANT, Engine(kv_blocks=100))
    assert result.arrival_s == pytest.approx([0.0, 0.54, 1.08])
    pair = simulate(workload.replace(concurrency=2), CONSTANT, Engine(kv_blocks=100))
    assert pair.arrival_s == pytest.approx([0.0, 0.0, 0.54])


def test_what_can_never_be_served_is_listed() -> None:
    workload = a_workload([0.0, 0.0, 0.0, 0.0], [100, 5, 60, 21], [5, 2, 5, 5])
    engine = Engine(kv_blocks=5, scheduler="orca", max_num_batched_tokens=20, max_num_seqs=4, max_context=90)
    result = simulate(workload, CONSTANT, engine)
    assert result.status.tolist() == [TOO_LONG, SERVED, OVER_BUDGET, OVER_BUDGET]
    assert list(result.rejected().values()) == [[0], [2, 3]]
    assert np.isnan(result.finished_s).tolist() == [True, False, True, True]
    nothing = simulate(workload.take([0]), CONSTANT, Engine(kv_blocks=5, max_num_seqs=4))
    assert nothing.status.tolist() == [NO_MEMORY]
    assert nothing.makespan_s == 0.0
    assert nothing.hit_rate == 0.0
    barely = simulate(a_workload([0.0], [60], [21]), CONSTANT, Engine(kv_blocks=5))
    assert barely.served.all(), "the last token of an answer needs no room in the cache"


def test_a_log_grows_as_long_as_the_run() -> None:
    workload = a_workload([0.0], [10], [150_000])
    result = simulate(workload, CONSTANT, Engine(kv_blocks=10_000), record_steps=True)
    assert result.steps is not None
    assert len(result.steps) == 150_000
    assert simulate(workload, CONSTANT, Engine(kv_blocks=10_000)).steps is None


def test_hashes_of_other_block_sizes_are_refused() -> None:
    workload = a_workload([0.0], [40], [2], hashes=np.array([1, 2]), hash_offsets=np.array([0, 2]), hash_tokens=24)
    with pytest.raises(InputError, match="block size that divides 24"):
        simulate(workload, CONSTANT, Engine(kv_blocks=100))


def test_every_scheduler_says_what_it_does() -> None:
    assert set(schedulers()) >= {"vllm", "sglang", "prefill-first", "orca", "static"}
    assert all(policy.about for policy in schedulers().values())


def test_machine_code_is_optional_and_lazy(tmp_path: Path) -> None:
    # A folder that cannot be made: a file stands in its way.
    (tmp_path / "file").write_text("")
    code = (
        "import sys, ridgeline, ridgeline.serve.simulate.engine.loop\n"
        "assert 'numba' not in sys.modules\n"
        "from ridgeline.serve.simulate.kernel.cost import place\n"
        "import numpy as np\n"
        "print(place(np.array([[0.0, 4.0]]), 0, 2, 1.0))\n"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(0, 0.25)"


@pytest.mark.data
def test_a_public_trace_runs_fast_and_loses_nothing(data_dir: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = polars.read_parquet(data_dir / "serve" / "traces" / "azure2023_conv.parquet")
    workload = Workload(rows["arrival_s"].to_numpy(), rows["input_tokens"].to_numpy(), rows["output_tokens"].to_numpy())
    engine = Engine(kv_blocks=20_000)
    took = []
    for _ in range(3):
        begun = time.process_time()
        result = simulate(workload, TABLE, engine)
        took.append(time.process_time() - begun)
    assert (result.emitted == workload.output_tokens).all()
    assert result.free_blocks.tolist() == [20_000]
    computed = int(result.totals.prompt_tokens.sum())
    assert computed == workload.input_tokens.sum() or result.preemptions.any()
    # Half of what is promised: the machine is shared.
    assert len(workload) / min(took) > 50_000
