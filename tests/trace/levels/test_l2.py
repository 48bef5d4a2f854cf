"""Operations: rows, rates, verdicts, and exact values on real traces."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.trace.calls import Step, shaped

from ridgeline.core import catalog
from ridgeline.trace.events import Events, Kind, Run
from ridgeline.trace.levels.l2 import operations, operations_of_run
from ridgeline.trace.levels.recompute import ENGINE
from ridgeline.trace.read import read_trace
from ridgeline.trace.steps import Steps, assign

H100 = catalog.device("H100")
MM = shaped([[4096, 4096], [4096, 4096]])
FLOPS = 2 * 4096**3


def made() -> Events:
    step = Step()
    for _ in range(3):
        step.call("aten::mm", {"gemm_128x128_": 200_000, "splitKreduce": 10_000}, meta=MM)
    step.call("aten::mm", {"gemm_128x128_": 300_000}, meta=shaped([[4096, 4096], [4096, 8192]]))
    step.call("aten::add", {"add": 50_000}, meta=shaped([[4096, 4096], [4096, 4096]]))
    step.call("c10d::allreduce_", {"nccl": 900_000}, kind=Kind.COMM)
    step.call("aten::fill_", {"fill": 1000}, wait=30_000)
    return step.build()


def test_rows_by_operator_and_shapes() -> None:
    ops = operations(made(), H100)
    assert [(r.name, r.calls, r.kernels, r.device_ns) for r in ops.rows] == [
        ("aten::mm", 3, 6, 630_000), ("aten::mm", 1, 1, 300_000), ("aten::add", 1, 1, 50_000),
        ("aten::fill_", 1, 1, 1000),
    ]  # fmt: skip
    assert ops.work_ns == 981_000  # without communication
    assert (ops.kernels, ops.unlinked_ns, ops.steps) == (9, 0, 1)


def test_rates() -> None:
    first = operations(made(), H100).rows[0]
    assert first.flops == 3 * FLOPS
    assert first.flops_per_s == pytest.approx(3 * FLOPS / 630e-6)
    assert first.kernel == "gemm_128x128_"
    assert first.intensity == pytest.approx(FLOPS / (3 * 2 * 4096**2))


def test_roofline_verdicts() -> None:
    ops = operations(made(), H100)
    limits = [(r.name, r.limit) for r in ops.rows]
    assert limits == [
        ("aten::mm", "compute bound"), ("aten::mm", "compute bound"), ("aten::add", "memory bound"),
        ("aten::fill_", "launch bound"),
    ]  # fmt: skip
    peak = H100.peak("bf16")
    assert peak is not None
    bound_ns = 3 * FLOPS / float(peak.value) * 1e9
    assert ops.rows[0].bound_ns == pytest.approx(bound_ns)
    assert ops.rows[0].efficiency == pytest.approx(bound_ns / 630_000)


def test_without_a_device_nothing_is_judged() -> None:
    ops = operations(made())
    assert ops.device is None
    assert {r.limit for r in ops.rows} == {"unknown", "launch bound"}
    assert all(r.bound_ns is None for r in ops.rows)


def test_the_device_that_the_trace_names() -> None:
    events = made()
    ops = operations(replace(events, info=replace(events.info, device="NVIDIA H100 80GB HBM3")))
    assert ops.device is not None
    assert (ops.device.name, ops.sm_count) == ("H100-SXM-80GB", 132)


def test_phases_are_rows_of_their_own() -> None:
    step = Step()
    step.call("aten::mm", {"gemm": 100}, meta=MM)
    step.open(f"{ENGINE}: MmBackward0", 100)
    step.open("MmBackward0", 100)
    step.call("aten::mm", {"gemm": 70}, meta=MM)
    found = {r.phase: r.device_ns for r in operations(step.build()).rows}
    assert found == {"forward": 100, "backward": 70}


def test_kernels_without_operators_are_rows_by_name() -> None:
    step = Step()
    step.table.work("lonely", 50, 20)
    step.table.work("lonely", 80, 20)
    ops = operations(step.build())
    assert [(r.name, r.kernel, r.calls, r.device_ns) for r in ops.rows] == [("", "lonely", 2, 40)]
    assert ops.unlinked_ns == ops.work_ns == 40


def test_idle_time_counts_from_the_end_of_all_streams() -> None:
    step = Step()
    step.table.work("long", 0, 100, stream=1)
    step.table.work("inside", 20, 10, stream=2)
    step.table.work("late", 130, 10, stream=2)
    rows = {r.kernel: r.idle_ns for r in operations(step.build()).rows}
    assert rows == {"long": 0, "inside": 0, "late": 30}


def test_families_sum_to_the_work() -> None:
    ops = operations(made(), H100)
    assert sum(total.device_ns for total in ops.families) == ops.work_ns
    assert ops.families[0].family == "matmul"
    assert [r.name for r in ops.of("matmul")] == ["aten::mm", "aten::mm"]


def test_only_steady_steps_count() -> None:
    events = made()
    work = events.on_device
    step = np.where(work & (events.ts < 400_000), 0, 1)
    start, end = np.array([0, 400_000]), np.array([400_000, 3_000_000])
    steps = Steps(np.arange(2), start, end, start, end, ("warm-up", "steady"), "markers")
    some = operations(events.with_columns(step=np.where(work, step, -1)), H100, steps=steps)
    everything = operations(events, H100)
    assert some.steps == 1
    assert 0 < some.work_ns < everything.work_ns


def test_per_step() -> None:
    ops = replace(operations(made(), H100), steps=4)
    assert ops.per_step("x", 2_000_000).value == pytest.approx(0.0005)


def test_the_busiest_rank_speaks_for_the_run() -> None:
    idle = Step()
    idle.call("aten::add", {"add": 10})
    assert operations_of_run(Run((idle.build(), made())), H100).work_ns == 981_000


def test_an_empty_trace_has_no_rows() -> None:
    ops = operations(Step().build(), H100)
    assert (ops.rows, ops.chains, ops.families, ops.work_ns) == ((), (), (), 0)


@pytest.mark.data
def test_the_large_matmul_of_the_gpt_trace(data_dir: Path) -> None:
    ops = operations(read_trace(data_dir / "trace" / "gpt_8xh100" / "rank0.json.gz"))
    sides = ((16384, 768), (768, 3072))
    rows = [r for r in ops.rows if r.name == "aten::mm" and r.shapes[:2] == sides]
    flops, time = sum(r.flops or 0 for r in rows), sum(r.device_ns for r in rows)
    assert {r.flops // r.calls for r in rows if r.flops} == {77_309_411_328}
    assert flops / time / 1e3 == pytest.approx(682.4, abs=0.5)


@pytest.mark.data
def test_scores_in_memory_dominate_the_timesformer(data_dir: Path) -> None:
    ops = operations(read_trace(data_dir / "trace" / "pairs" / "h100_timesformer.json.gz"))
    first = ops.rows[0]
    assert (first.name, first.calls, first.limit) == ("aten::_softmax", 12, "memory bound")
    assert ops.unlinked_ns == 0


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["cpu_only", "mi210_gpu_only", "mtia_inference", "old_schema", "cuda_graph/vllm_decode_full",
             "no_rank_info", "deepseek_v3_ep64/train", "torch_compile_triton"]
)  # fmt: skip
def test_every_kind_of_trace_has_an_answer(data_dir: Path, name: str) -> None:
    events, steps = assign(read_trace(data_dir / "trace" / f"{name}.json.gz"))
    ops = operations(events, H100, steps=steps)
    assert sum(r.device_ns for r in ops.rows) == ops.work_ns
    assert sum(r.kernels for r in ops.rows) >= ops.kernels
    assert ops.unlinked_ns <= ops.work_ns
