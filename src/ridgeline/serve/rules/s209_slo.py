"""S209: is the SLO met at this load."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import given
from ridgeline.serve.simulate.facts import Simulated


@rule("S209", "The SLO is met at this load")
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The share of the requests whose first token and whose time per output token both keep their limits, against the
    share that the SLO asks for; each class against its own.

    ## Why it matters
    Throughput beyond the SLO is not sold. Goodput, requests a second that keep both limits, is.

    ## How to confirm
    Replay the trace against the engine and count requests by the same two definitions.

    ## What to do, cheapest first
    1. Admit no more than the highest rate that meets the SLO.
    2. Change the batch: a smaller token budget shortens TPOT, a larger one TTFT.
    3. Add replicas; split prefill and decode; speculate where batches are small.

    ## Sources
    Zhong et al., DistServe (OSDI 2024), for goodput under two limits.
    """
    highest = facts.rates.get("max_rate")
    known = (
        f" It would be at up to {{{highest.name}}}." if highest is not None and not facts.result.workload.closed else ""
    )
    for name, item in facts.metrics.by_class.items():
        suffix = "" if len(facts.metrics.by_class) == 1 else f".{name}".lower().replace(" ", "_")
        share = facts.measured(f"simulate.goodput.share{suffix}", 100 * item.share, "%", "Share that meets the SLO")
        limit = given(f"simulate.slo.share{suffix}", 100 * item.slo.at, "%", "--slo, at").titled("Share asked for")
        who = "the requests" if not suffix else f"class {name}"
        yield Finding(
            this.code, this.title, Verdict.PASS if item.met else Verdict.FAIL,
            f"{{{share.name}}} of {who} meet {item.slo.words.rpartition(' for ')[0]}; {{{limit.name}}} are asked for."
            + ("" if item.met else known),
            "" if item.met else "Limit admission at the highest rate, then change the batch, then add replicas.",
            value=share, threshold=limit, at_least=True, cites=(highest,) if highest is not None else (),
        )  # fmt: skip
