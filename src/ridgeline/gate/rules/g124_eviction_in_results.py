"""G124: do the results look like eviction."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.canary.eviction import BEYOND, PAIRED, Window, sharpest
from ridgeline.gate.canary.facts import CanaryFacts, plain


@rule("G124", "Needles do not vanish at a window")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Every window, for each run and for the candidate beside the baseline. *Beyond*: in prompts longer than the window,
    needles farther from the end are lost and the others found. *Collapse*: needles near the end are found in prompts
    that fit the window and lost in those that do not. Holm's correction covers all windows and both patterns. In the
    candidate beside the baseline it fails; in one run alone, where distance alone may cost hits, it warns.

    ## Why it matters
    An average over depths hides eviction: with a window of half the prompt it halves, with one of 95% it hardly moves.
    Where forgetting breaks the cache, even needles that were kept are lost as soon as it begins.

    ## How to confirm
    The table of windows, and the hit rate by distance to the end: eviction is a step, and distance alone a slope.

    ## What to do, cheapest first
    1. Compare the window found with those that the serving configuration names: `--serving`.
    2. Ask prompts just below and just above it.
    3. Where both runs show it, mend the server first: their difference says nothing about precision.

    ## Sources
    Hsieh et al., RULER, arXiv:2404.06654; Liu et al., Lost in the middle, TACL 12, 2024; Holm, Scandinavian Journal of
    Statistics 6, 1979.
    """
    if not isinstance(facts, CanaryFacts):
        return
    for run, windows in facts.audits.items():
        seen = sharpest(windows)
        if seen:
            verdict = Verdict.FAIL if run == PAIRED else Verdict.WARN
            yield this.found(verdict, plain(_said(run, seen)), "Find what keeps this many tokens: --serving FILE.")
        if not windows:
            said = f"{run}: no window has enough contexts on both sides to look for eviction."
            yield this.found(Verdict.UNKNOWN, plain(said), "Add longer contexts, with needles at every depth.")
        elif not seen:
            yield this.found(Verdict.PASS, plain(f"{run}: hits fall at no window of {len(windows)} tried."), "")


def _said(run: str, item: Window) -> str:
    rates = f"hits go from {item.held:.0%} to {item.fell:.0%} (p = {item.p:.2g})"
    if item.pattern == BEYOND:
        start = f"; the start of the prompt holds at {item.start:.0%}" if item.spares_start else ""
        lost = f"; what is lost stands at {item.where}" if item.where else ""
        return f"{run}: beyond the last {item.tokens:,} tokens {rates}{lost}{start}."
    return f"{run}: within the last {item.tokens:,} tokens {rates} as soon as the prompt is longer than that."
