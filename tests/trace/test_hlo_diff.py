"""What one compilation does differently from another."""

from pathlib import Path

import pytest

from ridgeline.arithmetic.hlo import HloModule, parse
from ridgeline.trace.hlo import read
from ridgeline.trace.hlo_diff import difference

OPS = {
    "a": '%a = f32[8]{0} add(%p, %p), metadata={op_name="jit(f)/add"}',
    "m": '%m = f32[8]{0} multiply(%a, %p), metadata={op_name="jit(f)/mul"}',
}


def fused() -> HloModule:
    return parse(
        "HloModule f\n\n%both (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        f"  {OPS['a']}\n  ROOT {OPS['m']}\n}}\n\nENTRY %e (x: f32[8]) -> f32[8] {{\n  %x = f32[8]{{0}} parameter(0)\n"
        "  ROOT %fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%both\n}\n"
    )


def apart(extra: str = "") -> HloModule:
    return parse(
        "HloModule f\n\nENTRY %e (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        f"  {OPS['a']}\n  {OPS['m']}\n{extra}}}\n"
    )


def test_equal_modules_do_not_differ() -> None:
    found = difference(fused(), fused())
    assert [found.added, found.removed, found.fused, found.split, found.rematted, found.collectives] == [()] * 6


def test_fused_and_split() -> None:
    assert difference(apart(), fused()).fused == (("jit(f)/add", "jit(f)/mul"),)
    back = difference(fused(), apart())
    assert back.split == (("jit(f)/add", "jit(f)/mul"),)
    assert back.fusions == (1, 0)


def test_added_work_is_neither_fused_nor_split() -> None:
    more = apart('  %s = f32[8]{0} sine(%m), metadata={op_name="jit(f)/sin"}\n')
    found = difference(apart(), more)
    assert [(c.op_name, c.opcode, c.before, c.after) for c in found.added] == [("jit(f)/sin", "sine", 0, 1)]
    assert found.fused == ()
    assert [c.opcode for c in difference(more, apart()).removed] == ["sine"]


def test_rematerialized_and_kept() -> None:
    again = '  %a2 = f32[8]{0} add(%p, %p), metadata={op_name="jit(f)/rematted_computation/add"}\n'
    found = difference(apart(), apart(again))
    assert [(c.op_name, c.before, c.after) for c in found.rematted] == [("jit(f)/add", 0, 1)]
    assert [c.before for c in difference(apart(again), apart()).kept] == [1]


def test_collectives_by_kind_and_shape() -> None:
    gather = "  %g = f32[64]{0} all-gather(%m), dimensions={0}, replica_groups=[1,8]<=[8]\n"
    found = difference(apart(), apart(gather)).collectives
    assert [(c.op_name, c.after) for c in found] == [("all_gather f32[64] [1,8]<=[8]", 1)]


@pytest.mark.data
def test_real_modules(data_dir: Path) -> None:
    folder = data_dir / "trace" / "hlo"
    one, other = read(folder / "deepseek3.txt"), read(folder / "deepseek3_sharded.txt")
    found = difference(one, other)
    assert sum(c.after for c in found.collectives) == 10
    assert found.recomputed_flops[1] > found.recomputed_flops[0] == 0
