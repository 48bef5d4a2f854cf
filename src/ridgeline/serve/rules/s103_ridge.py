"""S103: the batch uses the arithmetic that is paid for."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import leaf
from ridgeline.serve.steps.facts import LatencyFacts, ridge_batch


@rule("S103", "The batch uses the arithmetic that is paid for", threshold=10, unit="%", at_least=True,
      why="a planning limit: beyond it the remedy below is worth its trouble")  # fmt: skip
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Model FLOPs utilisation of a step at the asked batch, in percent of peak, and the batch at the ridge.

    ## Why it matters
    Below the ridge a step reads all weights whatever the batch: more sequences cost almost no time.

    ## How to confirm
    `--batch` with twice the sequences: TPOT hardly moves and tokens a second nearly double.

    ## What to do, cheapest first
    1. Let more requests in, as far as the latency need allows.
    2. Fewer chips a replica and more replicas.

    ## Sources
    Pope et al. 2022 (arXiv:2211.05102), section 2.
    """
    good = this.holds(facts.mfu)
    ridge = leaf("serve.ridge_batch", ridge_batch(facts), "1", "assumed", note="weights alone, without the cache")
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        f"A step of {facts.load.sequences:,.0f} sequences uses {{serve.mfu}} of the peak; weights and arithmetic meet "
        "at a batch of {serve.ridge_batch}.",
        "" if good else "Let more requests in, or use fewer chips a replica.", value=facts.mfu,
        cites=(ridge.titled("Batch at the ridge"),),
    )  # fmt: skip
