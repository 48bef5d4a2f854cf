"""S403: does splitting prefill and decode pay at this size."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.levers.facts import LeverFacts


@rule("S403", "Prefill and decode apart pay at this size", threshold=0.0, unit="%", at_least=True,
      why="below zero the split costs more than the interference it removes")  # fmt: skip
def check(facts: LeverFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The cost of output tokens with replicas split into a prefill and a decode pool, against all of them doing both.

    ## Why it matters
    The split keeps prompts from delaying decoding, so a TPOT limit allows larger batches. It pays for that with pools
    that are whole replicas, one of which waits for the other, and with moving every cache: in one production run
    167 MB took 38.7 ms, 4.3 GB/s.

    ## How to confirm
    Tokens a second of both layouts at the same TTFT and TPOT limits, on the same chips.

    ## What to do, cheapest first
    1. Chunked prefill: it removes most of the interference on one pool.
    2. Smaller replicas, so that pools match the ratio of prefill to decode.
    3. A faster transfer, layer by layer while the prompt is computed.

    ## Sources
    Zhong et al. 2024, DistServe (arXiv:2401.09670); vllm-project/vllm, issue 50913; sgl-project/sglang, issue 6411.
    """
    row = facts.ledger.row("disaggregated")
    share = facts.share(row)
    if share is None:
        yield this.found(Verdict.UNKNOWN, f"The split was not priced: {row.why}.", "Give replicas in the traffic file.")
        return
    replicas = facts.ledger.setup.traffic.replicas
    used = row.status == "in use"
    holds, pay = this.holds(share), "save" if share.value > 0 else "do not pay: they save"
    yield this.found(
        Verdict.WARN if used and not holds else Verdict.PASS,
        f"With {replicas} replicas, pools for prefill and decode {pay} {{{share.name}}} of the cost.",
        "Go back to replicas that do both, with chunked prefill." if used and not holds else "",
        value=share,
    )
