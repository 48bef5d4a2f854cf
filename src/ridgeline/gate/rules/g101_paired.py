"""G101: is every example in both runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.format import parenthesised, printable
from ridgeline.gate.evidence.findings import Evidence, slug, worst_case
from ridgeline.gate.evidence.samples import Mask
from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.compare import compare

SHOWN = 3


@rule("G101", "Every example of either run has its partner")
def check(facts: object, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Examples that only one of the runs holds. For scores between 0 and 1 the difference is bounded, over all examples
    and in every slice, by taking every missing score as 0 or 1, whichever is worse, with the half width of the paired
    interval on top. Inside the margin the missing examples warn; outside it they could turn the decision, and fail. A
    score without bounds fails where the missing share, at its upper bound over all examples, is above the share of
    broken examples that the plan tolerates. A metric that the baseline has and the candidate lacks fails too, unless
    the plan names the metrics.

    ## Why it matters
    Examples go missing where a run ran out of time, memory or context: the hard ones. A mean over what is left compares
    the easy ones. A slice that is missing whole leaves no trace in the mean.

    ## How to confirm
    The finding names the first keys of either side. Look for them in the logs of the run that lacks them.

    ## What to do, cheapest first
    1. Run the missing examples, with the same limit and the same shard of the data on both sides.
    2. Read both logs with the same filter and the same tasks.
    3. Where examples cannot be run, leave them out of both runs by name, in a new registration.

    ## Sources
    Horowitz and Manski, Journal of the American Statistical Association 95, 2000 (worst-case bounds of missing data).
    """
    if not isinstance(facts, Evidence):
        return
    yield from _one_sided(facts, this)
    if not facts.pairs.unmatched:
        n = facts.figure("paired", "Examples in both runs", len(facts.pairs))
        yield this.found(Verdict.PASS, f"All {{{n.name}}} examples are in both runs.", "", cites=(n,))
        return
    for metric in facts.metrics:
        yield _finding(facts, metric, this)


def _finding(facts: Evidence, metric: str, this: Rule) -> Finding:
    pairs = facts.pairs
    total = len(pairs) + pairs.unmatched
    share = pairs.unmatched / total
    missing = facts.figure("unmatched", "Examples without a partner", pairs.unmatched)
    of_all = facts.figure("unmatched_share", "Share of examples without a partner", share, "%")
    said = f"{{{missing.name}}} examples ({{{of_all.name}}}) have no partner{_where(facts)}"
    fix = "Run the missing examples, or read both logs with the same tasks, filter and limit."
    parts = [_part(facts, metric, name, at) for name, at in _cuts(facts)]
    turned = [part for part in parts if part.turned]
    verdict = Verdict.FAIL if turned else Verdict.WARN
    named = parenthesised(printable(metric))
    slices = [part.name for part in turned if part.name]
    if slices:
        more = f" and {len(slices) - SHOWN} more" if len(slices) > SHOWN else ""
        said += parenthesised(printable(f"; they could turn {', '.join(slices[:SHOWN])}{more}"))
    if parts[0].low is None:
        return this.found(verdict, f"{said}; nothing bounds their {named}.", fix, cites=(missing, of_all))
    low = facts.figure(f"worst.{slug(metric)}", f"Worst-case change of {metric}", parts[0].low, "%")
    said += f"; in the worst case {named} changes by {{{low.name}}}."
    return this.found(verdict, said, fix, cites=(missing, of_all, low))


@dataclass(frozen=True)
class _Part:
    """All examples (no name) or a slice: the lower bound in the worst case (None: unbounded), whether it turns."""

    name: str
    low: float | None
    turned: bool


def _cuts(facts: Evidence) -> Iterator[tuple[str, Mask]]:
    """All examples of either run, then the slices that lack some."""
    pairs, name = facts.pairs, facts.plan.slices
    runs = (pairs.baseline, *pairs.alone)
    alone = np.repeat([False, True, True], [len(run) for run in runs])
    yield "", np.ones(len(alone), dtype=np.bool_)
    if name and all(name in run.labels for run in runs if len(run)):
        labels = np.concatenate([run.labels[name] for run in runs if len(run)])
        for one in sorted(set(labels[alone].tolist()), key=str):
            yield str(one), labels == one


def _part(facts: Evidence, metric: str, name: str, at: Mask) -> _Part:
    pairs, plan = facts.pairs, facts.plan
    total, paired = int(at.sum()), at[: len(pairs)]
    missing, held = total - int(paired.sum()), int(paired.sum())
    bound = worst_case(pairs, metric, at)
    if bound is None:
        share = missing / total if name else clopper_pearson(missing, total, plan.alpha)[1]
        return _Part(name, None, share > plan.rare_rate)
    base, cand, kept = pairs.scores(metric, plan.on_error)
    interval = compare(base[paired[kept]], cand[paired[kept]], plan.alpha) if held > 1 else None
    low = bound.low - (interval.estimate - interval.low if interval else 0.0) * held / total
    return _Part(name, low, not low > -(plan.margin_of(name) if name else plan.margin))


def _one_sided(facts: Evidence, this: Rule) -> Iterable[Finding]:
    """Metrics that one run alone has, where all metrics are to be judged."""
    if facts.plan.metrics:
        return
    fix = "Score the other run too, or name the metrics to judge: --metric NAME, or `metrics` in the registration."
    for side, verdict, names in zip(
        ("baseline", "candidate"), (Verdict.FAIL, Verdict.WARN), facts.pairs.one_sided, strict=True
    ):
        if names:
            listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
            said = parenthesised(printable(f"Not judged, for the {side} alone has it: {listed}."))
            yield this.found(verdict, said, fix)


def _where(facts: Evidence) -> str:
    parts = []
    for side, alone in zip(("baseline", "candidate"), facts.pairs.alone, strict=True):
        if len(alone):
            first = ", ".join(str(key)[:40] for key in alone.keys[:SHOWN].tolist())
            parts.append(f"{len(alone):,} only in the {side}, first {first}")
    return parenthesised(printable(f": {'; '.join(parts)}"))
