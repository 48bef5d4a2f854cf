"""P103: can one conversation be served within the latency budget on the chips it may occupy."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.candidates import Candidate, Product, fits_need
from ridgeline.plan.plan import Plan


@rule("P103", "One conversation fits its chips")
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The smallest number of serving chips on which one turn (prefill, decode, fixed overhead) meets the latency budget,
    against the chips that one conversation may occupy. At the roofline: no attention scores, no communication.

    ## Why it matters
    A model whose single conversation needs a rack is not a product at any price per token. The count is a lower
    bound: real kernels and communication need more.

    ## How to confirm
    Measure a turn of a public model of the same size on the serving stack, at batch 1 and the real context.

    ## What to do, cheapest first
    1. Quantize the weights: decode time falls with the bytes.
    2. Cut the prefill with a prefix cache, or the overhead.
    3. Choose the largest model that fits (`servable.params`).

    ## Sources
    Pope et al. 2022, Efficiently Scaling Transformer Inference (arXiv:2211.05102).
    """
    if plan.product is None:
        yield this.found(
            Verdict.UNKNOWN, "No latency need was given, so servability was not checked.",
            "Add a [need] table to the study, or --turn to the command.",
        )  # fmt: skip
        return
    yield _finding(plan, plan.choice, plan.product, this)
    if plan.deviates and not fits_need(plan.optimum, plan.product):
        yield _finding(plan, plan.optimum, plan.product, this)


def _finding(plan: Plan, item: Candidate, need: Product, this: Rule) -> Finding:
    assert plan.servable is not None
    chosen = item is plan.choice
    needed = item.needed[need.main].exact
    machine = need.devices[need.main].name
    who = f"the chosen {item.label}" if chosen else f"the compute-optimal {item.label}"
    fits = fits_need(item, need)
    over = derive(f"{needed.name}.over", "needed/limit", "1", needed=needed, limit=need.chips_limit)
    tail = "" if fits else f": {{{over.name}}} times as many"
    sentence = (
        f"One conversation with {who} takes {{{needed.name}}} of {machine}, where {{need.chips_per_conversation}} "
        f"may be used{tail}."
    )
    verdict = Verdict.PASS if fits else (Verdict.FAIL if chosen else Verdict.WARN)
    fix = "Measure a real turn: this is the roofline." if fits else "Choose at most {servable.params}, or fewer bits."
    return this.found(verdict, sentence, fix, value=needed, cites=(need.chips_limit, over, plan.servable))
