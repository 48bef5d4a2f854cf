"""P205: does every expert see enough tokens."""

from collections.abc import Iterable

import numpy as np

from ridgeline.arithmetic.spec import MoE
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts
from ridgeline.plan.steps.layout import Layout


@rule("P205", "Experts see enough tokens", threshold=512, unit="token", at_least=True,
      why="of a micro-batch: below four tiles of 128 rows, padding and short matmuls rule")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Experts on one rank, and the tokens that each gets from one micro-batch when the router is even. The price is what
    the step model gains when a micro-batch brings twice as many.

    ## Why it matters
    Each expert is a matmul of its own. Few rows run far below the ceiling and pad to whole tiles; real routers are
    uneven, so the least used expert gets less than this.

    ## How to confirm
    Time one grouped matmul with these rows, and log the tokens per expert of the first hundred steps of the pilot.

    ## What to do, cheapest first
    1. A larger micro-batch, where memory allows.
    2. More expert parallelism, so that a rank's experts are fed from more data-parallel ranks.
    3. Fewer, wider experts in the next model.

    ## Sources
    Gale et al. 2022, MegaBlocks (arXiv:2211.15841); measured matmul tables, docs/design/surfaces.md.
    """
    moes = {(b.experts, b.top_k, b.expert_ff) for kind in facts.spec.kinds for b in kind.ffns if isinstance(b, MoE)}
    for experts, top_k, width in sorted(moes):
        tokens = _tokens(facts, experts, top_k, width)
        holds = this.holds(tokens)
        rank = experts / facts.axis("ep")
        yield this.found(
            Verdict.PASS if holds else Verdict.WARN,
            f"{experts} experts over ep={facts.axis('ep')} are {rank:g} on a rank; each sees {{{tokens.name}}} of a "
            f"micro-batch, {top_k} of {experts} used.",
            "" if holds else "Use a larger micro-batch or more expert parallelism.",
            value=tokens, cost=Cost() if holds else _cost(facts, tokens),
        )  # fmt: skip


def _tokens(facts: ReviewFacts, experts: int, top_k: int, width: int) -> Quantity:
    name = f"experts.{experts}x{width}"
    sizes = {
        "ep": facts.axis("ep"),
        "etp": facts.axis("etp"),
        "tp": facts.axis("tp"),
        "experts": experts,
        "top_k": top_k,
    }
    inputs = {key: given(f"{name}.{key}", value, "1", "the plan and the model") for key, value in sizes.items()}
    rows = facts.axis("micro_batch") * facts.proposal.file.seq / facts.axis("cp")
    inputs["rows"] = given(f"{name}.rows", rows, "token", "the plan")
    found = derive(f"{name}.tokens", "rows*top_k*ep*etp/tp/experts", "token", **inputs)
    return found.titled("Tokens per expert and micro-batch")


def _cost(facts: ReviewFacts, tokens: Quantity) -> Cost:
    layouts = facts.proposal.layouts
    doubled = Layout(**{**vars(layouts), "micro_batch": np.asarray(layouts.micro_batch * 2)})
    if facts.proposal.sequences % int(doubled.dp[0] * doubled.micro_batch[0]):
        return Cost()
    points = facts.instead(f"{tokens.name}.doubled", layouts=doubled)
    return facts.points(points) if float(points.value) > 0 else Cost()
