"""S208: do hits come from prompts that were sent twice only because the list was."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.serve.simulate import binding
from ridgeline.serve.simulate.facts import Simulated


@rule("S208", "The prefix cache is not warm from a repeated list", threshold=2, unit="%",
      why="a repeat of a list should add no hits; two percent allows for prefixes shared across the seam")  # fmt: skip
def check(facts: Simulated, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Where a trace with block hashes is laid end to end: how much more of the prompt tokens repeats than in the trace
    once.

    ## Why it matters
    The second pass finds the first one's prompts in the cache. Throughput then looks better by as much as the prefill
    that was saved, which no user will repeat.

    ## How to confirm
    Simulate with `prefix_cache = false`, or the list once.

    ## What to do, cheapest first
    1. Send the list once, or turn the prefix cache off where prompts are repeated.
    2. Restart the engine between two runs of one benchmark.

    ## Sources
    vllm-project/vllm 52884: a second run over the same random prompts, throughput up to 86% too high.
    """
    traffic, load = facts.study.spec.traffic, facts.result.workload
    if traffic.repeat == 1 or not load.has_hashes or not facts.study.engine.prefix_cache:
        return
    once = facts.measured(
        "simulate.hit_rate.once", 100 * binding.achievable(load, slice(0, len(load) // traffic.repeat)), "%",
        "Prompt tokens seen before in one pass",
    )  # fmt: skip
    more = derive("simulate.hit_rate.carried", "whole - once", "%", whole=facts.achievable, once=once)
    more = more.titled("Prompt tokens seen before because the list was repeated")
    good = this.holds(more)
    yield this.found(
        Verdict.PASS if good else Verdict.WARN,
        "Repeating the list makes {simulate.hit_rate.achievable} of the prompt tokens repeat, against "
        "{simulate.hit_rate.once} in one pass.",
        "" if good else "Send the list once, or set prefix_cache = false.",
        value=more, cites=(facts.achievable, once),
    )  # fmt: skip
