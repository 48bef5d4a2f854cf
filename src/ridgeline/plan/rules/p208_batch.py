"""P208: are there enough micro-batches for the pipeline and the data-parallel group."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P208", "Micro-batches keep the pipeline busy", threshold=8, unit="%",
      why="of the step: four micro-batches a stage leave a bubble of about a fifth, twelve one of 8%")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Micro-batches that each replica runs in a step (sequences over dp times micro-batch), and what the pipeline's first
    and last micro-batch cost: the bubble's share of the step under the plan's schedule.

    ## Why it matters
    The bubble is idle time of every chip. It shrinks only with more micro-batches, interleaving or fewer stages, and
    more data parallelism on the same batch makes it grow.

    ## How to confirm
    `ridgeline plan` simulates the schedule event by event; the timeline shows the idle corners.

    ## What to do, cheapest first
    1. Interleave: two or more model chunks on each stage.
    2. Fewer stages, or less data parallelism on the same batch.
    3. A larger batch, where the loss allows it.

    ## Sources
    Narayanan et al. 2021 (arXiv:2104.04473), section 2.2; Qi et al. 2023 (arXiv:2401.10241).
    """
    stages, replicas = facts.axis("pp"), facts.axis("dp")
    each = facts.proposal.layouts.micro_batches(facts.proposal.sequences)
    count = given("plan.micro_batches", int(each[0]), "1", "the batch and the plan").titled(
        "Micro-batches of a replica"
    )
    run = f"{facts.proposal.sequences:,} sequences over dp={replicas} are {{{count.name}}} micro-batches of "
    run += f"{facts.plan['micro_batch']}"
    bubble = facts.terms.get("bubble")
    if stages == 1 or bubble is None:
        yield this.found(Verdict.PASS, f"{run}; there is no pipeline to fill.", "", cites=(count,))
        return
    share = facts.share(bubble)
    holds = this.holds(share)
    uneven = facts.spec.layers % (stages * facts.axis("chunks"))
    odd = f" {facts.spec.layers} layers do not divide over {stages * facts.axis('chunks')} stages." if uneven else ""
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{run} for {stages} stages: the bubble is {{{share.name}|2}} of the step under {facts.plan['schedule']}.{odd}",
        "" if holds else "Interleave the stages, or use fewer of them.",
        value=share, cost=Cost() if holds else facts.lost(_named(bubble)), cites=(count, bubble),
    )  # fmt: skip


def _named(bubble: Quantity) -> Quantity:
    return derive("bubble.lost", "bubble", "s", bubble=bubble).titled("Pipeline bubble")
