"""HLO text: the parser, on modules written here, on real dumps and on damaged ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgeline.arithmetic.hlo import HloModule, Shape, is_hlo, parse
from ridgeline.core.errors import InputError
from ridgeline.trace.hlo import read

LOOP = """HloModule jit_step, is_scheduled=true, num_partitions=8, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%body (arg: (s32[], bf16[128,256])) -> (s32[], bf16[128,256]) {
  %arg = (s32[], bf16[128,256]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %x = bf16[128,256]{1,0:T(8,128)(2,1)} get-tuple-element(%arg), index=1
  %w = bf16[256,256]{1,0} constant({...})
  %dot.1 = bf16[128,256]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(step)/jvp()/dot_general" source_file="a, b.py" source_line=3}
  ROOT %out = (s32[], bf16[128,256]{1,0}) tuple(%i, /*index=1*/%dot.1)
}

%cond (arg: (s32[], bf16[128,256])) -> pred[] {
  %arg.1 = (s32[], bf16[128,256]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%arg.1), index=0
  %limit = s32[] constant(32)
  ROOT %less = pred[] compare(%j, %limit), direction=LT
}

ENTRY %main (p: (s32[], bf16[128,256])) -> (s32[], bf16[128,256]) {
  %p = (s32[], bf16[128,256]{1,0}) parameter(0), sharding={{replicated}, {devices=[8,1]<=[8]}}
  ROOT %while.1 = (s32[], bf16[128,256]{1,0}) while(%p), condition=%cond, body=%body
}
"""


@pytest.fixture
def loop() -> HloModule:
    return parse(LOOP)


def test_module_and_computations(loop: HloModule) -> None:
    assert (loop.name, loop.scheduled, loop.partitions, loop.lost) == ("jit_step", True, 8, ())
    assert list(loop.computations) == ["body", "cond", "main"]
    assert loop.entry is not None
    assert loop.entry.name == "main"


def test_an_instruction(loop: HloModule) -> None:
    dot = loop.computations["body"].by_name["dot.1"]
    assert (dot.opcode, dot.operands, dot.shapes) == ("dot", ("x", "w"), (Shape("bf16", (128, 256)),))
    assert dot.op_name == "jit(step)/jvp()/dot_general"
    assert dot.metadata["source_file"] == "a, b.py"
    root = loop.computations["body"].root
    assert root is not None
    assert root.operands == ("i", "dot.1")
    assert [user.name for user in loop.computations["body"].users["dot.1"]] == ["out"]


def test_a_loop_runs_as_often_as_its_condition_says(loop: HloModule) -> None:
    assert loop.runs == {"body": 32, "cond": 32, "main": 1}


def test_a_written_trip_count_wins() -> None:
    text = LOOP.replace("body=%body", 'body=%body, backend_config={"known_trip_count":{"n":"5"}}')
    assert parse(text).runs["body"] == 5


@pytest.mark.parametrize(
    ("text", "size"),
    [("pred[7]", 7), ("s4[3]", 2), ("f8e4m3fn[10]", 10), ("bf16[2,3]", 12), ("f32[]", 4), ("c64[2]", 16),
     ("token[]", 0)],
)  # fmt: skip
def test_sizes_come_from_the_type(text: str, size: int) -> None:
    module = parse("ENTRY %e (p: f32[]) -> f32[] {\n  %a = " + text + " parameter(0)\n}")
    assert next(iter(module)).size_bytes == size


def test_an_attribute_over_several_lines_stays_one_instruction() -> None:
    text = """ENTRY %e (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %call = f32[4]{0} custom-call(%p), custom_call_target="kernel", frontend_attributes={meta={
"x":"y, {z}"
}}, metadata={op_name="jit(f)/kernel"}
  ROOT %q = f32[4]{0} add(%call, %p)
}"""
    module = parse(text)
    assert [item.name for item in module] == ["p", "call", "q"]
    call = module.computations["e"].by_name["call"]
    assert (call.target, call.op_name) == ("kernel", "jit(f)/kernel")


def test_names_without_percent_and_operands_with_types() -> None:
    module = parse("ENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT q = f32[4]{0} add(f32[4]{0} p, f32[4]{0} p)\n}")
    assert list(module)[1].operands == ("p", "p")


def test_a_cut_dump_is_read_as_far_as_it_goes() -> None:
    module = parse(LOOP[: LOOP.index("ROOT %less")])
    assert [item.name for item in module.computations["cond"].instructions] == ["arg.1", "j", "limit"]
    assert len(module.lost) == 2  # the open computation, and the missing entry


def test_lines_that_are_no_instructions_are_counted() -> None:
    module = parse(LOOP.replace("%limit = s32[] constant(32)", "%limit = what is this"))
    assert [(loss.count, "do not read" in loss.what) for loss in module.lost] == [(1, True)]


@pytest.mark.parametrize("text", ["", "HloModule x\n", "not hlo", "ENTRY %e {\n}\n", "{" * 5000, "%a = (" * 2000])
def test_no_instruction_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="HLO text with at least one instruction"):
        parse(text)


@settings(max_examples=150)
@given(st.data())
def test_damaged_text_never_breaks_the_parser(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(LOOP) - 1))
    junk = data.draw(st.text(alphabet='{}()[]",=%\n aR<>*/\\\x00é', max_size=30))
    damaged = LOOP[:at] + junk + LOOP[at + data.draw(st.integers(0, 60)) :]
    try:
        module = parse(damaged)
    except InputError:
        return
    assert all(times >= 0 for times in module.runs.values())


@pytest.mark.parametrize("junk", ["a" * 300_000, '"' * 300_000, "(" * 300_000, 'x="' * 100_000, "[" * 300_000])
def test_long_junk_costs_no_time(junk: str) -> None:
    text = f"ENTRY %e () -> f32[] {{\n  %p = f32[4]{{0}} parameter(0), metadata={{{junk}\n  %q = {junk} add(%p, %p)\n}}"
    for item in parse(text):
        assert isinstance(item.op_name, str)


def test_sniffing() -> None:
    assert is_hlo(LOOP)
    assert not is_hlo('{"traceEvents": []}')


@pytest.mark.data
@pytest.mark.parametrize("name", ["llama3_8b", "llama3_8b_sharded", "deepseek3", "deepseek3_sharded"])
def test_real_dumps_line_by_line(data_dir: Path, name: str) -> None:
    file = data_dir / "trace" / "hlo" / f"{name}.txt"
    module = read(file)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert sum(1 for _ in module) == sum(line.startswith("  ") and " = " in line[:200] for line in lines)
    assert sum(item.rematted for item in module) == sum("rematted_computation" in line for line in lines)
    assert (module.name, module.scheduled, module.partitions) == ("jit_train_step", True, 4)
