"""What examples that failed in the baseline could hide: counted as wrong, they let any candidate win."""

from collections.abc import Iterable, Iterator

import numpy as np

from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.evidence.samples import Floats
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.compare import compare
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.slices import by_slice


def turned_by_failures(pairs: Pairs, plan: Plan, metrics: Iterable[str]) -> list[str]:
    """Checks that pass, and would not if what failed in the baseline alone had been right there."""
    unknown = pairs.baseline.errors & ~pairs.candidate.errors
    if plan.on_error != "wrong" or not unknown.any():
        return []
    return [f"{metric}, {name}" for metric in metrics for name in _turned(pairs, plan, metric, unknown)]


def _turned(pairs: Pairs, plan: Plan, metric: str, unknown: np.ndarray) -> Iterator[str]:
    base, cand, _ = pairs.scores(metric, plan.on_error)
    best = 0.0 if pairs.lower_is_better(metric) else 1.0
    seen, worst = (_intervals(pairs, plan, one, cand) for one in (base, np.where(unknown, best, base)))
    for name, interval in seen.items():
        margin = plan.margin if name == "" else plan.margin_of(name)
        if interval.low > -margin >= worst[name].low:
            yield name or "overall"


def _intervals(pairs: Pairs, plan: Plan, base: Floats, cand: Floats) -> dict[str, Interval]:
    groups = pairs.baseline.labels.get(plan.cluster) if plan.cluster else None
    found = {"": compare(base, cand, plan.alpha, groups)}
    names = pairs.baseline.labels.get(plan.slices) if plan.slices else None
    return found if names is None else {**found, **by_slice(base, cand, names, plan.alpha, groups)}
