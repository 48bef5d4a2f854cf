"""The rates that a detector is known by: points, counts, or labelled decisions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ridgeline.core import parse
from ridgeline.core.errors import InputError
from ridgeline.gate.detector.labelled import Labelled, rows_at
from ridgeline.gate.evidence.samples import Mask
from ridgeline.gate.statistics.bayes import Rate
from ridgeline.gate.statistics.unpaired import Count, counted

_COUNTS = re.compile(r"^\s*(\d+)\s*/\s*(\d+)\s*$")


@dataclass(frozen=True)
class Detector:
    """TPR and FPR of one population. ``why`` says why their counts are no evidence; empty where they are."""

    tpr: Rate
    fpr: Rate
    why: str = ""
    clusters: int | None = None
    points: bool = False

    @property
    def n(self) -> int:
        """Labelled cases that both rates come from, as many independent ones as they carry."""
        return (self.tpr.n or 0) + (self.fpr.n or 0)


@dataclass(frozen=True)
class Measured:
    """``test`` is the share of positives among labelled decisions with the precision there; None for given rates."""

    whole: Detector
    groups: Mapping[str, Detector] = field(default_factory=dict)
    others: Mapping[str, Detector] = field(default_factory=dict)
    test: tuple[Rate, Rate] | None = None


@dataclass(frozen=True)
class Stakes:
    """Cases per day, and what one false alarm and one miss cost, in one currency; None where not given."""

    per_day: float | None = None
    false_alarm: float | None = None
    miss: float | None = None

    @property
    def breaks_even(self) -> float | None:
        """The precision above which acting on an alarm costs less than it saves: c_false / (c_false + c_miss)."""
        if self.false_alarm is None or self.miss is None:
            return None
        return self.false_alarm / (self.false_alarm + self.miss)


def rate_of(text: str, where: str) -> Rate:
    """``0.9`` or ``90%`` is a rate taken as known, ``180/200`` counts. Raises `InputError` outside 0 to 1."""
    if match := _COUNTS.match(text):
        events, n = int(match.group(1)), int(match.group(2))
        if not n or events > n:
            raise InputError.expected("counts such as 180/200", text, where=where)
        return Rate(events, n)
    value = parse.share(text, where=where, what="a rate")
    if value > 1:
        raise InputError.expected("a rate between 0 and 1", text, where=where)
    return Rate(value)


def prevalences_of(text: str, where: str = "--prevalence") -> tuple[Rate, ...]:
    """Prevalences with commas, each a share or the counts of a field sample; largest first.

    Raises `InputError` for 0, 1 and beyond, and for the same one twice.
    """
    found = [rate_of(piece, where) for piece in text.split(",") if piece.strip()]
    for rate in found:
        if not 0 < rate.value < 1:
            hint = (
                "a sample without a positive bounds it: about 3/n at 95%" if rate.n else "such as 0.05,0.01 or 12/1200"
            )
            raise InputError.expected("a prevalence between 0 and 1", f"{rate.value:g}", where=where, hint=hint)
    if not found:
        raise InputError.expected("at least one prevalence", text, where=where, hint="such as 0.05,0.01 or 12/1200")
    if len({rate.value for rate in found}) < len(found):
        raise InputError.expected("prevalences that differ", text, where=where)
    return tuple(sorted(found, key=lambda rate: -rate.value))


def stakes_of(texts: tuple[str, ...], where: str = "--stake") -> Stakes:
    """``per-day=20000``, ``false-alarm=40`` and ``miss=900``. Raises `InputError` for others."""
    known = {"per-day": "per_day", "false-alarm": "false_alarm", "miss": "miss"}
    said: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals or name not in known:
            raise InputError.expected(f"one of {', '.join(known)} with its value", text, where=where,
                                      hint="such as --stake per-day=20000 --stake miss=900")  # fmt: skip
        said[known[name]] = float(parse.count(number, where=where, what="a number"))
    return Stakes(**said)


def detector(tpr: Rate, fpr: Rate) -> Detector:
    """A detector of given rates. Raises `InputError` where it finds nothing, or less than it alarms in vain."""
    if not tpr.value > 0:
        raise InputError.expected("a true-positive rate above zero", f"{tpr.value:g}", where="--tpr")
    if tpr.value < fpr.value:
        got = f"TPR {tpr.value:g} below FPR {fpr.value:g}"
        raise InputError.expected("a detector better than chance", got, where="its rates", hint="are labels swapped?")
    why = "TPR and FPR are points: without counts their interval is unknown"
    points = tpr.n is None or fpr.n is None
    return Detector(tpr, fpr, why if points else "", points=points)


def measured(found: Labelled, alpha: float) -> Measured:
    """The rates of labelled decisions, of all and of each subgroup and of all others but it.

    Raises `InputError` for decisions without labels, or only of positives or of negatives.
    """
    if found.positive is None:
        raise InputError.expected("a column of a label beside the decision", "correctness alone", where=found.run)
    for metric, kind in (("specificity", "negative"), ("sensitivity", "positive")):
        if not found.metrics[metric].any():
            raise InputError.expected(f"at least one {kind} among the labels", "none", where=found.run)
    everything = np.ones(len(found), dtype=np.bool_)
    whole = _at(found, everything, alpha)
    detector(whole.tpr, whole.fpr)
    names = found.names() if found.slices is not None else []
    within = {name: np.asarray(found.slices == name, dtype=np.bool_) for name in names}
    groups = {name: _at(found, rows, alpha) for name, rows in within.items()}
    others = {name: _at(found, ~rows, alpha) for name, rows in within.items()}
    alarm = found.right == found.positive
    hits, alarms = int((alarm & found.positive).sum()), int(alarm.sum())
    share = Rate(int(found.positive.sum()), len(found))
    return Measured(whole, groups, others, (share, Rate(hits, alarms)) if alarms else None)


def _at(found: Labelled, rows: Mask, alpha: float) -> Detector:
    counts = []
    for metric in ("sensitivity", "specificity"):
        at = rows_at(found, metric) & rows
        seen = found.right[at] if metric == "sensitivity" else ~found.right[at]
        counts.append(counted(seen, None if found.clusters is None else found.clusters[at], alpha))
    kinds = zip(counts, ("positives", "negatives"), strict=True)
    why = "; ".join(f"{c.why} among the {kind}" if c.n else f"no {kind}" for c, kind in kinds if c.why)
    clusters = min((count.clusters for count in counts if count.clusters is not None), default=None)
    return Detector(_effective(counts[0]), _effective(counts[1]), why, clusters)


def _effective(count: Count) -> Rate:
    """The rate with its events and n scaled to what they carry; of no examples, unknown and taken as zero."""
    if not count.n:
        return Rate(0.0)
    n = max(1, int(count.size))
    return Rate(count.rate * n, n)
