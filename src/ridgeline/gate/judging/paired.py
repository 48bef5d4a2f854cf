"""Checks of two runs on the same examples: overall, every slice, the least frequent slices, broken examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.format import count
from ridgeline.gate.decision import Check, Outcome, sized
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.evidence.samples import Floats, Texts, is_loss
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.catastrophe import fewest, rare_losses
from ridgeline.gate.statistics.clusters import design_effect
from ridgeline.gate.statistics.compare import compare, is_binary
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.sequential import asymptotic, rate_sequence
from ridgeline.gate.statistics.sizes import needed, variance_bound
from ridgeline.gate.statistics.slices import LOWEST, by_slice, coded, lowest_traffic, lowest_volume

Rows = NDArray[np.intp]
TRAFFIC = "least frequent tenth of examples"
SLICES, CLUSTER = "the slices", "the cluster"
CALIBRATION = "calibration"  # a planned metric that is made of two columns
NO_VALUE = "(no value)"
_CHECKS = ("overall", "slices", LOWEST, TRAFFIC, "mean over tasks", "against a constant", "compute saved")  # no slices


def metrics_of(pairs: Pairs, plan: Plan) -> list[str]:
    """The planned metrics but calibration, or all that both runs have but confidences."""
    planned = [name for name in plan.metrics if name != CALIBRATION]
    return planned if plan.metrics else [name for name in pairs.metrics if not name.startswith("confidence")]


def label(pairs: Pairs, name: str, what: str) -> Texts:
    """A label column of the runs. Raises `InputError` with the close matches."""
    labels = pairs.baseline.labels
    if name in labels:
        return _named(labels[name], what)
    hint = did_you_mean(name, labels, "labels: " + (", ".join(labels) or "none"))
    raise InputError.expected(f"a column for {what}", name, where=what, hint=hint)


def _named(found: Texts, what: str) -> Texts:
    """Labels as text. A row without a slice is in one of its own; a row without a cluster is refused."""
    texts = found.tolist()
    blank = [row for row, text in enumerate(texts) if text is None or text == ""]
    if blank and what == CLUSTER:
        got = f"none in {count(len(blank), 'pair')}"
        raise InputError.expected("a cluster in every pair", got, where=what, hint="give single examples one each")
    taken = set(_CHECKS) & set(texts) if what == SLICES else set()
    if not blank and not taken:
        return found
    named = np.empty(len(texts), dtype=object)
    named[:] = [f"{text} (slice)" if text in taken else text for text in texts]
    named[blank] = NO_VALUE
    return named


def refuse_unknown(pairs: Pairs, plan: Plan) -> None:
    """Raises `InputError` for a margin of a slice that neither run has: it would be another plan."""
    known = {LOWEST}
    if plan.slices:
        known |= set(label(pairs, plan.slices, SLICES).tolist())
        known |= {text for run in pairs.alone for text in run.labels.get(plan.slices, ())}
    for name in plan.margins:
        if name not in known:
            hint = did_you_mean(name, map(str, known), "slices: " + ", ".join(sorted(map(str, known))[:8]))
            raise InputError.expected("a slice of the runs", name, where=f"$.margins.{name}", hint=hint)


def _refuse_whole(metric: str, unit: str, plan: Plan) -> None:
    """Raises `InputError` for a margin that all of a share fits in: no candidate could fail it."""
    for where, margin in (("margin", plan.margin), ("slice_margin", plan.slice_margin), *plan.margins.items()):
        if margin >= 1 and (unit == "%" or plan.gate == "recovery"):
            hint = f"{margin:g} is {100 * margin:g}%: write {margin:g}% or {margin / 100:g}"
            raise InputError.expected(f"a margin of {metric} below 100%", f"{100 * margin:g}%", where=where, hint=hint)


def rows_of(names: Texts) -> dict[str, Rows]:
    """The rows of every slice, in one pass."""
    found, codes = coded(names)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(found)))[:-1]
    return dict(zip(found, np.split(order, ends), strict=True))


def unit_of(metric: str, *scores: Floats) -> str:
    """``"%"`` for zeros and ones, ``"nat"`` for losses by their name, else a plain number."""
    if is_binary(*scores):
        return "%"
    return "nat" if is_loss(metric) else "1"


@dataclass(frozen=True, eq=False)
class Column:
    """One metric of the pairs under a plan, turned so that higher is better: the rows that are judged.

    ``keys`` say which examples they are, ``names`` and ``groups`` their slices and clusters, None without.
    """

    name: str
    unit: str
    base: Floats
    cand: Floats
    plan: Plan
    keys: Texts
    names: Texts | None
    groups: Texts | None

    @cached_property
    def difference(self) -> Floats:
        """Candidate minus baseline."""
        return self.cand - self.base

    @cached_property
    def rows(self) -> Mapping[str, Rows]:
        """The rows of every slice."""
        return {} if self.names is None else rows_of(self.names)

    @cached_property
    def intervals(self) -> Mapping[str, Interval]:
        """The fixed-n interval of every slice."""
        if self.names is None:
            return {}
        return by_slice(self.base, self.cand, self.names, self.plan.alpha, self.groups)


def columns(pairs: Pairs, plan: Plan) -> tuple[Column, ...]:
    """Every metric that is judged. Raises `InputError` for a metric, slice or group that the runs do not have."""
    refuse_unknown(pairs, plan)
    return tuple(column(pairs, plan, metric) for metric in metrics_of(pairs, plan))


def column(pairs: Pairs, plan: Plan, metric: str) -> Column:
    """A metric with its slices and groups. Raises `InputError` for what the runs do not have."""
    base, cand, kept = pairs.scores(metric, plan.on_error)
    names, groups = labels_of(pairs, plan)
    unit = unit_of(pairs.called(metric), base, cand)
    _refuse_whole(metric, unit, plan)
    cut = (None if text is None else text[kept] for text in (names, groups))
    return Column(metric, unit, base, cand, plan, pairs.baseline.keys[kept], *cut)


def labels_of(pairs: Pairs, plan: Plan) -> tuple[Texts | None, Texts | None]:
    """The slices and the clusters of the pairs, None where the plan names none. Raises `InputError` as `label`."""
    names = label(pairs, plan.slices, SLICES) if plan.slices else None
    return names, label(pairs, plan.cluster, CLUSTER) if plan.cluster else None


def finished(pairs: Pairs, plan: Plan) -> tuple[Check, ...]:
    """Where failed examples are left out: that the candidate does not fail more often, overall and in every slice.

    What is left out is otherwise lost unseen. Nothing where no example failed, or failures count as wrong.
    """
    if plan.on_error != "drop" or not pairs.failed.any():
        return ()
    done = [np.where(run.errors, 0.0, 1.0) for run in (pairs.baseline, pairs.candidate)]
    item = Column("finished", "%", done[0], done[1], plan, pairs.baseline.keys, *labels_of(pairs, plan))
    note = "failed examples are left out of the other checks"
    found = (overall(item), *by_slices(item))
    return tuple(replace(check, note="; ".join(filter(None, (check.note, note)))) for check in found)


def by_task(pairs: Pairs, plan: Plan) -> Plan:
    """The plan with the tasks of the runs as slices, where it names none and there are several."""
    tasks = pairs.baseline.labels.get("task")
    several = tasks is not None and len(set(tasks.tolist())) > 1
    return plan.model_copy(update={"slices": "task"}) if several and not plan.slices else plan


def checks(found: Sequence[Column]) -> tuple[Check, ...]:
    """All checks of all metrics, and whether there are as many slices as the plan asks for."""
    every = [check for item in found for check in (overall(item), *broken(item), *clipped(item), *by_slices(item))]
    return (*every, *enough_slices(found))


def overall(item: Column) -> Check:
    """All rows against the margin."""
    everything = np.arange(len(item.base), dtype=np.intp)
    return powered(item, "overall", _interval(item, everything), item.plan.margin, everything)


def _interval(item: Column, at: Rows) -> Interval:
    """The plan's interval of some rows: the default, or one that holds at every look."""
    if item.plan.sequential:
        share = len(at) / max(1, len(item.base))
        registered = max(1, round(share * (item.plan.n or len(item.base))))
        return asymptotic(item.difference[at], item.plan.alpha, registered)
    groups = None if item.groups is None else item.groups[at]
    return compare(item.base[at], item.cand[at], item.plan.alpha, groups)


def by_slices(item: Column) -> list[Check]:
    """Every slice against its own margin, and the least frequent ones together; nothing without slices."""
    if item.names is None:
        return []
    rows, plan = item.rows, item.plan
    intervals = {name: _interval(item, at) for name, at in rows.items()} if plan.sequential else item.intervals
    found = [powered(item, name, intervals[name], plan.margin_of(name), at) for name, at in rows.items()]
    examples = {name: len(at) for name, at in rows.items()}
    lowest, traffic = lowest_volume(examples), lowest_traffic(examples)
    together = _together(item, LOWEST, rows, lowest)
    if traffic == lowest:
        return [*found, together]
    return [*found, together, replace(_together(item, TRAFFIC, rows, traffic), required=False, needed=None)]


def _together(item: Column, name: str, rows: Mapping[str, Rows], chosen: frozenset[str]) -> Check:
    at = np.sort(np.concatenate([rows[one] for one in sorted(chosen)]))
    note = ", ".join(sorted(chosen)[:4]) + (" and more" if len(chosen) > 4 else "")
    return powered(item, name, _interval(item, at), item.plan.margin_of(name), at, note)


def broken(item: Column) -> list[Check]:
    """Broken examples of a real-valued loss; zeros and ones have none."""
    if item.unit != "nat":
        return []
    plan, n = item.plan, len(item.base)
    if plan.sequential:
        events = int((item.difference < -plan.rare_beyond).sum())
        interval = rate_sequence(events, n, plan.alpha)
    else:
        interval = rare_losses(item.difference, plan.rare_beyond, plan.alpha)
    share = -interval.estimate
    variance = max(share * (1 - share), plan.rare_rate**2)
    wanted = needed(variance, plan.rare_rate, alpha=plan.alpha, power=plan.power)
    note = f"examples that lost more than {plan.rare_beyond:g} nat"
    found = Check("overall", f"{item.name} broken", interval, plan.rare_rate, "%", note=note)
    more = wanted - n if found.outcome is Outcome.INCONCLUSIVE and wanted > n else None
    return [replace(found, needed=more)]


def clipped(item: Column) -> list[Check]:
    """The loss with each example's cut at a bound, described: the change without what broken examples add to it."""
    if item.unit != "nat":
        return []
    most = float(constant("gate.clip.loss").base)
    base, cand = (np.maximum(scores, -most) for scores in (item.base, item.cand))
    interval = compare(base, cand, item.plan.alpha, item.groups)
    name, note = f"{item.name} clipped", f"each example's loss counts up to {most:g} nat"
    return [Check("overall", name, interval, item.plan.margin, item.unit, required=False, note=note)]


def powered(item: Column, name: str, interval: Interval, margin: float, at: Rows, note: str = "") -> Check:
    """A check with the smallest margin that its pairs can clear and, where it is open, the pairs that would decide.

    More pairs are counted for a candidate that loses nothing; where those are there already, for the difference seen.
    """
    plan, difference = item.plan, item.difference[at]
    least = fewest(plan.rare_rate, plan.alpha) if item.unit == "nat" else 0
    if interval.n < least and not interval.degenerate and interval.low > -margin:  # a loss that is seen stays one
        why = f"{interval.n} pairs of the {least} below which broken examples may all be missing"
        interval = replace(interval, degenerate=why)
    if interval.estimate < 0 and not interval.degenerate and interval.low > -margin and _whole(item, at, margin):
        why = "the margin tolerates losing as much as the baseline has"
        interval = replace(interval, degenerate=why)
    found = Check(name, item.name, interval, margin, item.unit, note=note)
    effect = 1.0 if item.groups is None else design_effect(difference, item.groups[at])
    spread = variance_bound(difference) * effect
    return sized(found, spread, plan.power, least) if np.isfinite(spread) else found


def _whole(item: Column, at: Rows, margin: float) -> bool:
    """Whether a margin is as large as the baseline's level: losing all of it, or as much again, would be inside."""
    if item.unit == "nat":
        return False
    level = float(item.base[at].mean())
    lower = item.unit == "%" and bool((item.base < 0).any() or (item.cand < 0).any())
    return abs(1.0 + level if lower else level) <= margin


def enough_slices(found: Sequence[Column]) -> list[Check]:
    """No evidence where the registered number of slices is not there: an average alone hides its tail."""
    if not found or len(found[0].rows) >= found[0].plan.least_slices:
        return []
    plan, there = found[0].plan, len(found[0].rows)
    why = f"{there} of the {plan.least_slices} slices that are asked for"
    nothing = Interval(0.0, -np.inf, np.inf, 0, plan.alpha, "count of slices", degenerate=why)
    return [Check("slices", "coverage", nothing, plan.slice_margin)]
