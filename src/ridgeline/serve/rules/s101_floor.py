"""S101: the latency need is above the floor."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import given
from ridgeline.serve.steps.facts import LatencyFacts


@rule("S101", "The latency need is above the floor")
def check(facts: LatencyFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The asked time per token against what bytes over bandwidth and FLOPs over peak allow.

    ## Why it matters
    No engine, kernel or setting goes below the floor: only fewer bytes, more chips or a smaller batch move it.

    ## How to confirm
    `ridgeline why CASE latency.floor` opens the bytes and the rates.

    ## What to do, cheapest first
    1. Serve fewer sequences at once.
    2. Weights or a cache of fewer bits.
    3. More chips a replica.

    ## Sources
    Williams, Waterman and Patterson 2009, Roofline.
    """
    asked = facts.settings.slo_tpot_ms
    if asked is None:
        return
    need = given("latency.need", asked * 1e-3, "s/token", "slo_tpot_ms").titled("Asked time per token")
    high = facts.ends["tpot"][1]
    cites = (need, facts.floor, facts.tpot, high)
    if float(need.base) < float(facts.floor.base):
        yield this.found(Verdict.FAIL, "{latency.need} a token is asked and the floor is {latency.floor}.",
                         "Move the floor: fewer bytes, more chips or a smaller batch.", cites=cites)  # fmt: skip
    elif float(need.base) < float(facts.tpot.base):
        yield this.found(Verdict.FAIL, "{latency.need} a token is asked and {latency.tpot} expected.",
                         "Lower the batch, or add chips.", cites=cites)  # fmt: skip
    elif float(need.base) < float(high.base):
        yield this.found(Verdict.WARN, "{latency.need} a token is asked: {latency.tpot} is expected, and "
                         "{latency.tpot.high80} is inside the 80% interval.",
                         "Measure a few rows and give them with --measured.", cites=cites)  # fmt: skip
    else:
        yield this.found(Verdict.PASS, "{latency.tpot} a token is within {latency.need}.", "", cites=cites)
