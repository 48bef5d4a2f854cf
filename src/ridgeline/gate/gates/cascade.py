"""`cascade`: a router between a weak and a strong model, judged where its threshold was not chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from ridgeline.core.case import Column as Head
from ridgeline.core.case import Section, Table
from ridgeline.core.errors import InputError
from ridgeline.core.finding import RuleConfig, run_rules
from ridgeline.core.format import printable
from ridgeline.core.lost import Loss
from ridgeline.core.plugins import rules_of
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import AS_SEEN, Check, Outcome
from ridgeline.gate.evidence.findings import evidence_checks, evidence_findings
from ridgeline.gate.evidence.samples import Mask
from ridgeline.gate.gate import Gate
from ridgeline.gate.judging.described import described, ids_of, sections
from ridgeline.gate.judging.paired import SLICES, Column, checks, finished, label, labels_of, refuse_unknown, unit_of
from ridgeline.gate.judging.shares import refuse
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.routing.evidence import Routed, refuse_same_data
from ridgeline.gate.routing.router import Examples, Side, against_constant, by_slice, choose, saved, side
from ridgeline.gate.routing.split import choosing
from ridgeline.gate.statistics.catastrophe import clopper_pearson
from ridgeline.gate.statistics.compare import compare
from ridgeline.gate.statistics.sizes import needed, variance_bound

GATE = Gate(
    "cascade",
    "Weak model first",
    "A router that saves compute on average and answers the rare, hard examples with the weak model.",
)
FAMILY = "G17"
TAIL = 0.10  # loss of a slice, of a score from 0 to 1, that the summary counts
_SOURCE = Source("the routed examples")


@dataclass(frozen=True, eq=False)
class Facts:
    """What the rules G171 and G172 judge: the router where it was chosen and where it is judged.

    ``chosen`` is None where the threshold came with the plan.
    """

    plan: Plan
    chosen: Side | None
    judged: Side
    constant: Check

    def figure(self, name: str, title: str, value: float, unit: str = "1") -> Quantity:
        """A counted figure, ``gate.router.NAME``; a share takes ``%`` and the value as a fraction."""
        return leaf(f"gate.router.{name}", 100 * value if unit == "%" else value, unit, "measured", _SOURCE).titled(
            title
        )


def decide(found: Routed, plan: Plan, config: RuleConfig | None = None) -> Decided:
    """Ship where the cascade is not worse than always-strong by its margins, overall and in every slice, and cheaper.

    Nothing is chosen on the half that is judged. Raises `InputError` for a threshold from the same data, a signal of
    one value, or a slice router without slices.
    """
    refuse(plan, metrics=1)
    refuse_unknown(found.pairs, plan)
    refuse_same_data(found, plan)
    half = choosing(found.keys, found.setting.seed)
    judged_at = np.ones(len(half), dtype=np.bool_) if found.setting.threshold is not None else ~half
    data, unseen = _examples(found, plan, half)
    threshold = _threshold(found, data, half, plan)
    judged = data.at(judged_at)
    column = _column(found, plan, judged, judged_at, threshold)
    constant = _constant(judged, threshold, column)
    chosen = None if found.setting.threshold is not None else side(data.at(half), threshold)
    facts = Facts(plan, chosen, side(judged, threshold), constant)
    spent = _saved(found, judged, judged_at, threshold, column)
    shown = {"gate.router": halves(facts, threshold, found), **described([column])}
    return Decided(
        GATE,
        f"{found.pairs.candidate.run} before {found.pairs.baseline.run}, router: {found.setting.kind}",
        (*checks([column]), constant, *spent, *finished(found.pairs, plan), *evidence_checks(found.pairs, plan)),
        _change(found, threshold, column),
        inputs=(*found.pairs.baseline.inputs, *found.pairs.candidate.inputs),
        lost=(*found.pairs.baseline.lost, *found.pairs.candidate.lost, *_unseen(unseen)),
        quantities=_quantities(facts, column),
        findings=(*evidence_findings(found.pairs, plan, config),
                  *run_rules(rules_of("gate", config), facts, config, family=FAMILY)),
        sections=(_side_by_side(), *sections(shown)),
        tables=shown,
        ids=ids_of(found.pairs),
    )  # fmt: skip


def _examples(found: Routed, plan: Plan, half: Mask) -> tuple[Examples, list[str]]:
    if found.signal is not None:
        sign = -1.0 if found.setting.kind == "difficulty" else 1.0
        return Examples(found.weak, found.strong, sign * found.signal), []
    if not plan.slices:
        hint = "--slices NAME, or --router confidence with a column of that name"
        raise InputError.expected("slices for a router of slices", "none", where="--slices", hint=hint)
    names = label(found.pairs, plan.slices, SLICES)[found.kept]
    signal, unseen = by_slice(found.weak, names, half)
    return Examples(found.weak, found.strong, signal), unseen


def _threshold(found: Routed, data: Examples, half: Mask, plan: Plan) -> float:
    """As given, turned as the signal is, or chosen on the choosing half."""
    given = found.setting.threshold
    if given is not None:
        return -given if found.setting.kind == "difficulty" else given
    return choose(data.at(half), plan.margin, plan.alpha)


def _column(found: Routed, plan: Plan, judged: Examples, at: Mask, threshold: float) -> Column:
    """The cascade against always-strong, as a comparison of two runs."""
    base, cand = judged.strong, judged.cascade(threshold)
    names, groups = (None if text is None else text[found.kept][at] for text in labels_of(found.pairs, plan))
    unit = unit_of(found.pairs.called(found.metric), base, judged.weak)
    return Column(found.metric, unit, base, cand, plan, found.keys[at], names, groups)


def _constant(judged: Examples, threshold: float, column: Column) -> Check:
    """The router must be better than escalating the same share at random: the gain's lower bound above zero."""
    gain = against_constant(judged, threshold)
    interval = compare(np.zeros(len(gain)), gain, column.plan.alpha, column.groups)
    note = "gain over escalating the same share at random"
    found = Check("against a constant", column.name, interval, 0.0, column.unit, note=note)
    if found.outcome is not Outcome.INCONCLUSIVE or interval.degenerate or not interval.estimate:
        return found
    plan = column.plan
    more = needed(variance_bound(gain), abs(interval.estimate), alpha=plan.alpha, power=plan.power) - interval.n
    return replace(found, needed=max(1, more), basis=AS_SEEN)


def _saved(found: Routed, judged: Examples, at: Mask, threshold: float, column: Column) -> list[Check]:
    """The compute saved against always-strong, which must be above zero; nothing without costs."""
    if found.costs is None:
        return []
    weak, strong = (cost[at] for cost in found.costs)
    rows, share = saved(found.setting.kind, judged.kept(threshold), (weak, strong))
    interval = replace(
        compare(np.zeros(len(rows)), rows, column.plan.alpha, column.groups),
        estimate=share,
        method="linearised ratio, t",
    )
    note = "1 - cost of the cascade / cost of always-strong"
    return [Check("compute saved", "cost", interval, 0.0, "ratio", note=note)]


def halves(facts: Facts, threshold: float, found: Routed) -> Table:
    """The router in sample and held out, side by side."""
    sides = [("chosen on", facts.chosen), ("judged on", facts.judged)]
    shown = [(name, item) for name, item in sides if item is not None]
    scale = 100.0 if found.metric and unit_of(found.metric, found.strong, found.weak) == "%" else 1.0
    rows = [
        (name, item.n, 100 * item.escalated, scale * item.weak, scale * item.strong, scale * item.cascade,
         scale * item.constant, item.needs, _percent(item.recall), _percent(item.precision))
        for name, item in shown
    ]  # fmt: skip
    unit = "%" if scale > 1 else ""
    columns = (
        Head("half", "Half"), Head("n", "n"), Head("escalated", "Escalated", "%"), Head("weak", "Weak", unit),
        Head("strong", "Strong", unit), Head("cascade", "Cascade", unit),
        Head("constant", "Constant", unit, "the same share escalated at random"),
        Head("needs", "Need strong", "", "examples where the strong model is better"),
        Head("recall", "Recall", "%", "of those, escalated"), Head("precision", "Precision", "%", "of the escalated"),
    )  # fmt: skip
    value = -threshold if found.setting.kind == "difficulty" else threshold
    note = (
        f"Threshold {value:.4g} of {found.setting.kind}." if isfinite(value) else "No threshold is inside the margin."
    )
    return Table("The router where it was chosen and where it is judged", columns, tuple(rows), note=note)


def _percent(share: float) -> object:
    return 100 * share if isfinite(share) else ""


def _side_by_side() -> Section:
    said = (
        "The first row is what the threshold was fitted to: it is not evidence. The second decides. A constant "
        "escalates the same share at random; a router that does not beat it knows nothing of the examples."
    )
    return Section("In sample and held out", (said,), ("gate.router",))


def _change(found: Routed, threshold: float, column: Column) -> str:
    if not isfinite(threshold):
        return "No threshold keeps the cascade inside the margin on the choosing half: every example escalates."
    intervals: Sequence[float] = [item.estimate for item in column.intervals.values()]
    lost = sum(value < -TAIL for value in intervals)
    tail = (
        f" {lost} of {len(intervals)} slices lose more than {100 * TAIL:.0f} points."
        if column.unit == "%" and intervals
        else ""
    )
    costs = "" if found.costs is not None else " What is saved is not judged: there is no --cost."
    return f"{tail}{costs}".strip()


def _unseen(names: Sequence[str]) -> tuple[Loss, ...]:
    if not names:
        return ()
    where = printable(", ".join(names[:3]))
    return (Loss("slices that the choosing half does not hold: their examples escalate", len(names), where),)


def _quantities(facts: Facts, column: Column) -> tuple[Quantity, ...]:
    judged, plan = facts.judged, facts.plan
    low, high = clopper_pearson(judged.escalated * judged.n, judged.n, plan.alpha)
    found = [
        facts.figure("escalated", "Share escalated", judged.escalated, "%"),
        facts.figure("escalated.low", "Share escalated, lower bound", low, "%"),
        facts.figure("escalated.high", "Share escalated, upper bound", high, "%"),
    ]
    if column.unit == "%" and column.names is not None:
        lost = sum(item.estimate < -TAIL for item in column.intervals.values())
        found.append(facts.figure("tail.slices", f"Slices that lose more than {100 * TAIL:.0f} points", lost))
    return tuple(found)
