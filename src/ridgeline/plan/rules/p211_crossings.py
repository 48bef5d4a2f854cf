"""P211: which parallel groups leave the scale-up domain."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts
from ridgeline.plan.steps.ranks import groups

_WORDS = {"tp": "tensor", "ep": "expert", "cp": "context", "dp": "data", "pp": "pipeline"}
_INSIDE = ("tp", "ep", "cp")  # their traffic stands in the way of every layer


@rule("P211", "Layer-wise traffic stays in the scale-up domain")
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Which groups cross from one node, rack or pod to another: tensor, expert and context parallelism, whose traffic
    every layer waits for, and data and pipeline parallelism, which may.

    ## Why it matters
    The network is an order of magnitude slower than the links of a domain. A tensor-parallel group across it exposes
    every reduction; expert traffic across it is what expert-parallel training is designed around.

    ## How to confirm
    Print the hosts of each group at start-up; run an all-reduce of a layer's activations over the group.

    ## What to do, cheapest first
    1. Order ranks so that tensor, then expert and context groups are neighbours.
    2. Keep tensor parallelism at most as large as the domain.
    3. Route tokens to few nodes each, where experts must cross.

    ## Sources
    Narayanan et al. 2021 (arXiv:2104.04473), section 3; DeepSeek-V3 (arXiv:2412.19437), section 3.2.
    """
    lying = groups(facts.cluster, facts.proposal.layouts)
    sizes = {"tp": lying.tp, "ep": lying.ep, "cp": lying.cp, "dp": lying.shard}
    crossing = [name for name, group in sizes.items() if int(group.size[0]) > int(group.near[0])]
    if facts.axis("pp") > 1 and int(lying.stage_is_far[0]):
        crossing.append("pp")
    bad = [name for name in crossing if name in _INSIDE]
    domain = f"scale-up domains of {facts.cluster.node_size:,} chips"
    said = ", ".join(_WORDS[name] for name in crossing) or "no"
    wires = tuple(facts.wires[name] for name in crossing if name in facts.wires)
    if not bad:
        yield this.found(Verdict.PASS, f"In {domain}, {said} parallelism crosses the network.", "", cites=wires)
        return
    cost = facts.lost(_exposed(facts, bad)) if any(f"{name}_exposed" in facts.terms for name in bad) else Cost()
    yield this.found(
        Verdict.FAIL if "tp" in bad else Verdict.WARN,
        f"In {domain}, {said} parallelism crosses the network; every layer waits for "
        f"{' and '.join(_WORDS[name] for name in bad)} traffic.",
        f"Keep {' and '.join(bad)} inside a domain of {facts.cluster.node_size:,} chips.",
        cost=cost, cites=wires,
    )  # fmt: skip


def _exposed(facts: ReviewFacts, bad: list[str]) -> Quantity:
    parts = {name: facts.terms[f"{name}_exposed"] for name in bad if f"{name}_exposed" in facts.terms}
    return derive("crossing.lost", " + ".join(parts), "s", **parts).titled("Exposed traffic that crosses domains")
