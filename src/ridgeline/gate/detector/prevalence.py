"""What `ridgeline gate bayes` shows: precision and its kin at each prevalence, per day, by subgroup, as a curve."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Chart, Table
from ridgeline.core.case import Column as Head
from ridgeline.core.format import printable, significant
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.gate.detector.rates import Detector, Measured, Stakes
from ridgeline.gate.statistics.bayes import (
    SEED,
    Rate,
    false_alarms_per_hit,
    npv_interval,
    ppv,
    ppv_interval,
    rate_interval,
    ratio_interval,
)
from ridgeline.gate.statistics.interval import Interval

PPV = "TPR*p/(TPR*p + FPR*(1 - p))"
POINTS = 61  # of the curve
_VOLUME = 1000  # cases, where no number per day is given


def percent(rate: Rate) -> str:
    """A rate in percent, as short as it is."""
    return f"{100 * rate.value:.4g}%"


def name(rate: Rate, what: str) -> str:
    """The stable name of a figure at a prevalence: ``gate.bayes.at_0_1.ppv`` at 0.1%."""
    return f"gate.bayes.at_{f'{100 * rate.value:.6g}'.replace('.', '_')}.{what}"


def _leaf(place: str, rate: Rate, title: str, where: str) -> Quantity:
    if rate.n is None:
        return given(place, 100 * rate.value, "%", where).titled(title)
    source = Source("labelled cases", f"{round(rate.events):,} of {rate.n:,}")
    return leaf(place, 100 * rate.value, "%", "measured", source).titled(title)


def quantities(who: Detector, prevalences: Sequence[Rate], least: float | None, stakes: Stakes) -> dict[str, Quantity]:
    """Every figure at every prevalence, with its formula."""
    tpr = _leaf("gate.bayes.tpr", who.tpr, "True-positive rate, or recall", "--tpr")
    fpr = _leaf("gate.bayes.fpr", who.fpr, "False-positive rate", "--fpr")
    found = [tpr, fpr]
    required = None
    if least is not None:
        where = "--ppv, or where the costs break even"
        required = given("gate.bayes.required", 100 * least, "%", where).titled("Required precision")
        if who.fpr.value > 0:  # without a false alarm seen, any prevalence would do
            needed = derive("gate.bayes.prevalence_needed", "r*FPR/(TPR*(1 - r) + r*FPR)", "%", r=required, FPR=fpr,
                            TPR=tpr)  # fmt: skip
            found.append(needed.titled("Prevalence at which precision is what is required"))
    for rate in prevalences:
        found += _at(rate, tpr, fpr, required, stakes)
    return {item.name: item for item in found}


def _at(rate: Rate, tpr: Quantity, fpr: Quantity, required: Quantity | None, stakes: Stakes) -> list[Quantity]:
    where = f"at {percent(rate)}"
    p = _leaf(name(rate, "prevalence"), rate, f"Prevalence {where}", "--prevalence")
    rates = {"TPR": tpr, "FPR": fpr, "p": p}
    found = [p, derive(name(rate, "ppv"), PPV, "%", **rates).titled(f"Precision {where}")]
    quiet = "(1 - FPR)*(1 - p)/((1 - FPR)*(1 - p) + (1 - TPR)*p)"
    found.append(derive(name(rate, "npv"), quiet, "%", **rates).titled(f"Negative predictive value {where}"))
    found.append(derive(name(rate, "false_per_hit"), "FPR*(1 - p)/(TPR*p)", "1", **rates)
                 .titled(f"False alarms per hit {where}"))  # fmt: skip
    if required is not None:
        formula = "TPR*p*(1 - r)/(r*(1 - p))"
        found.append(derive(name(rate, "fpr_needed"), formula, "%", TPR=tpr, p=p, r=required)
                     .titled(f"False-positive rate at which precision is what is required, {where}"))  # fmt: skip
    return [*found, *_volumes(rate, rates, stakes)]


def _volumes(rate: Rate, rates: Mapping[str, Quantity], stakes: Stakes) -> list[Quantity]:
    day = stakes.per_day is not None
    where = f"at {percent(rate)}, " + ("a day" if day else f"per {_VOLUME:,} cases")
    cases = given("gate.bayes.cases", stakes.per_day or _VOLUME, "1", "--stake per-day" if day else "a round number")
    both = {"N": cases.titled("Cases a day" if day else "Cases"), **rates}
    hit = {key: both[key] for key in ("N", "TPR", "p")}
    vain = {key: both[key] for key in ("N", "FPR", "p")}
    false = derive(name(rate, "false_alarms"), "N*FPR*(1 - p)", "1", **vain).titled(f"False alarms {where}")
    hits = derive(name(rate, "hits"), "N*TPR*p", "1", **hit).titled(f"Hits {where}")
    misses = derive(name(rate, "misses"), "N*(1 - TPR)*p", "1", **hit).titled(f"Misses {where}")
    alarms = derive(name(rate, "alarms"), "hits + false", "1", hits=hits, false=false).titled(f"Alarms {where}")
    found = [hits, false, alarms, misses]
    if stakes.false_alarm is None or stakes.miss is None:
        return found
    c_false = given("gate.bayes.cost_false_alarm", stakes.false_alarm, "1", "--stake false-alarm")
    c_miss = given("gate.bayes.cost_miss", stakes.miss, "1", "--stake miss")
    acting = derive(name(rate, "cost_of_acting"), "false*c_false + misses*c_miss", "1", false=false, misses=misses,
                    c_false=c_false, c_miss=c_miss)  # fmt: skip
    idle = derive(name(rate, "cost_of_none"), "(hits + misses)*c_miss", "1", hits=hits, misses=misses, c_miss=c_miss)
    return [*found, acting.titled(f"Cost of acting {where}"), idle.titled(f"Cost of not acting {where}")]


def precision(who: Detector, rate: Rate, alpha: float) -> Interval:
    """The interval of precision. Where no false alarm was seen it reaches to 1, as Jeffreys' own does at its ends."""
    found = ppv_interval(who.tpr, who.fpr, rate, alpha=alpha)
    return replace(found, low=min(found.low, found.estimate), high=max(found.high, found.estimate))


def _ends(low: float, high: float, *, known: bool) -> tuple[object, object]:
    return (100 * low, 100 * high) if known else ("unknown", "unknown")


def worth(who: Detector, prevalences: Sequence[Rate], alpha: float, known: Mapping[str, Quantity]) -> Table:
    """Precision and negative predictive value with their intervals, false alarms per hit, the FPR that would do."""
    rows = []
    for rate in prevalences:
        right = precision(who, rate, alpha)
        quiet = npv_interval(who.tpr, who.fpr, rate, alpha=alpha)
        sure = not who.why
        rows.append((
            known[name(rate, "prevalence")], known[name(rate, "ppv")],
            *_ends(right.low, right.high, known=sure), known[name(rate, "false_per_hit")],
            known[name(rate, "npv")], *_ends(quiet.low, quiet.high, known=sure),
            known.get(name(rate, "fpr_needed"), ""),
        ))  # fmt: skip
    columns = (
        Head("prevalence", "Prevalence", "%"), Head("ppv", "Precision", "%", "share of alarms that are right"),
        Head("low", "Low", "%", f"one-sided at {1 - alpha:.0%}"), Head("high", "High", "%"),
        Head("false", "False per hit", "1"), Head("npv", "NPV", "%", "share of silences that are right"),
        Head("npv_low", "NPV low", "%"), Head("npv_high", "NPV high", "%"),
        Head("fpr_needed", "FPR needed", "%", "at which precision is what is required"),
    )  # fmt: skip
    return Table("Precision at each prevalence", columns, tuple(rows))


def volume(prevalences: Sequence[Rate], stakes: Stakes, known: Mapping[str, Quantity]) -> Table:
    """Alarms, hits, false alarms and misses; with costs, what acting costs beside not acting."""
    keys = {"alarms": "Alarms", "hits": "Hits", "false_alarms": "False alarms", "misses": "Misses"}
    if stakes.breaks_even is not None:
        keys |= {"cost_of_acting": "Cost of acting", "cost_of_none": "Cost of not acting"}
    rows = [(known[name(rate, "prevalence")], *(known[name(rate, key)] for key in keys)) for rate in prevalences]
    heads = (Head("prevalence", "Prevalence", "%"), *(Head(key, title, "1") for key, title in keys.items()))
    per = f"{stakes.per_day:,.0f} cases a day" if stakes.per_day else f"{_VOLUME:,} cases"
    even = stakes.breaks_even
    note = "" if even is None else f"Acting costs less than not acting above a precision of {100 * even:.3g}%."
    return Table(f"Of {per}", heads, tuple(rows), note=note)


def rates(found: Measured, alpha: float) -> Table:
    """TPR and FPR with Jeffreys intervals, and what the test set itself shows."""
    rows = [_rate_row("recall (TPR)", found.whole.tpr, alpha), _rate_row("FPR", found.whole.fpr, alpha)]
    if found.test is not None:
        share, precision = found.test
        rows.append(_rate_row("positives in the test set", share, alpha))
        rows.append(_rate_row("precision in the test set", precision, alpha))
    columns = (Head("rate", "Rate"), Head("events", "Events"), Head("n", "n"), Head("value", "Value", "%"),
               Head("low", "Low", "%"), Head("high", "High", "%"))  # fmt: skip
    note = "Counts of grouped cases are effective ones." if found.whole.clusters is not None else ""
    return Table("Rates", columns, tuple(rows), note=note)


def _rate_row(label: str, rate: Rate, alpha: float) -> tuple[object, ...]:
    at = rate_interval(rate, alpha=alpha)
    if rate.n is None:
        return (label, "", "", 100 * rate.value, "taken as known", "")
    return (label, round(rate.events), rate.n, 100 * rate.value, 100 * at.low, 100 * at.high)


def groups(found: Measured, rate: Rate, alpha: float) -> Table:
    """Rates of every subgroup, its FPR over that of the others, and precision at the rarest prevalence."""
    rows = []
    for label, group in found.groups.items():
        other = found.others[label]
        rows.append((
            printable(label), group.tpr.n or 0, group.fpr.n or 0,
            100 * group.tpr.value if group.tpr.n else "", 100 * group.fpr.value if group.fpr.n else "",
            *_ratio(group.fpr, other.fpr, alpha, sure=not group.why and not other.why),
            100 * float(ppv(group.tpr.value, group.fpr.value, rate.value)) if group.tpr.n and group.fpr.n else "",
            group.why,
        ))  # fmt: skip
    rows.sort(key=lambda row: (-(row[5] if isinstance(row[5], float) else 0.0), str(row[0])))
    columns = (
        Head("group", "Subgroup"), Head("positives", "Positives"), Head("negatives", "Negatives"),
        Head("tpr", "TPR", "%"), Head("fpr", "FPR", "%"), Head("ratio", "FPR ratio", "1", "over that of all others"),
        Head("low", "Low", "1"), Head("high", "High", "1"), Head("ppv", f"Precision at {percent(rate)}", "%"),
        Head("note", "Note"),
    )  # fmt: skip
    return Table("Subgroups, the largest false-positive ratio first", columns, tuple(rows))


def _ratio(rate: Rate, other: Rate, alpha: float, *, sure: bool) -> tuple[object, object, object]:
    if not sure or not rate.n or not other.n:
        return "", "", ""
    at = ratio_interval(rate, other, alpha=alpha)
    return (at.estimate if np.isfinite(at.estimate) else "none among the others", at.low, at.high)


def curve(who: Detector, prevalences: Sequence[Rate], least: float | None, alpha: float) -> tuple[Table, Chart]:
    """Precision from a tenth of the rarest prevalence to one half."""
    grid = np.geomspace(min(rate.value for rate in prevalences) / 10, 0.5, POINTS)
    rng = np.random.default_rng(SEED)
    drawn = ppv(who.tpr.draws(rng), who.fpr.draws(rng), grid[:, None])
    lows, highs = np.quantile(drawn, [alpha, 1 - alpha], axis=1)
    middles = ppv(who.tpr.value, who.fpr.value, grid)
    rows = [
        (100 * float(p), 100 * float(middle), *_ends(float(low), float(high), known=not who.why))
        for p, middle, low, high in zip(grid, middles, lows, highs, strict=True)
    ]
    columns = (Head("prevalence", "Prevalence", "%"), Head("ppv", "Precision", "%"), Head("low", "Low", "%"),
               Head("high", "High", "%"))  # fmt: skip
    table = Table("Precision over prevalence", columns, tuple(rows))
    look = charts.Look(
        log_x=True, zero_y=True, mark_x=[(100 * rate.value, percent(rate)) for rate in prevalences],
        mark_y=[] if least is None else [(100 * least, "required")],
    )  # fmt: skip
    band = None if who.why else ("low", "high")
    spec = charts.line(table, "prevalence", "ppv", band=band, look=look)
    rare = prevalences[-1]
    value = float(ppv(who.tpr.value, who.fpr.value, rare.value))
    title = f"At a prevalence of {percent(rare)}, {significant(100 * value)}% of alarms are right"
    alt = f"Precision rises with prevalence, from {significant(rows[0][1])}% to {significant(rows[-1][1])}%"
    return table, Chart(title, alt, spec, "gate.bayes.curve")


def said(found: Measured, prevalences: Sequence[Rate]) -> tuple[str, ...]:
    """Why the precision of the test set is no estimate."""
    rare, who = prevalences[-1], found.whole
    each = significant(float(false_alarms_per_hit(who.tpr.value, who.fpr.value, rare.value)))
    first = "Precision is a property of a detector and of what it meets."
    words = [f"{first} At a prevalence of {percent(rare)} there are {each} false alarms per hit."]
    if found.test is not None:
        share, precision = found.test
        words.append(
            f"In the test set {percent(share)} are positives and {percent(precision)} of alarms are right. That is the "
            "precision at the test set's own prevalence, and no estimate of it anywhere else."
        )
    return tuple(words)
