"""A changed model counts what it now has."""

from tests.plan.reviews import MOE, facts

from ridgeline.arithmetic.params import counts
from ridgeline.arithmetic.spec import MLP, AnyFfn, ModelSpec, MoE, Part
from ridgeline.plan.prelaunch.reshaped import resized, with_ffns


def wider(block: AnyFfn) -> AnyFfn:
    return resized(block, d_ff=2 * block.d_ff) if isinstance(block, MLP) else block


def test_parameters_follow_the_new_width() -> None:
    spec = facts().spec
    assert counts(spec)[Part.MLP][0] == 32 * 3 * 4096 * 14336  # what it derived once must not be kept
    assert counts(with_ffns(spec, wider))[Part.MLP][0] == 2 * counts(spec)[Part.MLP][0]


def test_a_shorter_pattern() -> None:
    spec = with_ffns(facts().spec, lambda block: block, [0, 0])
    assert spec.layers == 2
    assert counts(spec)[Part.MLP][0] == 2 * 3 * 4096 * 14336


def test_experts() -> None:
    spec: ModelSpec = facts(
        {"tp": 1, "sequence_parallel": 0},
        base={
            "sequences": 64,
            "seq": 4096,
            "cluster": {"chips": "64xH100"},
            "model": {k: v for k, v in MOE.items() if v},
        },
    ).spec
    half = with_ffns(spec, lambda block: resized(block, experts=32) if isinstance(block, MoE) else block)
    assert counts(half)[Part.EXPERTS][0] == counts(spec)[Part.EXPERTS][0] / 2
