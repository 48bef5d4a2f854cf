"""Proposals for the tests of the review: a small dense model on 64 H100, changed where a test asks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ridgeline.core.case import Case
from ridgeline.core.finding import Finding, RuleConfig, run_rules
from ridgeline.core.plugins import rules
from ridgeline.core.quantity import Quantity
from ridgeline.plan.prelaunch.comparable import compare
from ridgeline.plan.prelaunch.review import propose
from ridgeline.plan.prelaunch.review_facts import ReviewFacts

MODEL: dict[str, Any] = {
    "name": "small", "layers": 32, "d_model": 4096, "d_ff": 14336, "heads": 32, "kv_heads": 8, "head_dim": 128,
    "vocab": 131072,
}  # fmt: skip
MOE: dict[str, Any] = {
    "name": "moe", "layers": 24, "d_model": 2048, "heads": 16, "kv_heads": 4, "vocab": 131072, "experts": 64,
    "top_k": 8, "expert_ff": 1024, "d_ff": None,
}  # fmt: skip
PLAN: dict[str, Any] = {"tp": 2, "sequence_parallel": 1, "zero": 1}
FILE: dict[str, Any] = {"sequences": 256, "seq": 4096, "tokens": "1T", "cluster": {"chips": "64xH100"}}

# The dense run of the MFU incident: DP=32 x TP=8 on 256 Trillium-class chips.
INCIDENT: dict[str, Any] = {
    "sequences": 256, "seq": "8k", "mask": "full", "cluster": {"chips": "256xTPU v6e"},
    "plan": {"tp": 8, "dp": 32, "zero": 1, "recompute": "full"},
    "geometry": {"vocab_tile": 128, "vocab_shards": 256, "embedding_matmul": True},
    "model": {
        "layers": 49, "d_model": 11776, "d_ff": 30720, "heads": 112, "kv_heads": 8, "head_dim": 96, "vocab": 151936,
    },
}  # fmt: skip
ALIGNED: dict[str, Any] = {
    "name": "the dense run of last spring", "mfu": "50%", "convention": "6n", "sequences": 256, "seq": "8k",
    "cluster": {"chips": "256xTPU v6e"}, "plan": {"tp": 8, "dp": 32, "zero": 1, "recompute": "full"},
    "model": {
        "layers": 49, "d_model": 11776, "d_ff": 30720, "heads": 96, "kv_heads": 8, "head_dim": 128, "vocab": 131072,
    },
}  # fmt: skip


def facts(
    plan: Mapping[str, Any] | None = None, model: Mapping[str, Any] | None = None, base: Mapping[str, Any] = FILE,
    **rest: Any,
) -> ReviewFacts:  # fmt: skip
    """The facts of the small proposal, changed where given."""
    own = {"plan": PLAN | dict(plan or {}), "model": MODEL | dict(model or {})}
    data = {**own, **base, **{key: value for key, value in rest.items() if value is not None}}
    return ReviewFacts(propose({**data, "model": _plain(data["model"])}, Path()))


def _plain(model: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in model.items() if value is not None}


def incident(**rest: Any) -> ReviewFacts:
    """The design of the MFU incident."""
    return ReviewFacts(propose({**INCIDENT, **rest}, Path()))


def against(ours: ReviewFacts, **rest: Any) -> ReviewFacts:
    """The same with a comparable run."""
    return replace(ours, comparison=compare({**ALIGNED, **rest}, ours, Path()))


def findings(of: ReviewFacts, code: str, threshold: float | None = None) -> list[Finding]:
    """What one rule says; every number that it mentions must be in its case."""
    config = RuleConfig(select=(code,), thresholds={} if threshold is None else {code: threshold})
    found = run_rules(rules().values(), of, config, family="P2")
    case = Case("review", "test")
    case.add_findings(found)
    for item in found:
        case.text(item.sentence)
        case.text(item.fix)
    return found


def finding(of: ReviewFacts, code: str, threshold: float | None = None) -> Finding:
    """The one thing that a rule says."""
    (found,) = findings(of, code, threshold)
    return found


def verdict(of: ReviewFacts, code: str, threshold: float | None = None) -> str:
    """Its verdict in words."""
    return str(finding(of, code, threshold).verdict)


def number(quantity: Quantity | None) -> float:
    """A quantity as a plain number in its unit."""
    assert quantity is not None
    return float(quantity.value)
