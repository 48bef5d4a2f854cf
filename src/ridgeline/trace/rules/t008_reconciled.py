"""T008: do the causes add up to the distance between expectation and observation."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.bridge import Bridge
from ridgeline.trace.facts import TraceFacts


@rule("T008", "The bridge reconciles", threshold=3, unit="%",
      why="of the step: the noise of a mean over a few steps")  # fmt: skip
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The observed step, less the seconds of every cause found, against the step at the corrected expectation, in percent
    of the observed step.

    ## Why it matters
    A list of findings that does not add up to the loss is either incomplete or counts seconds twice. What is
    unexplained may be larger than what is first on the list.

    ## How to confirm
    The bridge's table lists each cause with its own seconds, the seconds it shares with others, and what each bucket
    has left.

    ## What to do, cheapest first
    1. Look at the bucket that has most left.
    2. Profile a rank and a window that the traces do not hold yet: other ranks, the stalls between steps.
    3. Check the expectation against a run that reached it.

    ## Sources
    `docs/runbook-mfu.md`.
    """
    found = facts.bridge
    if found is None or found.unexplained_share is None or found.unexplained is None:
        yield this.found(
            Verdict.UNKNOWN, "There is no expectation, ideal step or step time to reconcile with.",
            "Give mfu.expected, model, machine and batch in run.toml.",
        )  # fmt: skip
        return
    far = derive("bridge.off", "abs(share)", "%", share=found.unexplained_share).titled("Off the target, of the step")
    holds = this.holds(far)
    over = float(found.unexplained.value) < 0
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        _sentence(found, far, over=over) + ("" if holds else _most_left(found)),
        "" if holds else "Look at the bucket that has most left; profile other ranks and a longer window.",
        value=far, cost=Cost() if holds or over else facts.cost(found.unexplained), cites=(found.unexplained,),
    )  # fmt: skip


def _sentence(found: Bridge, far: Quantity, *, over: bool) -> str:
    assert found.unexplained is not None
    if over:
        return f"The causes explain {{{far.name}|2}} of the step more than separates it from the target."
    return f"No cause explains {{{found.unexplained.name}}}, {{{far.name}|2}} of the step."


def _most_left(found: Bridge) -> str:
    rest = {bucket: seconds for bucket, seconds in found.left.items() if bucket != "compute" and seconds > 0}
    if not rest:
        return ""
    return f" Most is left in {max(rest, key=lambda bucket: rest[bucket]).replace('_', ' ')}."
