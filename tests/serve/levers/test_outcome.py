"""What a replica does with a set of levers, worked out by hand on the toy step model."""

from dataclasses import replace

import pytest
from tests.serve.levers.toys import Toy, llama, toy_setup, toy_site

from ridgeline.core.errors import InfeasibleError
from ridgeline.serve.levers.outcome import Load, evaluate, loaded, with_types

IDLE = Load(0.0, None)
STEP_64 = 0.010 + 64 * 1050 * 1e-8


def test_the_largest_rate_by_hand() -> None:
    """A prompt of 1,000 tokens takes 0.1 s; 100 tokens of 64 sequences take 100 steps."""
    found = evaluate(toy_setup(), toy_site(), Load(0.0, 2.5 / 3600))
    rate = 64 / (64 * 0.1 + 100 * STEP_64)
    assert found.sequences == 64
    assert found.max_rate == pytest.approx(rate)
    assert found.tokens_s_chip == pytest.approx(100 * rate)
    assert found.dollars == pytest.approx(2.5 / 3600 / (100 * rate) * 1e6)


def test_the_rate_sets_the_batch_and_the_waits() -> None:
    """At 5 requests/s half of the time goes to prompts: 10.3 ms a step become about 21, and 11 sequences decode."""
    found = evaluate(toy_setup(), toy_site(), Load(5.0, None))
    step = 0.010 + found.batch * 1050 * 1e-8
    assert found.batch == 11
    assert found.tpot_s == pytest.approx(step / 0.5)
    assert found.ttft_s == pytest.approx(0.1 + step + step / 2 + 5 * 0.1**2 / (2 * 0.5))


def test_above_the_largest_rate_there_is_no_ttft() -> None:
    found = evaluate(toy_setup(), toy_site(), Load(9.5, None))
    assert found.ttft_s is None
    assert found.max_rate < 9.5


def test_a_hit_is_not_computed() -> None:
    found = evaluate(toy_setup(hit_rate=0.4), toy_site(), IDLE)
    assert found.max_rate == pytest.approx(64 / (64 * 0.06 + 100 * STEP_64))


def test_a_tpot_limit_holds_the_batch() -> None:
    """Each sequence adds a prompt's 0.1 s to every 100 steps of the others: 15 ms allow 4 of them."""
    found = evaluate(toy_setup(tpot="15ms"), toy_site(), IDLE)
    step = 0.010 + 4 * 1050 * 1e-8
    assert found.max_rate == pytest.approx(4 / (4 * 0.1 + 100 * step))
    with pytest.raises(InfeasibleError, match="TPOT limit"):
        evaluate(toy_setup(tpot="5ms"), toy_site(), IDLE)


def test_pools_of_whole_replicas() -> None:
    """A prefill replica passes 10 requests a second, a decode replica 64/(100 steps): the smaller counts, for two."""
    setup = replace(toy_setup(), disaggregated=True)
    found = evaluate(setup, toy_site(), IDLE)
    assert found.max_rate == pytest.approx(min(10, 64 / (100 * STEP_64)) / 2)
    assert found.stall_s == pytest.approx(0.010 + found.batch * 1050 * 1e-8)


def test_a_cache_moves_between_pools() -> None:
    """1,000 tokens of 131,072 B at the production rate of 167 MB in 38.7 ms."""
    setup = replace(toy_setup(), disaggregated=True)
    slow = evaluate(setup, toy_site(), Load(1.0, None))
    fast = evaluate(
        replace(setup, traffic=setup.traffic.model_copy(update={"transfer": 1e15})), toy_site(), Load(1.0, None)
    )
    assert slow.ttft_s is not None
    assert fast.ttft_s is not None
    assert slow.ttft_s - fast.ttft_s == pytest.approx(131.072e6 / 167e6 * 0.0387, rel=1e-3)


def test_a_long_prompt_stalls_the_others_unless_chunked() -> None:
    setup = toy_setup(input_p95=8000, chunk=500)
    chunked, whole = evaluate(setup, toy_site(), IDLE), evaluate(replace(setup, chunked=False), toy_site(), IDLE)
    step = 0.010 + chunked.batch * 1050 * 1e-8
    assert chunked.stall_s == pytest.approx(step + 0.05)
    assert whole.stall_s == pytest.approx(step + 0.8)


def test_easy_queries_elsewhere() -> None:
    """Half of the queries at a fifth of the cost: 0.6 of it in all."""
    all_here = evaluate(toy_setup(), toy_site(), IDLE)
    routed = evaluate(replace(toy_setup(), easy=0.5, easy_cost=0.2), toy_site(), IDLE)
    assert routed.tokens_s_chip == pytest.approx(all_here.tokens_s_chip / 0.6)


def test_without_a_rate_the_usual_share_of_the_largest() -> None:
    setup = toy_setup()
    most = evaluate(setup, toy_site(), IDLE).max_rate
    assert loaded(setup, toy_site(), None).rate == pytest.approx(0.7 * most)
    assert loaded(toy_setup(rate=3), toy_site(), None).rate == 3


def test_a_cache_without_a_fused_kernel_is_read_no_faster() -> None:
    plain = with_types(toy_setup(), kv="fp8", fused=False)
    assert plain.deployment.kv == "fp8"
    assert plain.timed is not None
    assert plain.timed.kv == "bf16"
    assert with_types(toy_setup(), kv="fp8").timed is None
    both = with_types(plain, weights="fp8")
    assert both.timed is not None
    assert (both.timed.weights, both.timed.kv) == ("fp8", "bf16")


def test_no_room_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="room for one sequence"):
        evaluate(toy_setup(), toy_site(room=0.5), IDLE)


def test_the_engine_limits_the_batch() -> None:
    few = evaluate(toy_setup(max_sequences=8), toy_site(), IDLE)
    assert few.sequences == 64
    assert few.max_rate == pytest.approx(8 / (8 * 0.1 + 100 * (0.010 + 8 * 1050 * 1e-8)))


def test_a_faster_chip_is_cheaper() -> None:
    slow = evaluate(toy_setup(llama()), toy_site(Toy(weights=0.02)), IDLE)
    assert slow.tokens_s_chip < evaluate(toy_setup(), toy_site(), IDLE).tokens_s_chip


def test_lanes_share_the_replica() -> None:
    """Two data-parallel groups compute a prompt each: on the toy two prompts take twice as long as one."""
    two = evaluate(toy_setup(llama(dp_attention=2)), toy_site(), IDLE)
    assert two.max_rate == pytest.approx(evaluate(toy_setup(), toy_site(), IDLE).max_rate)
    staged = evaluate(toy_setup(llama(pp=2)), toy_site(), IDLE)
    assert staged.max_rate == pytest.approx(64 / (64 * 0.05 + 100 * STEP_64))
