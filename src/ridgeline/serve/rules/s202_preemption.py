"""S202: is work thrown away by preemption."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.simulate.facts import Simulated


@rule("S202", "Preemption does not throw work away", threshold=5, unit="%",
      why="one prompt token in twenty computed twice costs about as much as a step's host time")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Prompt tokens that were computed more often than once because a request lost its key-value blocks, over those that
    had to be computed.

    ## Why it matters
    An engine that admits more than fits serves each request slower, and computes some prompts twice.

    ## How to confirm
    The engine's log counts preemptions; vLLM's metric is `vllm:num_preemptions_total`.

    ## What to do, cheapest first
    1. Admit fewer sequences: lower max_num_seqs, or admit by `ridgeline serve capacity`.
    2. Keep the cache in 8 bits: twice the tokens.
    3. Swap to host memory where the link is faster than recomputing.

    ## Sources
    vLLM documentation, optimization and tuning: preemption.
    """
    again = facts.measured("simulate.recomputed", 100 * facts.metrics.recomputed, "%", "Prompt tokens computed again")
    times = facts.measured("simulate.preemptions", facts.metrics.preemptions, "1", "Preemptions")
    good = this.holds(again)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "{simulate.preemptions} preemptions; {simulate.recomputed} of the prompt tokens were computed again.",
        "" if good else "Admit fewer sequences (max_num_seqs), or keep the cache in 8 bits.",
        value=again, cites=(times,),
    )  # fmt: skip
