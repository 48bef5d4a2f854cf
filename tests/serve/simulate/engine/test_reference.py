"""The compiled loop and its plain twin agree to the last bit, whatever the options."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.serve.simulate.grids import a_table, engines, workloads

from ridgeline.serve.simulate.engine import reference
from ridgeline.serve.simulate.engine.engine import Engine, Pools, Speculation
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.traffic.workload import Workload

TABLE = a_table()


def assert_agree(workload: Workload, engine: Engine, seed: int) -> None:
    fast = simulate(workload, TABLE, engine, seed)
    assert fast.served.all()
    slow = reference.simulate(workload, TABLE, engine, seed)
    for name in reference.Times.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)


@hypothesis.settings(max_examples=300)
@hypothesis.given(workload=workloads(), engine=engines(), seed=st.integers(0, 5))
def test_twins_agree(workload: Workload, engine: Engine, seed: int) -> None:
    assert_agree(workload, engine, seed)


@pytest.mark.parametrize("scheduler", ["vllm", "sglang", "prefill-first", "orca", "static"])
@pytest.mark.parametrize("hashed", [False, True])
def test_twins_agree_under_pressure(scheduler: str, hashed: bool) -> None:
    from tests.serve.simulate.grids import shared_prefixes

    rng = np.random.default_rng(7)
    inputs, outputs = rng.integers(1, 60, 150), rng.integers(1, 40, 150)
    workload = Workload(
        np.cumsum(rng.exponential(0.02, 150)), inputs, outputs, **(shared_prefixes(rng, inputs, 8) if hashed else {})
    )
    engine = Engine(kv_blocks=40, scheduler=scheduler, max_num_seqs=12, max_num_batched_tokens=100, block_size=4)
    assert_agree(workload, engine, 0)
    if scheduler == "vllm":
        assert simulate(workload, TABLE, engine).preemptions.sum() > 10


def test_twins_agree_with_everything_on() -> None:
    rng = np.random.default_rng(8)
    workload = Workload(np.cumsum(rng.exponential(0.01, 200)), rng.integers(1, 60, 200), rng.integers(1, 40, 200))
    engine = Engine(
        kv_blocks=45,
        max_num_seqs=8,
        max_num_batched_tokens=64,
        block_size=4,
        kv_bytes_per_token=1e3,
        pools=Pools(2, 3, 1e6, 0.002, 4),
        routing="random",
        speculation=Speculation(2, (0.7, 0.5), 1e-3, 1e-4),
    )
    assert_agree(workload, engine, 3)
