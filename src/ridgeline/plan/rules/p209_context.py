"""P209: is the sequence split as it should be."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P209", "The sequence is split where it pays", threshold=2, unit="%",
      why="of the step: exposed traffic of the context ring that more tokens a chip would hide")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Tokens of a sequence on one chip under context parallelism, and the exposed traffic of keys and values round the
    ring. Without context parallelism: whether one chip's share of a micro-batch is more than its activations allow is
    the business of the memory rule.

    ## Why it matters
    Keys and values travel once a layer and hide under attention, which grows with the square of the sequence. A short
    sequence that is split has too little attention to hide them under, and causal masks make the split uneven.

    ## How to confirm
    Run one layer of attention with the split and without, and compare with the ring's time.

    ## What to do, cheapest first
    1. Less context parallelism and more tensor parallelism or recomputation.
    2. Give each rank two slices from both ends of the sequence, so that causal work is even.

    ## Sources
    Liu et al. 2023, Ring Attention (arXiv:2310.01889); Llama 3 (arXiv:2407.21783), section 3.3.2.
    """
    cp, seq = facts.axis("cp"), facts.proposal.file.seq
    tokens = given("plan.sequence_on_chip", seq / cp, "token", "the plan").titled("Tokens of a sequence on one chip")
    ring = facts.terms.get("cp_exposed")
    if cp == 1:
        yield this.found(Verdict.PASS, f"A sequence of {seq:,} is whole on its chips.", "", cites=(tokens,))
        return
    if ring is None:
        yield this.found(
            Verdict.PASS, f"{seq:,} tokens over cp={cp} are {{{tokens.name}}} a chip; the ring hides.", "",
            cites=(tokens,),
        )  # fmt: skip
        return
    share = facts.share(ring)
    holds = this.holds(share)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{seq:,} tokens over cp={cp} are {{{tokens.name}}} a chip; the ring is exposed for {{{share.name}|2}} of "
        "the step.",
        "" if holds else "Use less context parallelism; attention is too short to hide the ring.",
        value=share, cost=Cost() if holds else facts.lost(_lost(ring)), cites=(tokens, ring),
    )  # fmt: skip


def _lost(ring: Quantity) -> Quantity:
    return derive("context_ring.lost", "ring", "s", ring=ring).titled("Exposed traffic of the context ring")
