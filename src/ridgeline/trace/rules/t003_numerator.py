"""T003: does the named convention give the reported MFU."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.audit import Audit, Reading
from ridgeline.trace.facts import TraceFacts


@rule("T003", "The convention gives the reported MFU", threshold=2, unit="%",
      why="relative: what rounding of the peak and of the step time explains")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The reported MFU against the run's own: FLOPs of a step under the named convention, over chips, peak and step time.
    Where they differ, which published convention gives the reported number: recomputed FLOPs counted (HFU), the
    causal mask not halved, all experts instead of the active ones, embeddings or a padded vocabulary counted.

    ## Why it matters
    A numerator that counts recomputation reads a third too high and rewards turning recomputation on. Counting all
    experts has published 3.6 times the true rate.

    ## How to confirm
    Print FLOPs per token in the trainer and compare with `ridgeline model`, which lists every convention.

    ## What to do, cheapest first
    1. Name the convention that matches.
    2. Report MFU and HFU side by side where recomputation is on.

    ## Sources
    MaxText pull requests 678 and 1988, Megatron-LM issue 831, OLMo-core pull request 614 show each of these mistakes.
    """
    found, named = facts.audit, facts.context.convention
    readings = [r for r in found.readings if r.convention == named and r.off is not None] if found else []
    if found is None or not readings:
        yield this.found(
            Verdict.UNKNOWN, "The reported MFU cannot be recomputed.",
            "Give model, machine, batch, mfu.reported and observed.step in run.toml.",
        )  # fmt: skip
        return
    own = readings[0]
    off = _distance(own)
    if this.holds(off):
        sentence = f"{own.title} gives {{{own.mfu.name}}}, within {{{off.name}}} of the reported MFU."
        yield this.found(Verdict.PASS, sentence, "", value=off, cites=(own.mfu,))
        return
    yield _mismatch(found, own, off, this)


def _mismatch(found: Audit, own: Reading, off: Quantity, this: Rule) -> Finding:
    assert this.threshold is not None
    near = [r for r in found.matches(float(this.threshold.value)) if r is not own]
    said = "No published convention gives it: the step time or the peak is another one."
    if near:
        said = f"It is what {near[0].title} over the {near[0].denominator} peak gives"
        said += ": recomputed FLOPs are counted, an HFU." if near[0].hardware else "."
    return this.found(
        Verdict.FAIL,
        f"{own.title} gives {{{own.mfu.name}}}, {{{off.name}}} off the reported MFU. {said}",
        "Recompute MFU from tokens per second, and name its convention.",
        value=off, cites=(own.mfu, *(r.mfu for r in near[:1])),
    )  # fmt: skip


def _distance(reading: Reading) -> Quantity:
    assert reading.off is not None
    name = "audit.reported_off"
    return derive(name, "abs(off)", "%", off=reading.off).titled("Distance of the reported MFU from the recomputed one")
