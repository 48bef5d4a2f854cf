"""`bayes`: what an alarm is worth at the prevalence that a detector will meet, not at that of its test set."""

from dataclasses import dataclass, field, replace
from math import ceil

from ridgeline.core.case import Chart, Section, Table
from ridgeline.core.errors import InputError
from ridgeline.core.format import printable, significant
from ridgeline.core.quantity import Quantity
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.detector import prevalence as shown
from ridgeline.gate.detector.labelled import Labelled
from ridgeline.gate.detector.rates import Detector, Measured, Stakes
from ridgeline.gate.gate import Gate
from ridgeline.gate.statistics.bayes import Rate, ppv
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.quantiles import normal
from ridgeline.gate.statistics.sizes import POWER

GATE = Gate(
    "bayes", "Precision at real prevalence",
    "A detector that is right on a balanced test set, and whose alarms are mostly false where positives are rare.",
)  # fmt: skip
_RATIO = (
    "A subgroup's false-positive rate over that of all others: where the interval excludes 1, false alarms fall on it "
    "more often, or less."
)
AS_SEEN = "if the rates stay as they are"


@dataclass(frozen=True)
class Question:
    """``required`` is the least precision, None where none was stated and costs do not give one.

    An ``irreversible`` action also needs it in every subgroup.
    """

    prevalences: tuple[Rate, ...]
    required: float | None = None
    irreversible: bool = False
    stakes: Stakes = field(default_factory=Stakes)
    alpha: float = 0.05
    power: float = POWER

    @property
    def least(self) -> float | None:
        """The precision that is required: as stated, or where acting breaks even."""
        return self.required if self.required is not None else self.stakes.breaks_even


def decide(found: Measured, asked: Question, sample: Labelled | None = None) -> Decided:
    """Ship only where the lower bound of precision is above what is required, at every prevalence.

    ``sample`` is what the rates were read from, where that is a file. Raises `InputError` for a required precision
    outside 0 to 1, and for an irreversible action without one.
    """
    least = asked.least
    if least is not None and not 0 < least < 1:
        raise InputError.expected("a required precision between 0 and 1", least, where="--ppv")
    if asked.irreversible and asked.required is None:
        hint = "an action that cannot be undone is not weighed by its average cost"
        raise InputError.expected("--ppv beside --irreversible", "none", where="--irreversible", hint=hint)
    quantities = shown.quantities(found.whole, asked.prevalences, least, asked.stakes)
    tables, charts, sections = _shown(found, asked, quantities)
    return Decided(
        GATE,
        f"the detector of {sample.run}" if sample else "a detector of given rates",
        (*_checks(found, asked), *_groups(found, asked)),
        change=_change(found, asked, quantities),
        inputs=sample.inputs if sample else (),
        lost=sample.lost if sample else (),
        quantities=tuple(quantities.values()),
        sections=sections,
        tables=tables,
        charts=charts,
    )


def _checks(found: Measured, asked: Question) -> list[Check]:
    if asked.least is None:
        return []
    return [_check(found.whole, rate, asked, f"prevalence {shown.percent(rate)}") for rate in asked.prevalences]


def _groups(found: Measured, asked: Question) -> list[Check]:
    """Every subgroup at every prevalence: required of an action that cannot be undone, else described."""
    if asked.least is None:
        return []
    return [
        _check(group, rate, asked, f"{name} at {shown.percent(rate)}", required=asked.irreversible)
        for name, group in found.groups.items()
        for rate in asked.prevalences
    ]


def _check(who: Detector, rate: Rate, asked: Question, name: str, *, required: bool = True) -> Check:
    least = asked.least
    assert least is not None
    interval = _interval(who, rate, asked.alpha)
    note = ""
    if who.points and interval.estimate < least:  # taken at its word it falls short: no counts could make that a pass
        note = "rates taken as known"
        interval = Interval(interval.estimate, 0.0, interval.estimate, interval.n, asked.alpha, note)
    check = Check(printable(name), "precision", interval, least, "%", None, required, note, basis=AS_SEEN, level=True,
                  counts="labels")  # fmt: skip
    if check.outcome is not Outcome.INCONCLUSIVE:
        return check
    return replace(check, needed=_more(who, rate, asked, interval.estimate))


def _interval(who: Detector, rate: Rate, alpha: float) -> Interval:
    if who.tpr.n is None or who.fpr.n is None or who.why:
        middle = float(ppv(who.tpr.value, who.fpr.value, rate.value)) if who.tpr.value or who.fpr.value else 0.0
        return Interval(middle, 0.0, 1.0, who.n, alpha, "no interval", who.clusters, who.why)
    found = shown.precision(who, rate, alpha)
    return Interval(found.estimate, found.low, found.high, found.n, alpha, found.method, who.clusters)


def _more(who: Detector, rate: Rate, asked: Question, middle: float) -> int | None:
    """Further labels, in the same shares of positives and negatives, that would show it; None where none would.

    From the variance of logit PPV, half an event added to each rate. What a sampled prevalence leaves uncertain no
    label of the detector removes.
    """
    from scipy.special import logit

    least = asked.least
    if least is None or not least < middle < 1 or who.why or who.tpr.n is None or who.fpr.n is None:
        return None
    variance = 0.0
    for events, n in ((who.tpr.events, who.tpr.n), (who.fpr.events, who.fpr.n)):
        at = (events + 0.5) / (n + 1)
        variance += (1 - at) / (at * n)
    fixed = 0.0 if rate.n is None else 1 / (rate.n * rate.value * (1 - rate.value))
    distance = float(logit(middle) - logit(least))
    left = (distance / (normal(asked.alpha) + normal(1 - asked.power))) ** 2 - fixed
    return max(1, ceil(variance * who.n / left) - who.n) if left > 0 else None


def _shown(
    found: Measured, asked: Question, known: dict[str, Quantity]
) -> tuple[dict[str, Table], dict[str, Chart], tuple[Section, ...]]:
    worth = shown.worth(found.whole, asked.prevalences, asked.alpha, known)
    tables = {"gate.bayes.worth": worth, "gate.bayes.volume": shown.volume(asked.prevalences, asked.stakes, known)}
    tables["gate.bayes.rates"] = shown.rates(found, asked.alpha)
    curve, chart = shown.curve(found.whole, asked.prevalences, asked.least, asked.alpha)
    tables["gate.bayes.curve"] = curve
    sections = [
        Section("What an alarm is worth", shown.said(found, asked.prevalences), ("gate.bayes.worth",)),
        Section("Precision over prevalence", (), ("gate.bayes.ppv",)),
        Section("What the cases hold, and what acting costs", (), ("gate.bayes.volume",)),
        Section("The rates it rests on", (), ("gate.bayes.rates",)),
    ]
    if found.groups:
        tables["gate.bayes.groups"] = shown.groups(found, asked.prevalences[-1], asked.alpha)
        sections.insert(3, Section("By subgroup", (_RATIO,), ("gate.bayes.groups",)))
    return tables, {"gate.bayes.ppv": chart}, tuple(sections)


def _change(found: Measured, asked: Question, known: dict[str, Quantity]) -> str:
    """What precision is at each prevalence where nothing was required, else what it would take."""
    rare = asked.prevalences[-1]
    if asked.least is None:
        each = [f"{{{shown.name(rate, 'ppv')}|4}} at a prevalence of {shown.percent(rate)}"
                for rate in asked.prevalences]  # fmt: skip
        return f"Precision is {' and '.join(each)}; state --ppv, or what a false alarm and a miss cost, to decide."
    words = []
    if "gate.bayes.prevalence_needed" in known:
        at = f"{significant(100 * asked.least)}%"
        words.append(
            f"A precision of {at} takes a prevalence of {{gate.bayes.prevalence_needed}}, or a false-positive rate "
            f"of {{{shown.name(rare, 'fpr_needed')}}} at {shown.percent(rare)}."
        )
    if found.whole.points:
        words.append("Counts, such as --tpr 180/200, give an interval.")
    return " ".join(words)
