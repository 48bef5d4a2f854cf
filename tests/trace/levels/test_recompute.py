"""Forward work in backward: by operators, by Python stacks, and on a real trace by both."""

from pathlib import Path

import numpy as np
import pytest
from tests.trace.calls import Step

from ridgeline.trace.events import Category, Events, Kind
from ridgeline.trace.levels.linking import link
from ridgeline.trace.levels.recompute import ENGINE, Recompute, recompute
from ridgeline.trace.read import read_trace


def names(events: Events, found: Recompute) -> list[str]:
    """The kernels that were found."""
    return [events.name_of(int(row)) for row in np.flatnonzero(found.rows)]


def backward(step: Step, function: str, operators: list[tuple[str, str]], length: int = 100) -> None:
    """One node of the engine: its function around the operators (name, kernel)."""
    step.open(f"{ENGINE}: {function}", length)
    step.open(function, length)
    for name, kernel in operators:
        step.call(name, {kernel: 10})
    step.host += length


def run(step: Step, *, stacks: bool | None = None) -> list[str]:
    made = step.build()
    return names(made, recompute(made, link(made), stacks=stacks))


def test_forward_operators_of_a_node_and_all_before_them() -> None:
    step = Step()
    step.call("aten::linear", {"forward": 10})
    step.host += 100
    operators = [("aten::linear", "a"), ("aten::add", "b"), ("aten::gelu", "c"), ("aten::gelu_backward", "d")]
    backward(step, "GeluBackward0", operators)
    assert run(step) == ["a", "b", "c"]


def test_derivative_formulas_alone_are_not_recomputation() -> None:
    step = Step()
    backward(step, "MmBackward0", [("aten::mm", "a"), ("aten::mm", "b")])
    backward(step, "CustomFunctionBackward", [("aten::matmul", "c"), ("aten::sum", "d")])
    made = step.build()
    found = recompute(made, link(made))
    assert (found.kernels, found.backward_ns, found.method, found.share) == (0, 40, "operators", 0.0)


def test_a_residual_addition_right_behind_belongs_to_it() -> None:
    step = Step()
    backward(step, "ReluBackward0", [("aten::batch_norm", "a"), ("aten::add_", "b"), ("aten::threshold_backward", "c")])
    assert run(step) == ["a", "b"]
    other = Step()
    backward(other, "AddBackward0", [("aten::batch_norm", "a"), ("aten::add_", "b")])
    assert run(other) == ["a"]


def test_each_node_is_judged_alone() -> None:
    step = Step()
    backward(step, "ReluBackward0", [("aten::conv2d", "a"), ("aten::threshold_backward", "b")])
    backward(step, "MulBackward0", [("aten::mul", "c")])
    assert run(step) == ["a"]


def test_a_reentrant_checkpoint_recomputes_all_but_the_backward_inside() -> None:
    step = Step()
    step.open(f"{ENGINE}: CheckpointFunctionBackward", 300)
    step.open("CheckpointFunctionBackward", 300)
    step.call("aten::mm", {"a": 10})
    step.call("aten::mul", {"b": 10})
    backward(step, "MulBackward0", [("aten::mul", "c")])
    assert run(step) == ["a", "b"]


def test_communication_in_backward_is_not_counted() -> None:
    step = Step()
    step.open(f"{ENGINE}: LinearBackward0", 50)
    step.open("LinearBackward0", 50)
    step.call("c10d::allreduce_", {"nccl": 1000}, kind=Kind.COMM)
    step.call("aten::layer_norm", {"a": 10})
    made = step.build()
    found = recompute(made, link(made))
    assert (found.kernels, found.kernel_ns, found.backward_ns) == (1, 10, 10)


def test_stacks_where_the_trace_has_them() -> None:
    step = Step()
    step.table.host("torch/utils/checkpoint.py(1500): recompute_fn", 0, 15, Category.PYTHON)
    step.call("aten::mm", {"a": 10})
    step.host = 20
    step.call("aten::mm", {"b": 10})
    assert run(step) == ["a"]
    assert run(step, stacks=False) == []


def test_compiled_graphs_are_opaque() -> None:
    step = Step()
    backward(step, "CompiledFunctionBackward", [("triton_red_fused_0", "a")])
    made = step.build()
    assert recompute(made, link(made)).opaque_ns == 10


def test_without_backward_there_is_nothing_to_say() -> None:
    step = Step()
    step.call("aten::linear", {"a": 10})
    made = step.build()
    found = recompute(made, link(made))
    assert (found.method, found.kernels, found.share) == ("none", 0, None)


@pytest.mark.data
@pytest.mark.parametrize("stacks", [True, False])
def test_the_checkpointed_trace(data_dir: Path, stacks: bool) -> None:
    events = read_trace(data_dir / "trace" / "mi300_activation_checkpoint" / "rank0.json.gz")
    found = recompute(events, link(events), stacks=stacks)
    assert found.kernels == pytest.approx(591, rel=0.05)
    assert found.kernel_ns == pytest.approx(4_122_000, rel=0.05)
    assert found.backward_ns == pytest.approx(13_557_000, rel=1e-4)


@pytest.mark.data
@pytest.mark.parametrize("name", ["megatron_tp2/rank0", "ddp_2xa100/rank0", "a100x16/rank0", "ns_resolution"])
def test_traces_without_checkpointing(data_dir: Path, name: str) -> None:
    events = read_trace(data_dir / "trace" / f"{name}.json.gz")
    found = recompute(events, link(events))
    assert (found.method, found.kernels) == ("operators", 0)
    assert found.backward_ns > 0
