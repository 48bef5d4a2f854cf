"""S504: do scaling laws agree on the choice."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.serve.codesign.facts import Designed


@rule("S504", "Scaling laws agree on the choice")
def check(facts: Designed, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The best configuration under every published law that ranks the candidates: the same kind of model, with an active
    size within a twentieth?

    ## Why it matters
    Laws fitted to different data put the optimum elsewhere. A choice that hangs on one of them is a bet on it. Where
    the budget binds, they mostly agree: the largest model that can be served.

    ## How to confirm
    A ladder of your own: `ridgeline forecast`.

    ## What to do, cheapest first
    1. Compare the losses of the competing designs under each law: a difference below its error decides nothing.
    2. Fit a law to runs of your own data and architecture.

    ## Sources
    Laws of the catalog: `ridgeline forecast laws`.
    """
    if facts.winner is None:
        return
    others = {slug: one for slug, one in facts.by_law.items() if one is not None and not facts.same(one)}
    if not others:
        yield this.found(Verdict.PASS, f"{len(facts.by_law)} laws choose the same design.", "")
        return
    said = "; ".join(f"{slug}: {one.shape}" for slug, one in others.items())
    text = f"Laws disagree on the choice, {facts.winner.shape} under {facts.need.law.slug}. {said}."
    yield this.found(Verdict.WARN, text, "Decide with a ladder of your own, or take the design that more laws choose.")
