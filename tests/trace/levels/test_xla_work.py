"""Kernels that XLA made: their own FLOPs and bytes, and those of an HLO dump."""

from typing import Any

import pytest
from tests.trace.synthetic import Table

from ridgeline.arithmetic.hlo import parse
from ridgeline.core import catalog
from ridgeline.trace.levels.l2 import Operations, operations
from ridgeline.trace.levels.xla_work import index, is_xla, operation, phase, xla_work

HLO = parse(
    "HloModule jit_step, is_scheduled=true\n\nENTRY %e () -> bf16[] {\n  %x = bf16[128,512]{1,0} parameter(0)\n"
    "  %w = bf16[512,256]{1,0} parameter(1)\n"
    "  ROOT %dot.7 = bf16[128,256]{1,0} dot(%x, %w), lhs_contracting_dims={1}\n}\n"
)
FLOPS, BYTES = 2 * 128 * 512 * 256, 2 * (128 * 512 + 512 * 256 + 128 * 256)


def ran(*metas: dict[str, Any], hlo: bool = False) -> Operations:
    table = Table()
    for i, meta in enumerate(metas):
        table.work("gemm_fusion", 100 * i, 50, meta=meta)
    return operations(table.build(), catalog.device("H100"), hlo=[HLO] if hlo else [])


def test_figures_of_the_trace() -> None:
    meta = {"tf_op": "jit(f)/jvp()/dot_general:", "flops": 10**9, "bytes": 10**5, "hlo": "%dot.7 = bf16[8]{0} dot()"}
    (row,) = ran(meta, meta).rows
    assert (row.family, row.dtype, row.calls, row.flops, row.bytes) == ("matmul", "bf16", 2, 2 * 10**9, 2 * 10**5)
    assert row.limit == "compute bound"


def test_figures_of_a_dump() -> None:
    (row,) = ran({"hlo_op": "dot.7", "tf_op": "jit(f)/dot_general"}, hlo=True).rows
    assert (row.flops, row.bytes, row.dtype) == (FLOPS, BYTES, "bf16")
    (alone,) = ran({"hlo_op": "dot.7", "tf_op": "jit(f)/dot_general"}).rows
    assert (alone.flops, alone.work) == (None, None)


def test_phases_and_recomputation_by_path() -> None:
    paths = ("jvp()/dot_general", "transpose(jvp())/dot_general", "transpose(jvp())/rematted_computation/dot_general")
    ops = ran(*({"hlo_op": f"dot.{i}", "tf_op": f"jit(f)/{path}"} for i, path in enumerate(paths)))
    assert sorted(row.phase for row in ops.rows) == ["backward", "forward", "recompute"]
    assert ops.recompute is not None
    assert (ops.recompute.method, ops.recompute.kernels, ops.recompute.kernel_ns) == ("HLO metadata", 1, 50)
    assert ops.recompute.backward_ns == 100


@pytest.mark.parametrize("flops", ["many", -1, 2**70, 1.5, None, True])
def test_surprising_figures_are_unknown(flops: object) -> None:
    assert xla_work("k", {"hlo_op": "k", "flops": flops}, {}) is None


def test_helpers() -> None:
    assert is_xla({"hlo_op": "x"})
    assert not is_xla({"grid": (1, 1, 1)})
    assert operation({"tf_op": "jit(f)/mul"}) == "mul"
    assert operation({}) == ""
    assert phase({"hlo_op": "dot.3.remat2"}) == 2
    assert set(index([HLO])) == {"x", "w", "dot.7"}
