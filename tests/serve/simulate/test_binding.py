"""What holds requests back, how the queue grows, what a cache could find."""

from pathlib import Path

import numpy as np
import pytest
from tests.serve.simulate.studies import engine, load, table

from ridgeline.serve.simulate.binding import BATCH, COMPUTE, MEMORY, NOTHING, achievable, binding, growth
from ridgeline.serve.simulate.engine.loop import simulate
from ridgeline.serve.simulate.traffic.arrivals import poisson
from ridgeline.serve.simulate.traffic.traffic import Traffic, make
from ridgeline.serve.simulate.traffic.workload import Workload

BURST = np.zeros(64)


@pytest.mark.parametrize(
    ("changes", "given", "made", "leader"),
    [
        ({"kv_blocks": 300}, 400, 400, MEMORY),
        ({"max_num_seqs": 4}, 100, 200, BATCH),
        ({"max_num_batched_tokens": 1000, "max_num_seqs": 1000}, 5000, 2, COMPUTE),
        ({"max_num_seqs": 1000, "max_num_batched_tokens": 100_000}, 100, 100, NOTHING),
    ],
)
def test_the_limit_that_binds_is_named(changes: dict[str, int], given: int, made: int, leader: str) -> None:
    work = load(BURST, given=given, made=made)
    found = binding(simulate(work, table(), engine(**changes), record_steps=True))
    assert max(found, key=lambda name: found[name]) == leader
    assert sum(found.values()) == pytest.approx(1.0)


def test_without_recorded_steps_nothing_is_said() -> None:
    assert binding(simulate(load(BURST), table(), engine())) == {}


def test_growth_is_the_excess_of_the_load() -> None:
    """At a load of rho > 1 the wait grows by (rho - 1) a second."""
    capacity = simulate(load(np.zeros(2000)), table(), engine())
    rate = 2000 / capacity.makespan_s
    random = np.random.default_rng(0)
    for rho in (1.5, 2.0):
        result = simulate(load(poisson(rho * rate, 4000, random)), table(), engine())
        assert growth(result) == pytest.approx(rho - 1, rel=0.15)
    calm = simulate(load(poisson(0.7 * rate, 4000, random)), table(), engine())
    assert abs(growth(calm)) < 0.005


def test_growth_means_nothing_in_a_closed_loop() -> None:
    assert growth(simulate(load(np.zeros(100), concurrency=4), table(), engine())) == 0.0


def hashed(rows: list[list[int]], tokens: int = 16) -> Workload:
    counts = [len(row) for row in rows]
    flat = [item for row in rows for item in row]
    return Workload(
        np.arange(len(rows), dtype=np.float64), np.array([c * tokens for c in counts]), np.full(len(rows), 2),
        hashes=np.array(flat), hash_offsets=np.r_[0, np.cumsum(counts)], hash_tokens=tokens,
    )  # fmt: skip


def test_achievable_hits_stop_at_the_first_new_block() -> None:
    assert achievable(hashed([[1, 2, 3], [1, 2, 4], [9, 2, 3]])) == pytest.approx(2 * 16 / (9 * 16))


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    assert achievable(hashed([[1], [1]])) == pytest.approx(15 / 32)


def test_a_part_of_the_list() -> None:
    work = hashed([[1, 2], [3, 4], [1, 2], [3, 4]])
    assert achievable(work, slice(0, 2)) == 0.0
    assert achievable(work) > 0.4
    assert achievable(load([0.0])) == 0.0


@pytest.mark.data
def test_a_cache_without_limit_on_the_shared_conversations(data_dir: Path) -> None:
    """The published oracle: 37.36% of the tokens of the conversation trace, 65.12% of the synthetic one."""
    for name, share in (("conversation", 0.3736), ("synthetic", 0.6512)):
        file = data_dir / "serve" / "traces" / f"mooncake_{name}.parquet"
        assert achievable(make(Traffic(trace=str(file))).workload) == pytest.approx(share, abs=0.001)
