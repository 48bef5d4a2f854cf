"""G164: do rewarded runs hold the actions that their task asks for."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.gate.traces.gold import REORDERED
from ridgeline.gate.traces.shown import Facts


@rule("G164", "Rewarded runs made the actions that were asked for")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Runs with a full reward whose task lists actions: whether each was made with those arguments. Actions that match but
    for the order of a list are counted apart.

    ## Why it matters
    A reward that compares the final state, or only the outputs, is 1 for a run that did something else on the way; and
    a state that is hashed with its lists in order calls the same booking another one.

    ## How to confirm
    The table of these runs counts what is missing and what differs in order alone. Read one trace of each kind.

    ## What to do, cheapest first
    1. Name arguments whose lists have no order under `sets` in the policy.
    2. Judge the actions themselves: add the calls that must or must not be made to the policy.
    3. Report the reward beside the share of runs whose actions were made.

    ## Sources
    tau2-bench issues 514 and 557 (order of lists), 15 and 224 (reward of 1 with failed action checks).
    """
    if not isinstance(facts, Facts) or not facts.gold:
        return
    rewarded = [item for item in facts.gold if (item.trace.utility or 0) >= 1]
    total = facts.figure("rewarded", "Rewarded runs whose task lists actions", len(rewarded))
    unmade = facts.figure("unmade", "Rewarded runs without all actions as asked", len(facts.unmade))
    if not facts.unmade:
        said = f"All {{{total.name}}} rewarded runs made the actions that were asked for."
        yield this.found(Verdict.PASS, said, "", value=unmade, cites=(total,))
        return
    order = sum(set(item.states) <= {"made", REORDERED} for item in facts.unmade)
    only = facts.figure("reordered", "Of these, by the order of a list alone", order)
    said = (
        f"{{{unmade.name}}} of {{{total.name}}} rewarded runs did not make all actions asked for, {{{only.name}}} by "
    )
    said += "the order of a list alone."
    yield this.found(Verdict.WARN, said, "Read these runs before the reward.", value=unmade, cites=(total, only))
