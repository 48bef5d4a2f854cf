"""P220: is more recomputed than memory asks for."""

from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts
from ridgeline.plan.steps.fits import held, which_fit
from ridgeline.plan.steps.layout import RECOMPUTES, Layout


@rule("P220", "Recomputation is what memory needs", threshold=0.5, unit="%",
      why="MFU points that a lighter policy would give back, if it fits")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Whether a lighter recomputation policy fits the memory of the fullest stage with the same plan, and what it gives
    back.

    ## Why it matters
    Full recomputation repeats the forward pass: up to a quarter of the step, which MFU does not count as useful.

    ## How to confirm
    Run the lighter policy for one step and read the peak memory.

    ## What to do, cheapest first
    1. Selective recomputation: attention scores only.
    2. Recompute a part of the layers of each stage.
    3. A higher ZeRO stage, which makes room for activations.

    ## Sources
    Korthikanti et al. 2022 (arXiv:2205.05198), section 5.
    """
    now = str(facts.plan["recompute"])
    spent = facts.terms.get("recompute")
    if spent is None:
        yield this.found(Verdict.PASS, "Nothing is recomputed.", "")
        return
    share = facts.share(spent)
    lighter = [name for name in RECOMPUTES[: RECOMPUTES.index(now)] if _fits(facts, name)]
    said = f"Recomputation ({now}) takes {{{spent.name}}} of the step, {{{share.name}|2}}"
    if not lighter or facts.capacity is None:
        why = "a lighter policy does not fit" if facts.capacity is not None else "the memory of the chip is not known"
        verdict = Verdict.PASS if facts.capacity is not None else Verdict.UNKNOWN
        yield this.found(verdict, f"{said}; {why}.", "", cites=(spent, share))
        return
    changed = _with(facts.proposal.layouts, lighter[0])
    points = derive("recompute.given_back", "change", "%", change=facts.instead("recompute.lighter", layouts=changed))
    points = points.titled("MFU points of the lighter policy")
    holds = this.holds(points)
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{said}; with recompute = {lighter[0]} it fits too, which gives back {{{points.name}|2}} of peak.",
        "" if holds else f"Set recompute to {lighter[0]}.",
        value=points, cost=Cost() if holds else facts.points(points), cites=(spent, share),
    )  # fmt: skip


def _with(layouts: Layout, name: str) -> Layout:
    return Layout(**{**vars(layouts), "recompute": np.array([RECOMPUTES.index(name)])})


def _fits(facts: ReviewFacts, name: str) -> bool:
    if facts.capacity is None:
        return False
    p = facts.proposal
    return bool(which_fit(held(p.spec, p.batch, _with(p.layouts, name), p.software), p.cluster)[0])
