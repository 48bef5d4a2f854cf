"""Calibration beside the scores: where the runs have a confidence and an answer that is right or wrong.

Decided on: the squared calibration error (from 1,000 examples, overall and in each slice that has them) and calibration
in the large (any n, overall and in every slice). Shown beside them: the reliability of both runs with the band of a
calibrated model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Chart, Section, Table
from ridgeline.core.case import Column as Head
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.format import parenthesised
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.evidence.pairing import Pairs
from ridgeline.gate.evidence.samples import Floats, Texts
from ridgeline.gate.judging.paired import CALIBRATION, Rows, labels_of, rows_of
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.calibration import (
    LEAST,
    both_sides,
    calibration_difference,
    in_the_large_difference,
    reliability,
)
from ridgeline.gate.statistics.compare import is_binary
from ridgeline.gate.statistics.interval import Interval

LARGE = "confidence less accuracy"


@dataclass(frozen=True, eq=False)
class Scored:
    """Confidences of both runs in [0, 1] with their right answers as ones, without the rows of which a run failed."""

    confidences: tuple[Floats, Floats]
    correct: tuple[Floats, Floats]
    names: Texts | None
    groups: Texts | None

    def at(self, rows: Rows) -> tuple[Floats, Floats, Floats, Floats]:
        """Both runs' confidences and answers of some rows, in the order of the estimators."""
        (base, cand), (right, later) = self.confidences, self.correct
        return base[rows], right[rows], cand[rows], later[rows]


def scored(pairs: Pairs, plan: Plan) -> Scored | None:
    """What calibration is judged by; None where it is not there, or not among the planned metrics.

    Raises `InputError` where the plan names it and the runs have no confidence or no answer of zeros and ones.
    """
    if plan.metrics and CALIBRATION not in plan.metrics:
        return None
    answers = [name for name in pairs.metrics if not name.startswith("confidence") and is_binary(*_finite(pairs, name))]
    if "confidence" not in pairs.metrics or not answers:
        if CALIBRATION in plan.metrics:
            missing = "confidence" if "confidence" not in pairs.metrics else "score of zeros and ones"
            hint = "declare it: --column confidence=NAME"
            raise InputError.expected(f"a {missing} in both runs", pairs.metrics, where=CALIBRATION, hint=hint)
        return None
    base, cand, kept = pairs.scores("confidence", "drop")
    right, later, _ = pairs.scores(answers[0], "drop")
    names, groups = (None if text is None else text[kept] for text in labels_of(pairs, plan))
    return Scored((base, cand), (right, later), names, groups)


def _finite(pairs: Pairs, name: str) -> list[Floats]:
    found = (run.scores[name] for run in (pairs.baseline, pairs.candidate))
    return [column[~np.isnan(column)] for column in found]


def calibrated(item: Scored | None, plan: Plan) -> tuple[Check, ...]:
    """The checks of calibration; none where there is nothing to judge it by, or looks are sequential."""
    if item is None or plan.sequential:
        return ()
    everything = np.arange(len(item.confidences[0]), dtype=np.intp)
    margin, slice_margin = (float(constant(f"gate.margin.{name}").base) for name in (CALIBRATION, "calibration_slice"))
    found = [_error(item, plan, "overall", everything, margin), _large(item, plan, "overall", everything, plan.margin)]
    for name, at in ({} if item.names is None else rows_of(item.names)).items():
        found.append(_large(item, plan, name, at, plan.margin_of(name)))
        if len(at) >= LEAST:
            found.append(_error(item, plan, name, at, slice_margin))
    return tuple(found)


def _error(item: Scored, plan: Plan, name: str, at: Rows, margin: float) -> Check:
    interval = calibration_difference(*item.at(at), plan.alpha)
    found = Check(name, CALIBRATION, interval, margin, "%", note="root-mean-square error of the confidence")
    if found.outcome is not Outcome.INCONCLUSIVE:
        return found
    if interval.n < LEAST:
        return replace(found, needed=LEAST - interval.n, basis="at the least")
    return replace(found, needed=_more(interval, margin, plan))


def _more(interval: Interval, margin: float, plan: Plan) -> int | None:
    """More pairs for an unchanged candidate: the spread of squared errors falls as the root of n, or faster."""
    from ridgeline.gate.statistics.sizes import detectable, needed

    half = _square(interval.estimate) - _square(interval.low)
    spread = interval.n * (half / detectable(1.0, 1, alpha=plan.alpha, power=0.5)) ** 2
    return max(1, needed(spread, margin**2, alpha=plan.alpha, power=plan.power) - interval.n)


def _square(value: float) -> float:
    return value * abs(value)


def _large(item: Scored, plan: Plan, name: str, at: Rows, margin: float) -> Check:
    groups = None if item.groups is None else item.groups[at]
    interval = both_sides(in_the_large_difference(*item.at(at), plan.alpha, groups))
    return Check(name, LARGE, interval, margin, "%", note="more or less sure than before, whichever is the larger")


@dataclass(frozen=True)
class Shown:
    """What stands beside the checks: tables, charts and their section; nothing without confidences."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    charts: Mapping[str, Chart] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()


def shown(item: Scored | None, plan: Plan, runs: Sequence[str]) -> Shown:
    """The reliability of both runs, from as many examples as a verdict needs."""
    if item is None or len(item.confidences[0]) < LEAST:
        return Shown()
    rows, told = [], []
    for run, confidence, correct in zip(runs, item.confidences, item.correct, strict=True):
        found = reliability(confidence, correct, plan.alpha)
        rows += [
            (run, 100 * b.confidence, 100 * b.accuracy, 100 * b.band_low, 100 * b.band_high, b.n) for b in found.bins
        ]
        told.append(f"{run} {found.error:.1%} (a calibrated model of its confidences: {found.if_calibrated:.1%})")
    columns = (
        Head("run", "Run"), Head("confidence", "Confidence", "%"), Head("accuracy", "Accuracy", "%"),
        Head("low", "Low", "%", "of a calibrated model"), Head("high", "High", "%", "of a calibrated model"),
        Head("n", "n"),
    )  # fmt: skip
    table = Table("Accuracy by confidence, 15 bins of equal mass", columns, tuple(rows))
    spec = charts.line(table, "confidence", "accuracy", "run", ("low", "high"))
    chart = Chart("Outside its band, a run is not calibrated", "Accuracy by confidence of both runs", spec,
                  "gate.reliability")  # fmt: skip
    said = f"Expected calibration error, described: {'; '.join(told)}."
    section = Section("Calibration", (parenthesised(said),), ("gate.reliability.curve",))
    return Shown({"gate.reliability": table}, {"gate.reliability.curve": chart}, (section,))
