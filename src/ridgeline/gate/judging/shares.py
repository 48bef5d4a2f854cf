"""Checks of a share of runs that must stay clean: exact intervals on effective counts, and the runs still needed."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, isclose, log, log1p

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.gate.decision import AS_SEEN, Check, Outcome
from ridgeline.gate.evidence.samples import Mask, Texts
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.clusters import clustered_rate, design_effect
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.sizes import needed

CLEAN = "if none of them fails"


def refuse(plan: Plan, *, metrics: int, columns: bool = True) -> None:
    """Raises `InputError` for keys of a plan that a gate does not follow: silence would be another plan."""
    refuse_looks(plan)
    if len(plan.metrics) > metrics:
        got, many = ", ".join(plan.metrics), "one metric" if metrics else "no metrics"
        raise InputError.expected(many, got, where="$.metrics", hint=f"the gate {plan.gate} judges no others")
    if plan.columns and not columns:
        raise InputError.expected("no columns", ", ".join(plan.columns), where="$.columns")


def refuse_looks(plan: Plan) -> None:
    """Raises `InputError` for a sequential plan of a gate whose intervals hold at one look."""
    if plan.sequential:
        hint = "register the number of examples, and look once"
        raise InputError.expected("one look", "sequential = true", where="$.sequential", hint=hint)


def clean(bad: Mask, clusters: Mapping[str, Texts], alpha: float) -> Interval:
    """The share of runs that are not ``bad``; of several ways to cluster, the one with the widest interval.

    Without two runs that share a cluster it is the exact interval of Clopper and Pearson.
    """
    n, events = len(bad), bad.astype(np.float64)
    shared = {name: labels for name, labels in clusters.items() if len(np.unique(labels)) < n}
    if n < 2:
        return Interval(1.0 - float(events.mean()) if n else 0.0, 0.0, 1.0, n, alpha, "Clopper-Pearson",
                        degenerate="fewer than two runs")  # fmt: skip
    if not shared:
        low, high = clopper_pearson(float(events.sum()), n, alpha)
        return Interval(1 - float(events.mean()), 1 - high, 1 - low, n, alpha, "Clopper-Pearson")
    found = {name: clustered_rate(events, labels, alpha) for name, labels in shared.items()}
    widest = max(found, key=lambda name: (bool(found[name].degenerate), found[name].high))
    item = found[widest]
    method = f"{item.method}, clusters: {widest}"
    return Interval(1 - item.estimate, 1 - item.high, 1 - item.low, n, alpha, method, item.clusters, item.degenerate)


def share_check(name: str, metric: str, bad: Mask, clusters: Mapping[str, Texts], how: tuple[Plan, float]) -> Check:
    """The clean share against what is required, with the runs still needed. ``how`` is the plan and the margin.

    Raises `InputError` for a margin that tolerates all.
    """
    plan, margin = how
    if margin >= 1:
        raise InputError.expected("a margin below 100%", f"{margin:.0%} for {name}", where="the margins")
    interval = clean(bad, clusters, plan.alpha)
    found = Check(name, metric, interval, 1 - margin, "%", level=True, counts="runs")
    if found.outcome is not Outcome.INCONCLUSIVE or interval.degenerate:
        return found
    effect = max([1.0, *(design_effect(bad.astype(np.float64), labels) for labels in clusters.values())])
    rate = 1 - interval.estimate
    if isclose(rate, margin):
        return found
    if rate < margin:
        none_seen = log(plan.alpha) / log1p(-margin)
        seen = needed(max(rate * (1 - rate), 0.0), margin - rate, alpha=plan.alpha, power=plan.power)
        more = ceil(effect * max(none_seen, seen)) - interval.n
        return replace(found, needed=max(1, more), basis=AS_SEEN if rate else CLEAN)
    seen = needed(rate * (1 - rate), rate - margin, alpha=plan.alpha, power=plan.power)
    return replace(found, needed=max(1, ceil(effect * seen) - interval.n), basis=AS_SEEN)
