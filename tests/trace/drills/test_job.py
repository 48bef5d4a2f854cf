"""The run of a drill: sizes from a seed, durations from arithmetic."""

import pytest

from ridgeline.trace.drills import job as jobs
from ridgeline.trace.drills.job import job_of
from ridgeline.trace.levels.op_flops import Gemm


def test_a_seed_gives_the_same_run_and_seeds_differ() -> None:
    assert job_of(7) == job_of(7)
    assert len({job_of(seed) for seed in range(20)}) == 20
    assert {job_of(seed).ranks for seed in range(40)} == {2, 4, 8}


def test_durations_are_work_over_rate() -> None:
    gemm = Gemm(1, 4096, 4096, 4096)
    assert jobs.matmul_ns(gemm) == pytest.approx(2 * 4096**3 / (989.4e12 * jobs.MATMUL) * 1e9)
    assert jobs.memory_ns(3.35e9 * jobs.MEMORY) == pytest.approx(1e6)
    assert jobs.wire_ns("all_gather", 450_000_000, 2, 1.0) == pytest.approx(0.5e6 + 12_000)
    assert jobs.host_copy_ns(jobs.HOST_LINK) == pytest.approx(1e9)


def test_weights_add_up() -> None:
    job = job_of(1)
    layer = job.unit_params(0) + job.unit_params(1)
    assert job.params == job.layers * layer + 2 * job.vocab * job.d_model
    assert job.units == 2 * job.layers
    assert jobs.small(job).ranks == 2
