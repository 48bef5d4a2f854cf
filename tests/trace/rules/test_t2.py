"""Rules on operations, compiled modules and counters: each fires on a planted fault and on nothing else."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.trace.calls import Step, shaped
from tests.trace.runs import context

from ridgeline.arithmetic.hlo import HloModule, parse
from ridgeline.core import catalog
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.plugins import find_rule
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l2 import Operations, operations
from ridgeline.trace.levels.recompute import ENGINE
from ridgeline.trace.readers.ncu import KernelCounters

H100 = catalog.device("H100")
PEAK_BF16 = 989.4e12
Planted = Callable[[Step], None]


def mm_ns(m: int, k: int, n: int, reach: float) -> int:
    """How long a matmul takes at a share of the H100's bf16 peak."""
    return round(2 * m * k * n / (PEAK_BF16 * reach) * 1e9)


def matmul(
    step: Step, reach: float = 0.7, side: int = 8192, *, n: int | None = None, dtype: str = "c10::BFloat16",
    kernel: str = "sm90_gemm_128x128_",
) -> None:  # fmt: skip
    """One square matmul (or with another n) that reaches a share of the bf16 peak."""
    n = side if n is None else n
    step.call("aten::mm", {kernel: mm_ns(side, side, n, reach)}, meta=shaped([[side, side], [side, n]], dtype))


def healthy(step: Step) -> None:
    """Large aligned matmuls at 70% of the peak, fused attention of 128, nothing between."""
    for _ in range(4):
        matmul(step, kernel="sm90_gemm_256x128_", side=8448)  # 66 x 33 tiles: 16.5 waves of 132
    shapes = [[4, 32, 4096, 128]] * 3
    meta = shaped([*shapes, [], [], []], concrete=["", "", "", "0.0", "True", "False"])
    step.call("aten::_scaled_dot_product_flash_attention", {"flash_fwd": 2_000_000}, meta=meta)


def slow_matmul(step: Step) -> None:
    for _ in range(4):
        matmul(step, 0.3)


def bad_waves(step: Step) -> None:
    m, n = 128 * 19, 128 * 7  # 133 tiles on 132 units
    for _ in range(30):
        step.call(
            "aten::mm", {"sm90_gemm_128x128_": mm_ns(m, 8192, n, 0.4)}, meta=shaped([[m, 8192], [8192, n]])
        )  # fmt: skip


def narrow_heads(step: Step) -> None:
    meta = shaped([*[[4, 32, 4096, 64]] * 3, [], [], []], concrete=["", "", "", "0.0", "True", "False"])
    step.call("aten::_scaled_dot_product_flash_attention", {"flash_fwd": 3_000_000}, meta=meta)


def odd_vocabulary(step: Step) -> None:
    matmul(step, 0.2, n=50257)


def unfused(step: Step) -> None:
    for name in ("add", "mul", "sigmoid"):
        step.call(f"aten::{name}", {name: 400_000}, meta=shaped([[8192, 8192]]))


def recomputed(step: Step) -> None:
    step.open(f"{ENGINE}: MmBackward0", 100)
    step.open("MmBackward0", 100)
    step.call("aten::layer_norm", {"norm": 900_000}, meta=shaped([[8192, 8192]]))
    step.call("aten::mm", {"gemm": 1000})


def fp32(step: Step) -> None:
    matmul(step, 0.05, dtype="float", kernel="ampere_sgemm_128x128_")


def tiny(step: Step) -> None:
    for _ in range(200):
        step.host = step.device + 4000  # the host is late
        step.call("aten::add_", {"add": 2000}, wait=5000)


def scores(step: Step) -> None:
    step.call("aten::_softmax", {"softmax": 2_000_000}, meta=shaped([[4, 32, 4096, 4096], []]))


PLANTED: Mapping[str, Planted] = {
    "T201": slow_matmul, "T202": bad_waves, "T203": narrow_heads, "T204": odd_vocabulary, "T205": unfused,
    "T206": recomputed, "T207": fp32, "T208": tiny, "T209": scores,
}  # fmt: skip


def level2(*parts: Planted, **given: Any) -> Operations:
    step = Step()
    for part in parts:
        part(step)
    return operations(step.build(), H100, **given)


def findings(code: str, ops: Operations | None) -> list[Finding]:
    rule = find_rule(code)
    return list(rule.check(TraceFacts(context(), l2=ops), rule))


@pytest.mark.parametrize("code", PLANTED)
def test_the_planted_fault_is_found_and_costs(code: str) -> None:
    (found,) = findings(code, level2(healthy, PLANTED[code]))
    assert found.verdict is Verdict.WARN
    assert found.fix
    assert found.cost.seconds is not None
    assert float(found.cost.seconds.value) > 0
    assert found.cost.chip_hours is not None
    held = {quantity.name for quantity in found.quantities}
    assert all(name in held for name in _names(found.sentence))


@pytest.mark.parametrize(("late", "kind", "counted_ns"), [(True, "", 5000), (False, "", 0), (True, "gc.collect", 0),
                                                          (True, "DataLoader next", 0)])  # fmt: skip
def test_tiny_kernels_count_gaps_for_their_launch_only(late: bool, kind: str, counted_ns: int) -> None:
    """Of 5 us before a kernel of 2 us: not where it was queued, nor under garbage collection or input."""
    step = Step()
    step.call("aten::mul_", {"mul": 6000})
    step.host = step.device + 4000 if late else step.host
    if kind:
        step.table.host(kind, step.device, 5000)
    step.call("aten::add_", {"add": 2000}, wait=5000)
    assert operations(step.build(), H100).small == (1, 2000, counted_ns)


@pytest.mark.parametrize("code", PLANTED)
def test_a_healthy_step_passes(code: str) -> None:
    ops = level2(healthy)
    backward = code == "T206"  # a step without backward says nothing of recomputation
    assert [found.verdict for found in findings(code, ops)] == ([] if backward else [Verdict.PASS])


@pytest.mark.parametrize(
    ("code", "other"),
    [(code, other) for code in PLANTED for other in PLANTED if code != other
     and (code, other) not in {("T201", "T204"), ("T201", "T202"), ("T205", "T208")}],
)  # fmt: skip
def test_other_faults_do_not_set_it_off(code: str, other: str) -> None:
    verdicts = [found.verdict for found in findings(code, level2(healthy, healthy, healthy, PLANTED[other]))]
    assert Verdict.WARN not in verdicts


@pytest.mark.parametrize("code", [*PLANTED, "T210", "T211", "T212", "T213"])
def test_without_operations_nothing_is_said(code: str) -> None:
    assert findings(code, None) == []
    assert findings(code, level2()) == []


@pytest.mark.parametrize("code", ["T202", "T203", "T204", "T207", "T209"])
def test_without_shapes_it_is_unknown(code: str) -> None:
    step = Step()
    step.call("aten::mm", {"gemm": 1000})
    (found,) = findings(code, operations(step.build(), H100))
    assert found.verdict is Verdict.UNKNOWN


def test_seconds_of_the_slow_matmuls() -> None:
    (found,) = findings("T201", level2(slow_matmul))
    lost_ns = 4 * (mm_ns(8192, 8192, 8192, 0.3) - mm_ns(8192, 8192, 8192, 0.6))
    assert found.cost.seconds is not None
    assert float(found.cost.seconds.value) == pytest.approx(lost_ns * 1e-9, rel=1e-5)


def test_recomputation_that_is_planned_passes() -> None:
    facts = TraceFacts(context(training={"recompute": "full"}), l2=level2(healthy, recomputed))
    rule = find_rule("T206")
    assert [found.verdict for found in rule.check(facts, rule)] == [Verdict.PASS]


def module(*lines: str) -> HloModule:
    head = "HloModule m, is_scheduled=true, num_partitions=8\n\nENTRY %e () -> f32[] {\n"
    return parse(head + "".join(f"  {line}\n" for line in lines) + "}\n")


X = "%x = bf16[128,512]{1,0} parameter(0)"
W = "%w = bf16[512,256]{1,0} parameter(1)"
V = "%v = bf16[2048,64]{1,0} parameter(2)"
DOT = '%d = bf16[128,256]{1,0} dot(%x, %w), lhs_contracting_dims={1}, metadata={op_name="jit(f)/{a}/dot"}'
GATHER = "%g = bf16[128,2048]{1,0} all-gather(%d), dimensions={1}, replica_groups=[1,8]<=[8]"
USE = "%n = bf16[128,64]{1,0} dot(%g, %v), lhs_contracting_dims={1}"
CALL = '%k = bf16[128,2048]{1,0} custom-call(%g), custom_call_target="my_kernel"'
AGAIN = '%r = bf16[128,256]{1,0} dot(%x, %w), lhs_contracting_dims={1}, metadata={op_name="f/rematted_computation/dot"}'


def compiled(code: str, *lines: str) -> list[Finding]:
    return findings(code, level2(healthy, hlo=[module(*lines)]))


def test_resharding() -> None:
    (found,) = compiled("T210", X, W, V, DOT, GATHER, USE)
    assert found.verdict is Verdict.WARN
    sent = 128 * 2048 * 2 * 7 / 8
    assert found.value is not None
    assert float(found.value.value) == pytest.approx(sent)
    assert found.cost.seconds is not None
    assert float(found.cost.seconds.value) == pytest.approx(sent / 450e9)
    assert [f.verdict for f in compiled("T210", X, W, DOT)] == [Verdict.PASS]


def test_serial_call() -> None:
    (found,) = compiled("T211", X, W, DOT, GATHER, CALL)
    assert (found.verdict, found.cost.seconds is not None) == (Verdict.WARN, True)
    assert "my_kernel" in found.sentence
    assert [f.verdict for f in compiled("T211", X, W, DOT)] == [Verdict.PASS]


def test_remat() -> None:
    (found,) = compiled("T212", X, W, DOT, AGAIN)
    assert found.verdict is Verdict.WARN
    assert found.value is not None
    assert float(found.value.value) == pytest.approx(100)
    assert [f.verdict for f in compiled("T212", X, W, DOT)] == [Verdict.PASS]
    facts = TraceFacts(
        context(training={"recompute": "full"}), l2=level2(healthy, hlo=[module(X, W, DOT, AGAIN)])
    )  # fmt: skip
    rule = find_rule("T212")
    assert [f.verdict for f in rule.check(facts, rule)] == [Verdict.PASS]


def test_remat_without_forward_is_unknown() -> None:
    assert [f.verdict for f in compiled("T212", X, W, AGAIN)] == [Verdict.UNKNOWN]


@pytest.mark.parametrize(("busy", "verdict"), [(30.0, Verdict.WARN), (80.0, Verdict.PASS)])
def test_speed_of_light(busy: float, verdict: Verdict) -> None:
    kernel = KernelCounters(
        "0", "flash_fwd", "0", "7", "9.0", (1,), (1,), sm_percent=busy, memory_percent=10.0, waves_per_sm=0.5
    )  # fmt: skip
    (found,) = findings("T213", level2(healthy, ncu=[kernel]))
    assert found.verdict is verdict
    if verdict is Verdict.WARN:
        assert found.cost.seconds is not None
        assert float(found.cost.seconds.value) == pytest.approx(2e-3 * 0.5)
        assert "0.5 waves" in found.sentence


def test_names_from_a_trace_cannot_forge_a_figure() -> None:
    step = Step()
    healthy(step)
    step.call(
        "aten::{lost.x}<script>", {"k": 1_000_000_000}, meta=shaped([[4, 4, 256, 256], []])
    )  # fmt: skip
    step.call("aten::softmax_{evil}", {"k": 100_000_000}, meta=shaped([[4, 4, 256, 256], []]))
    (found,) = findings("T209", operations(step.build(), H100))
    assert _names(found.sentence) == ["lost.attention_scores", "lost.attention_scores.share"]


def _names(sentence: str) -> Sequence[str]:
    """What a renderer would look up."""
    return [part.partition("}")[0] for part in sentence.split("{")[1:]]
