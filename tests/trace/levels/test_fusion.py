"""Chains of memory-bound kernels."""

import pytest
from tests.trace.calls import Step, shaped

from ridgeline.trace.levels.l2 import operations

SIZE = 1024


def elementwise(step: Step, name: str, dur: int = 3072, wait: int = 0, stream: int = 7) -> None:
    """One kernel over 1024 bf16 numbers; an ``add`` moves 3 arrays of 2048 bytes."""
    step.call(f"aten::{name}", {f"{name}_kernel": dur}, meta=shaped([[SIZE], [SIZE]]), wait=wait, stream=stream)


def test_a_chain_saves_what_lies_between() -> None:
    step = Step()
    for name in ("add", "mul", "sub"):
        elementwise(step, name)
    (chain,) = operations(step.build()).chains
    assert chain.operations == ("aten::add", "aten::mul", "aten::sub")
    assert (chain.count, chain.device_ns, chain.bytes) == (1, 9216, 3 * 3 * 2 * SIZE)
    assert chain.saved_bytes == 2 * 2 * 2 * SIZE  # two arrays, written and read
    assert chain.saved_ns == pytest.approx(2 * 2 * 3072 / 3)


def test_the_faster_kernel_of_a_pair_sets_what_a_byte_costs() -> None:
    step = Step()
    elementwise(step, "add", 3000)
    elementwise(step, "mul", 30_000)
    (chain,) = operations(step.build()).chains
    assert chain.saved_ns == 2000


def test_equal_chains_are_counted_together() -> None:
    step = Step()
    for _ in range(5):
        elementwise(step, "add")
        elementwise(step, "mul")
        step.call("aten::mm", {"gemm": 10_000}, meta=shaped([[64, 64], [64, 64]]))
    (chain,) = operations(step.build()).chains
    assert (chain.count, chain.operations) == (5, ("aten::add", "aten::mul"))


def test_order_tells_chains_apart() -> None:
    step = Step()
    for pair in (("add", "mul"), ("mul", "add")):
        for name in pair:
            elementwise(step, name)
        step.call("aten::mm", {"gemm": 10_000}, meta=shaped([[64, 64], [64, 64]]))
    found = operations(step.build()).chains
    assert sorted(chain.operations for chain in found) == [("aten::add", "aten::mul"), ("aten::mul", "aten::add")]


@pytest.mark.parametrize("what", ["wait", "size", "stream", "matmul"])
def test_what_breaks_a_chain(what: str) -> None:
    step = Step()
    elementwise(step, "add")
    if what == "wait":
        elementwise(step, "mul", wait=20_000)
    elif what == "stream":
        elementwise(step, "mul", stream=8)
    elif what == "size":
        step.call("aten::mul", {"k": 3072}, meta=shaped([[SIZE * 2], [SIZE * 2]]))
    else:
        step.call("aten::mm", {"gemm": 100}, meta=shaped([[32, 32], [32, 32]]))
    assert operations(step.build()).chains == ()


def test_generated_kernels_are_fused_already() -> None:
    step = Step()
    for i in range(2):
        step.call(f"triton_poi_fused_add_{i}", {f"k{i}": 100}, meta=shaped([[SIZE], [SIZE]]))
    assert operations(step.build()).chains == ()
