"""Times of a schedule: streams run in order, collectives end together, the step costs what is in it."""

from dataclasses import replace
from itertools import pairwise

import pytest

from ridgeline.trace.drills.job import job_of, small
from ridgeline.trace.drills.schedule import Collective, Host, Op, Schedule, healthy
from ridgeline.trace.drills.simulate import Tape, simulate, step_s

JOB = small(job_of(3))


def kernels(tape: Tape, stream: int) -> list[tuple[int, int]]:
    """Start and end of the kernels and copies of a stream, in order."""
    return sorted((e[2], e[2] + e[3]) for e in tape.events if e[0] in ("kernel", "gpu_memcpy") and e[4] == stream)


def test_a_stream_runs_in_order() -> None:
    for tape in simulate(healthy(JOB)):
        for stream in (7, 20, 24):
            spans = kernels(tape, stream)
            assert spans
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_work_starts_after_its_launch() -> None:
    for tape in simulate(healthy(JOB)):
        calls = {e[5]["correlation"]: e[2] for e in tape.events if e[0] == "cuda_runtime" and "correlation" in e[5]}
        device = [e for e in tape.events if e[0] == "kernel" and e[5]["correlation"] in calls]
        assert len(device) > 100
        assert all(e[2] > calls[e[5]["correlation"]] for e in device)


def test_collectives_end_together_and_begin_with_their_rank() -> None:
    late = Schedule(JOB, (Host("late", 5e6, ranks=(1,)), Collective("call", "allreduce", 1, 1, 1e6)), jitter=0)
    first, second = simulate(late)
    spans = [kernels(tape, 20) for tape in (first, second)]
    assert [end for _, end in spans[0]] == [end for _, end in spans[1]]
    begun, end = spans[1][-1]
    assert end - begun == 1_000_000
    assert spans[0][-1][0] < begun


def test_the_step_is_the_sum_of_what_is_serial() -> None:
    op = Op("work", "aten::mm", "gemm", 4e6, ())
    schedule = Schedule(JOB, (Host("python", 3e6), op), jitter=0)
    assert step_s(simulate(schedule)) == pytest.approx(3.016e-3, rel=1e-3)  # the host does not wait for the device


def test_a_slow_rank_slows_the_step() -> None:
    base = step_s(simulate(healthy(JOB)))
    slow = step_s(simulate(replace(healthy(JOB), slow={1: 1.1})))
    assert slow == pytest.approx(1.1 * base, rel=0.02)


def test_jitter_does_not_depend_on_what_else_is_planted() -> None:
    base = healthy(JOB)
    more = replace(base, items=(Host("extra", 1e6), *base.items))
    length = [{e[2:4][1] for e in simulate(s)[0].events if e[1].startswith("nvjet")} for s in (base, more)]
    assert length[0] == length[1]
