"""S106: tensor-parallel communication is small."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S106", "Tensor-parallel communication is small", threshold=25, unit="%",
      why="a planning limit: beyond it the remedy below is worth its trouble")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of a step in all-reduces over the tensor-parallel group and in the exchange with experts.

    ## Why it matters
    Each layer waits for two small messages whose latency, not bandwidth, sets the time: more chips stop helping.

    ## How to confirm
    Compare `--count` at half the chips: TPOT rises by less than double.

    ## What to do, cheapest first
    1. Fewer chips a group, more replicas.
    2. Attention copied over groups (dp_attention) for experts and latents.

    ## Sources
    Shoeybi et al. 2019 (arXiv:1909.08053), section 3.
    """
    share = facts.share("tensor_parallel", "expert_exchange")
    good = this.holds(share)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN, f"Chips wait for each other in {{{share.name}}} of a token's time.",
        "" if good else "Use fewer chips a group and more replicas.", value=share,
    )  # fmt: skip
