"""S210: can every request be served at all."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.simulate.facts import Simulated


@rule("S210", "Every request can be served", threshold=0, unit="1",
      why="a request that can never be served is an error that the user sees")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Requests that no load would let through: longer than the model's context, than the key-value blocks of a replica,
    or than a step where the scheduler does not cut prompts.

    ## Why it matters
    They are refused in production, and they miss every SLO here.

    ## How to confirm
    The longest prompts of the trace, against `ridgeline serve capacity`.

    ## What to do, cheapest first
    1. Cut or refuse such prompts at the gateway, with a message.
    2. Use a scheduler with chunked prefill; give the cache more memory.
    3. Serve the long ones on a deployment of their own.

    ## Sources
    The admission equation of `ridgeline serve capacity`.
    """
    refused = facts.measured(
        "simulate.unserved", int((~facts.result.served).sum()), "1", "Requests that cannot be served"
    )
    reasons = "; ".join(f"{len(rows):,}: {text}" for text, rows in facts.result.rejected().items())
    yield this.found(
        Verdict.PASS if this.holds(refused) else Verdict.FAIL,
        f"{{simulate.unserved}} of {len(facts.result.workload):,} requests cannot be served"
        + (f" ({reasons})." if reasons else "."),
        "Cut or refuse these at the gateway, or serve them on a deployment of their own.",
        value=refused,
    )  # fmt: skip
