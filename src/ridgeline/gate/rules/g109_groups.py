"""G109: are examples that belong together treated as such."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity
from ridgeline.gate.evidence.findings import Evidence

GROUPS = ("cluster", "document", "context", "context_id", "user", "user_id", "conversation", "conversation_id")


@rule(
    "G109", "Examples that share a group are not taken as independent", threshold=1.05, unit="1",
    why="a twentieth more rows than groups widens an interval by at most 3 percent",
)  # fmt: skip
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Rows for each group, where the logs name groups (epochs of a sample, trials of a task, needles of a context, rows of
    a user or a document) and the plan names none. Above the threshold it fails.

    ## Why it matters
    Four trials of a task are not four tasks. In public trajectories of 50 tasks with 4 trials each, the standard error
    that ignores the tasks is too small by half; at higher correlation the interval is a fraction of the right one, and
    a model that lost ships.

    ## How to confirm
    Count the distinct values of the named column, and compare the interval with and without it.

    ## What to do, cheapest first
    1. Name the column as the cluster: `--column cluster=NAME`, or `cluster` in the registration.
    2. More groups are worth more than more rows of each.

    ## Sources
    Miller, Adding Error Bars to Evals, arXiv 2411.00640, 2024; Korn and Graubard, Survey Methodology 24, 1998.
    """
    if not isinstance(facts, Evidence):
        return
    if facts.plan.cluster:
        yield this.found(Verdict.PASS, f"Examples are grouped by {facts.plan.cluster}.", "")
        return
    worst = max(_repeats(facts), key=lambda item: float(item[1].value), default=None)
    if worst is None:
        yield this.found(Verdict.PASS, "No group holds more than one example.", "")
        return
    name, rows = worst
    said = f"Each {name} holds {{{rows.name}}} examples on average, and the intervals take them as independent."
    fix = f"Name it as the cluster: {name}."
    yield this.found(Verdict.WARN if this.holds(rows) else Verdict.FAIL, said, fix, value=rows)


def _repeats(facts: Evidence) -> Iterable[tuple[str, Quantity]]:
    """Rows a group of every label that is no slice and has more rows than groups."""
    labels = facts.pairs.baseline.labels
    slices = labels.get(facts.plan.slices)
    for name in GROUPS:
        if name not in labels or (slices is not None and (labels[name] == slices).all()):
            continue
        groups = len(set(labels[name].tolist()))
        if groups < len(facts.pairs):
            yield name, facts.figure("rows_a_group", f"Rows for each {name}", len(facts.pairs) / groups)
