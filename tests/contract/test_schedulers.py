"""Every batching policy that is found, on the same small traffic: what it must do whatever it decides."""

import numpy as np
import pytest
from tests.serve.simulate.grids import a_table, shared_prefixes

from ridgeline.serve.simulate.engine import reference
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.engine.policy import schedulers
from ridgeline.serve.simulate.traffic.workload import Workload

TABLE = a_table()


def traffic(seed: int) -> Workload:
    rng = np.random.default_rng(seed)
    inputs, outputs = rng.integers(1, 50, 80), rng.integers(1, 30, 80)
    return Workload(np.cumsum(rng.exponential(0.03, 80)), inputs, outputs, **shared_prefixes(rng, inputs, 8))


@pytest.mark.parametrize("name", schedulers())
@pytest.mark.parametrize("blocks", [24, 400])
def test_scheduler(name: str, blocks: int) -> None:
    workload = traffic(blocks)
    engine = Engine(kv_blocks=blocks, scheduler=name, max_num_seqs=10, max_num_batched_tokens=100, block_size=4)
    result = simulate(workload, TABLE, engine, record_steps=True)
    assert result.served.all()
    assert (result.emitted == workload.output_tokens).all()
    assert (result.free_blocks == blocks).all()
    assert (np.diff(result.scheduled_s) >= 0).all()
    assert result.steps is not None
    assert (result.steps.tokens <= 100).all()
    assert (result.steps.blocks <= blocks).all()
    twin = reference.simulate(workload, TABLE, engine)
    np.testing.assert_array_equal(result.finished_s, twin.finished_s)


@pytest.mark.parametrize("name", schedulers())
def test_scheduler_describes_itself(name: str) -> None:
    policy = schedulers()[name]
    assert policy.name == name == policy.name.lower()
    assert 20 <= len(policy.about) <= 120
