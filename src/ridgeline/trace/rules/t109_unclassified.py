"""T109: compute that no rule knows."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.trace.events import Category, Kind
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.losses import Told, bucket, shown


@rule("T109", "Kernels are of known kind", threshold=5, unit="%", why="what is not known may be communication")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The time of kernels that no rule of the classifier knows, and the names of the longest. They count as compute.

    ## Why it matters
    A communication kernel of an unknown library counts as compute and hides what it costs.

    ## How to confirm
    Look at the unclassified names in the operations table.

    ## What to do, cheapest first
    1. Add a rule for the names to `[trace.kernels]` in ridgeline.toml.

    ## Sources
    core/data/names/kernels.toml.
    """
    told = Told(
        "Kernels of unknown kind, counted as compute, run for",
        "Add rules for their names to ridgeline.toml.",
        ", ".join(_longest(facts)),
        missed=Verdict.WARN,
    )
    for finding in bucket(facts, this, "unclassified", "unclassified", told):
        yield this.found(
            finding.verdict, finding.sentence, finding.fix, value=finding.value, cost=Cost(), cites=finding.cites
        )


def _longest(facts: TraceFacts, most: int = 3) -> list[str]:
    """Names of the unknown kernels that run longest, over all ranks."""
    total: Counter[str] = Counter()
    for events in facts.run or ():
        rows = np.flatnonzero((events.category == Category.KERNEL) & (events.kind == Kind.UNCLASSIFIED))
        used, at = np.unique(events.name[rows], return_inverse=True)
        total.update(dict(zip((events.names[i] for i in used), np.bincount(at, weights=events.dur[rows]), strict=True)))
    return [shown(name) for name, _ in total.most_common(most)]
