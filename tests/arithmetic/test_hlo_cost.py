"""FLOPs, recomputation and collectives of HLO modules."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.arithmetic.hlo import HloModule, parse
from ridgeline.arithmetic.hlo_collectives import collectives, serial_calls
from ridgeline.arithmetic.hlo_cost import flops, rematted, totals, traffic_bytes
from ridgeline.trace.hlo import read
from ridgeline.trace.hlo_resharding import members, origin, reshardings


def entry(*lines: str, scheduled: bool = True) -> HloModule:
    """A module of one computation. `WEIGHT` and `ACT` are parameters."""
    head = f"HloModule m, is_scheduled={str(scheduled).lower()}, num_partitions=8\n\nENTRY %e () -> f32[] {{\n"
    return parse(head + "".join(f"  {line}\n" for line in lines) + "}\n")


X = "%x = bf16[128,512]{1,0} parameter(0)"
W = "%w = bf16[512,256]{1,0} parameter(1)"
DOT = "%d = bf16[128,256]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def test_dot() -> None:
    module = entry(X, W, DOT)
    dot = module.computations["e"].by_name["d"]
    assert flops(module, dot) == 2 * 128 * 512 * 256
    assert traffic_bytes(module, dot) == 2 * (128 * 512 + 512 * 256 + 128 * 256)


def brute(data: int, kernel: int, out: int, axis: tuple[int, int, int, int]) -> int:
    """Window positions that meet a datum, counted one by one."""
    stride, low, base, dilation = axis
    places = (o * stride - low + k * dilation for o in range(out) for k in range(kernel))
    return sum(0 <= place <= (data - 1) * base and place % base == 0 for place in places)


small = st.integers(1, 9)


@given(small, small, small, st.tuples(st.integers(1, 3), st.integers(-2, 8), st.integers(1, 3), st.integers(1, 3)))
def test_a_window_counts_the_positions_that_meet_data(
    data: int, kernel: int, out: int, axis: tuple[int, int, int, int]
) -> None:
    stride, low, base, dilation = axis
    window = f"{{size={kernel} stride={stride} pad={low}_0 lhs_dilate={base} rhs_dilate={dilation}}}"
    module = entry(
        f"%x = f32[2,{data},3]{{2,1,0}} parameter(0)",
        f"%k = f32[{kernel},3,5]{{2,1,0}} parameter(1)",
        f"%c = f32[2,{out},5]{{2,1,0}} convolution(%x, %k), window={window}, dim_labels=b0f_0io->b0f",
    )
    conv = module.computations["e"].by_name["c"]
    assert flops(module, conv) == 2 * 2 * 5 * 3 * brute(data, kernel, out, axis)


def test_a_dot_written_as_a_convolution_costs_what_the_dot_costs() -> None:
    module = entry(
        "%x = bf16[128,4096,1]{2,1,0} parameter(0)",
        "%w = bf16[4096,32,128]{2,1,0} parameter(1)",
        "%c = bf16[128,32,128]{2,0,1} convolution(%x, %w), window={size=32 pad=31_31 rhs_reversal=1}, "
        "dim_labels=bf0_i0o->b0f",
    )
    assert flops(module, module.computations["e"].by_name["c"]) == 2 * 128 * 4096 * 32 * 128


@pytest.mark.parametrize("labels", ["", "b0f", "b0f_0io->b0", "xx_yy->zz", "b0f_0io->b0f->b0f"])
def test_broken_labels_cost_nothing_or_a_number(labels: str) -> None:
    module = entry(
        "%x = f32[2,4,3] parameter(0)", "%k = f32[2,3,5] parameter(1)",
        f"%c = f32[2,3,5] convolution(%x, %k), window={{size=2}}, dim_labels={labels}",
    )  # fmt: skip
    assert flops(module, module.computations["e"].by_name["c"]) >= 0


def test_recomputation_over_forward() -> None:
    def named(at: str, path: str) -> str:
        return DOT.replace("%d", f"%{at}") + f', metadata={{op_name="{path}"}}'

    module = entry(
        X, W, named("a", "jit(f)/jvp()/checkpoint/dot_general"), named("b", "jit(f)/jvp()/dot_general"),
        named("c", "jit(f)/transpose(jvp())/checkpoint/rematted_computation/dot_general"),
        named("g.remat", "jit(f)/transpose(jvp())/dot_general"), named("h", "jit(f)/transpose(jvp())/dot_general"),
    )  # fmt: skip
    sums = totals(module)
    assert (sums.matmuls, sums.recomputed_matmuls) == (5, 2)
    assert sums.recomputed_flops == sums.forward_flops
    assert [item.name for item in rematted(module)] == ["c", "g.remat"]


@pytest.mark.parametrize(
    ("groups", "size"),
    [("{{0,1,2,3},{4,5,6,7}}", 4), ("[2,4]<=[8]", 4), ("[4,2]<=[2,4]T(1,0)", 2), ("{}", 8),
     ("mesh['a'=2,'b'=4] {'b'}", 4), ("mesh['a'=2,'b'=4] {'a','b'}", 8),
     ("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}", 4)],
)  # fmt: skip
def test_group_sizes(groups: str, size: int) -> None:
    module = entry(X, f"%g = bf16[512,512]{{1,0}} all-gather(%x), dimensions={{0}}, replica_groups={groups}")
    found = collectives(module)
    assert [(c.kind, c.group, c.size_bytes, c.asynchronous) for c in found] == [
        ("all_gather", size, 512 * 512 * 2, False)
    ]


def test_an_asynchronous_collective_hides_behind_what_is_scheduled_between() -> None:
    module = entry(
        X, W, "%s = (bf16[128,512]{1,0}, bf16[512,512]{1,0}) all-gather-start(%x), dimensions={0}, "
        "replica_groups=[2,4]<=[8]", DOT, "%t = bf16[512,512]{1,0} all-gather-done(%s)",
    )  # fmt: skip
    found = collectives(module)
    assert len(found) == 1
    assert (found[0].size_bytes, found[0].between, found[0].hidden_flops) == (512 * 512 * 2, 1, 2 * 128 * 512 * 256)


def test_reduce_scatter_counts_the_array_before() -> None:
    module = entry(X, "%r = bf16[16,512]{1,0} reduce-scatter(%x), dimensions={0}, replica_groups=[1,8]<=[8]")
    assert collectives(module)[0].size_bytes == 128 * 512 * 2


def test_a_gathered_weight_is_explained() -> None:
    module = entry(
        X, W, "%c = bf16[512,256]{1,0} convert(%w)",
        "%g = bf16[4096,256]{1,0} all-gather(%c), dimensions={0}, replica_groups=[1,8]<=[8]",
        "%d = bf16[128,256]{1,0} dot(%x, %g), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )  # fmt: skip
    assert origin(module, module.computations["e"].by_name["g"]).kind == "parameter"
    assert reshardings(module) == []


GATHERED = "%g = bf16[128,2048]{1,0} all-gather(%d), dimensions={1}, replica_groups=[1,8]<=[8]"
NEXT = "%n = bf16[128,64]{1,0} dot(%g, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
V = "%v = bf16[2048,64]{1,0} parameter(2)"


def test_an_activation_gathered_along_the_contracted_dimension_stands_out() -> None:
    found = reshardings(entry(X, W, V, DOT, GATHERED, NEXT))
    assert [item.reason for item in found] == [
        "an activation gathered along the dimension that the next matmul contracts"
    ]


def test_an_activation_gathered_along_another_dimension_does_not() -> None:
    sequence = "%g = bf16[1024,256]{1,0} all-gather(%d), dimensions={0}, replica_groups=[1,8]<=[8]"
    use = "%n = bf16[1024,64]{1,0} dot(%g, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert reshardings(entry(X, W, "%v = bf16[256,64]{1,0} parameter(2)", DOT, sequence, use)) == []


def test_gathered_over_the_chips_that_reduce_gradients() -> None:
    reduce = (
        "%r = bf16[512,256]{1,0} all-reduce(%s), replica_groups=[1,8]<=[8], to_apply=%sum, "
        'metadata={op_name="jit(f)/transpose(jvp())/dot_general"}'
    )
    sequence = "%g = bf16[1024,256]{1,0} all-gather(%d), dimensions={0}, replica_groups=[1,8]<=[8]"
    end = "ROOT %t = (bf16[1024,256]) tuple(%g)"
    found = reshardings(entry(X, W, DOT, reduce, sequence, end))
    assert [item.reason for item in found] == ["an activation gathered over the chips that reduce gradients"]
    tensor_parallel = reduce.replace("bf16[512,256]", "bf16[128,256]")  # the shape of an activation
    assert reshardings(entry(X, W, DOT, tensor_parallel, sequence, end)) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{0,4},{1,5},{2,6},{3,7}}", "[4,2]<=[2,4]T(1,0)", "mesh['a'=2,'b'=4] {'a'}", "mesh['a'=2,'x'=1,'b'=4] {'a'}",
        "mesh['b'=4,'a'=2], device_ids=([2,4]T(1,0)) {'a'}", "mesh['b'=4,'a'=2], device_ids=(0,4,1,5,2,6,3,7) {'a'}",
        "mesh['a'=2,'b'=4], device_ids=([8]) {'a'}",
    ],
)  # fmt: skip
def test_all_spellings_of_a_grouping_are_equal(text: str) -> None:
    assert members(text, 8) == frozenset({(0, 4), (1, 5), (2, 6), (3, 7)})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "what",
        "[3,2]<=[7]",
        "[2,2]<=[4]T(0,0)",
        "mesh['a'=2] {'z'}",
        "{" * 99999,
        "mesh['a'=8], device_ids=([4]) {'a'}",
        "mesh['a'=8], device_ids=what {'a'}",
    ],
)
def test_groups_that_are_none(text: str) -> None:
    assert members(text, 8) is None


def fused(first: str, then: str) -> HloModule:
    """A gather of what `first` makes, used by a fusion of `then`."""
    return parse(
        "HloModule m, is_scheduled=true, num_partitions=8\n\n%slice (q: f32[4,64,32], i: s32[]) -> f32[64,32] {\n"
        "  %q = f32[4,64,32]{2,1,0} parameter(1)\n  %i = s32[] parameter(0)\n  %z = s32[] constant(0)\n"
        "  %less = pred[] compare(%i, %z), direction=LT\n  %at = s32[] select(%less, %z, %i)\n"
        "  %cut = f32[1,64,32]{2,1,0} dynamic-slice(%q, %at, %z, %z), dynamic_slice_sizes={1,64,32}\n"
        f"  ROOT %b = f32[64,32]{{1,0}} {first}\n}}\n\n"
        "%use (u: f32[512,32]) -> f32[16,32] {\n  %u = f32[512,32]{1,0} parameter(0)\n"
        f"  %v = bf16[16,512]{{1,0}} constant({{...}})\n  {then}\n}}\n\n"
        "ENTRY %e () -> f32[] {\n  %n = s32[] parameter(0)\n  %ws = f32[4,64,32]{2,1,0} parameter(1)\n"
        "  %f = f32[64,32]{1,0} fusion(%n, %ws), kind=kLoop, calls=%slice\n"
        "  %g = f32[512,32]{1,0} all-gather(%f), dimensions={0}, replica_groups=[1,8]<=[8]\n"
        "  ROOT %h = f32[16,32]{1,0} fusion(%g), kind=kLoop, calls=%use\n}\n"
    )


CONVERTED = "%c = bf16[512,32]{1,0} convert(%u)\n  ROOT %d = f32[16,32]{1,0} dot(%v, %c), rhs_contracting_dims={0}"


def test_a_weight_sliced_out_of_its_layers_is_a_weight() -> None:
    module = fused("bitcast(%cut)", CONVERTED)
    assert origin(module, module.computations["e"].by_name["g"]).kind == "parameter"
    assert reshardings(module) == []


def test_a_contraction_is_seen_through_casts_and_fusions() -> None:
    module = fused("tanh(%cut)", CONVERTED)
    assert [item.reason for item in reshardings(module)] == [
        "an activation gathered along the dimension that the next matmul contracts"
    ]


def test_a_contraction_is_seen_through_a_reshape_that_keeps_the_dimension() -> None:
    gather = "%g = bf16[2,64,2048]{2,1,0} all-gather(%t), dimensions={2}, replica_groups=[1,8]<=[8]"
    flat = "%f = bf16[128,2048]{1,0} bitcast(%g)"
    made = "%t = bf16[2,64,256]{2,1,0} tanh(%d)"
    module = entry(X, W, V, DOT, made, gather, flat, NEXT.replace("%g", "%f"))
    assert [item.reason for item in reshardings(module)] == [
        "an activation gathered along the dimension that the next matmul contracts"
    ]


@pytest.mark.parametrize(
    "use",
    ["%p = f32[8,16,64]{2,1,0} dot(%a, %g), lhs_batch_dims={0}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
     '%p = f32[64,32]{1,0} dot(%g, %a), lhs_contracting_dims={1}, metadata={op_name="f/transpose(jvp())/dot_general"}'],
)  # fmt: skip
def test_tokens_gathered_for_attention_or_a_gradient_are_explained(use: str) -> None:
    weight, made = "%w = f32[32,64]{1,0} parameter(0)", "%t = f32[8,128,64]{2,1,0} tanh(%w)"
    gather = "%g = f32[8,1024,64]{2,1,0} all-gather(%t), dimensions={1}, replica_groups=[1,8]<=[8]"
    assert reshardings(entry(weight, made, gather, use)) == []
    plain = use.replace("lhs_batch_dims={0}, ", "").replace("transpose(jvp())", "jvp()")
    assert len(reshardings(entry(weight, made, gather, plain))) == 1


def test_an_all_to_all_of_the_compiler() -> None:
    line = '%a = bf16[128,512]{{1,0}} all-to-all(%x), replica_groups=[1,8]<=[8], metadata={{op_name="{}"}}'
    assert len(reshardings(entry(X, line.format("jit(f)/add")))) == 1
    assert reshardings(entry(X, line.format("jit(f)/all_to_all"))) == []
    assert reshardings(entry(X, line.format("jit(f)/bec,ebf->bef/dot_general"))) == []


def test_gathered_and_sliced_again() -> None:
    index = "%i = s32[] parameter(3)"
    sliced = "%s = bf16[128,256]{1,0} dynamic-slice(%g, %i, %i), dynamic_slice_sizes={128,256}"
    found = reshardings(entry(X, W, index, DOT, GATHERED, sliced))
    assert [item.reason for item in found] == ["gathered and then sliced again"]


CALL = '%k = bf16[128,2048]{1,0} custom-call(%g), custom_call_target="tpu_custom_call"'


def test_a_custom_call_fed_by_an_exposed_collective() -> None:
    found = serial_calls(entry(X, W, DOT, GATHERED, CALL))
    assert [(item.instruction.name, item.collective.name if item.collective else "") for item in found] == [("k", "g")]
    assert serial_calls(entry(X, W, DOT, GATHERED, CALL, scheduled=False)) == []


def test_a_custom_call_behind_a_matmul_does_not_hold_the_schedule() -> None:
    between = "%n = bf16[128,2048]{1,0} dot(%g, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    call = CALL.replace("%g", "%n")
    module = entry(X, W, "%q = bf16[2048,2048]{1,0} parameter(3)", DOT, GATHERED, between, call)
    assert serial_calls(module) == []


def test_a_callback_to_the_host() -> None:
    found = serial_calls(entry(X, '%k = f32[] custom-call(%x), custom_call_target="xla_ffi_python_cpu_callback"'))
    assert [item.reason for item in found] == ["a call to the host inside the step"]


@pytest.mark.data
def test_the_sharded_llama_gathers_weights_only(data_dir: Path) -> None:
    module = read(data_dir / "trace" / "hlo" / "llama3_8b_sharded.txt")
    found = collectives(module)
    assert [c.kind for c in found] == ["all_gather"] * 7
    assert {c.group for c in found} == {4}
    assert {origin(module, c.instruction).kind for c in found} == {"parameter"}
    assert reshardings(module) == []


@pytest.mark.data
def test_matmuls_of_the_sharded_llama(data_dir: Path) -> None:
    module = read(data_dir / "trace" / "hlo" / "llama3_8b_sharded.txt")
    mlp = 2 * 128 * 4096 * 14336  # 128 tokens a chip
    sizes = [flops(module, item) for item in module if item.opcode == "convolution"]
    assert sizes.count(mlp) == 9  # 3 forward, 2 of them again, and the 4 gradients before the dump ends
    assert max(sizes) == 2 * 128 * 4096 * 128256
    assert (totals(module).matmuls, totals(module).recomputed_matmuls) == (23, 6)
