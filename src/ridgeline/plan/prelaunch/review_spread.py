"""How sure each term of a predicted step is: the 80% interval of its kernels or wires, as ratios to the prediction."""

from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import kernels
from ridgeline.arithmetic.kernels import Network
from ridgeline.core.surfaces import Estimate
from ridgeline.plan.prelaunch.review_facts import MATMULS, ReviewFacts
from ridgeline.plan.prelaunch.review_shapes import matmul_rows
from ridgeline.plan.steps.ranks import Group, groups
from ridgeline.plan.steps.workload import workload

_KINDS = {"tp": "all_reduce", "ep": "all_to_all", "cp": "all_gather", "dp": "reduce_scatter"}


@dataclass(frozen=True)
class Spread:
    """Ends of the interval over the prediction, and ``origin``: what the interval is that of."""

    low: float
    high: float
    origin: str


def spread(facts: ReviewFacts, term: str) -> Spread:
    """The interval of one term. What no kernel or wire table holds takes that of whole published steps."""
    if term in MATMULS or (term == "recompute" and facts.plan["recompute"] == "full"):
        rows = matmul_rows(facts)
        low, high = (sum(row.weight * getattr(row, end) for row in rows) for end in ("low", "high"))
        return Spread(
            low, high, "measured matmuls" if all(row.measured for row in rows) else "matmuls of other devices"
        )
    if term in ("attention", "recompute"):
        return _attention(facts)
    group = term.partition("_")[0]
    if term.endswith("_exposed") and group in _KINDS:
        return _wire(facts, group)
    ends = facts.expected
    step = float(ends.step.value)
    return Spread(float(ends.step_low.value) / step, float(ends.step_high.value) / step, "whole published steps")


def _attention(facts: ReviewFacts) -> Spread:
    core = max(workload(facts.spec, facts.proposal.file.seq).cores, key=lambda item: item.uses, default=None)
    if core is None:
        return Spread(1.0, 1.0, "no attention")
    tp = facts.axis("tp")
    heads, kv_heads = (max(count / tp, 1) for count in (core.heads, core.kv_heads))
    seq = facts.proposal.file.seq
    found = kernels.attention(facts.cluster.device).seconds(
        facts.axis("micro_batch"), heads, min(kv_heads, heads), seq, core.head_dim
    )
    return _of(found, "attention")


def _wire(facts: ReviewFacts, name: str) -> Spread:
    lying = groups(facts.cluster, facts.proposal.layouts)
    group: Group = {"tp": lying.tp, "ep": lying.ep, "cp": lying.cp, "dp": lying.shard}[name]
    p = facts.proposal
    stream = facts.axis("micro_batch") * p.file.seq / facts.axis("cp") * p.spec.d_model * 2.0  # bf16
    found = kernels.collective(facts.cluster.device).seconds(
        _KINDS[name], np.array([stream]), group.size, group.near, Network.of(facts.cluster.network_bytes_per_s)
    )
    return _of(found, f"{_KINDS[name].replace('_', '-')} of {int(group.size[0])} chips")


def _of(found: Estimate, what: str) -> Spread:
    seconds = float(np.ravel(found.seconds)[0])
    if seconds <= 0:
        return Spread(1.0, 1.0, what)
    low, high = (float(np.ravel(end)[0]) / seconds for end in (found.low, found.high))
    known = bool(np.ravel(found.measured)[0])
    return Spread(low, high, f"measured {what}" if known else f"modelled {what}")
