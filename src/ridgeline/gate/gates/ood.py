"""`ood`: a sample of the population that a detector will meet, against the one it was tested on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from dataclasses import field as default
from math import isfinite

from ridgeline.core import charts
from ridgeline.core.case import Chart, Section, Table
from ridgeline.core.case import Column as Head
from ridgeline.core.format import count as amount
from ridgeline.core.format import parenthesised, printable, significant
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.gate.case import Decided
from ridgeline.gate.decision import AS_SEEN, Check, Outcome
from ridgeline.gate.detector.history import History, Seen
from ridgeline.gate.detector.labelled import Labelled, rows_at
from ridgeline.gate.gate import Gate
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.bayes import Rate, ppv, ppv_interval
from ridgeline.gate.statistics.clusters import FEW
from ridgeline.gate.statistics.interval import Interval
from ridgeline.gate.statistics.unpaired import Count, counted, difference_of_rates, field_needed, spent

GATE = Gate("ood", "Field against test set", "A detector that was tested on a population it will not meet.")
ERRORS = {"specificity": "false-positive rate", "sensitivity": "miss rate", "accuracy": "error rate"}
COUNTS = {"specificity": "field negatives", "sensitivity": "field positives", "accuracy": "field examples"}
TOO_SMALL = "the offline sample is too small: no field sample of any size would decide"
DIGITS = 8  # of a logged rate
SOME = 5.0  # alarms to expect, of which none has a probability below 1%


@dataclass(frozen=True)
class Samples:
    """``offline`` is the test set, ``field`` the hold-out of the deployment, None where there is none."""

    offline: Labelled
    field: Labelled | None
    date: str = ""
    history: History = default(default_factory=History)
    logged: bool = False


@dataclass(frozen=True)
class Judged:
    """The decision, and the look to log: None without a field sample."""

    decided: Decided
    look: Seen | None


def decide(found: Samples, plan: Plan) -> Judged:
    """Ship only where the field's rates are shown to be as good as offline, overall and in every slice of the field.

    False positives decide where there are labels, and errors where there are not; the plan's metrics may name more.
    Raises `InputError` for a metric that the samples do not have, a field sample that is the test set, and two
    thresholds.
    """
    _refuse_one_sample(found)
    judged = _judged(found, plan)
    look = _look(found, plan, judged[0])
    number = found.history.number(look) if look else 1
    level = plan.alpha if not found.logged else spent(plan.alpha, number)
    plan = plan.model_copy(update={"alpha": level})
    checks = tuple(check for metric in found.offline.metrics for check in _checks(found, plan, metric, judged))
    look = _look(found, plan, judged[0])
    tables, drawn, sections = _shown(found, plan, look)
    inputs = (*found.offline.inputs, *(found.field.inputs if found.field else ()))
    lost = (*found.offline.lost, *(found.field.lost if found.field else ()))
    where = found.field.run if found.field else "no field sample"
    change = _change(found, checks, number, look)
    decided = Decided(
        GATE,
        f"{where} against {found.offline.run}",
        checks,
        change=change,
        inputs=inputs,
        lost=lost,
        quantities=_quantities(found, judged[0]),
        sections=sections,
        tables=tables,
        charts=drawn,
    )
    return Judged(decided, look)


def _refuse_one_sample(found: Samples) -> None:
    """Raise for what is no hold-out: rows of the test set, or another detector."""
    from ridgeline.core.errors import InputError

    new, old = found.field, found.offline
    if new is None:
        return
    shared = len(new.rows & old.rows)
    if shared and shared == len(new.rows):
        hint = "a field sample has rows of its own; ids that only number the rows need the sample's name before them"
        raise InputError.expected("a field sample that is not of the test set", "rows of it alone", where=new.run,
                                  hint=hint)  # fmt: skip
    if new.decided != old.decided:
        got = f"{new.decided or 'no threshold'} beside {old.decided or 'no threshold'}"
        raise InputError.expected("one threshold for both samples", got, where=new.run, hint="another one is another "
                                  "detector")  # fmt: skip


def _silent(found: Samples) -> str:
    """Why a field without an alarm is no evidence: at the offline rates there would be some. Empty where it is one."""
    new, old = found.field, found.offline
    if new is None or new.positive is None or new.alarms or not old.alarms:
        return ""
    counts = ((name, int(rows.sum()), old.metrics[name]) for name, rows in new.metrics.items())
    expected = 0.0
    for name, many, at in counts:
        right = float(old.right[at].mean()) if at.any() else 0.0
        expected += many * (right if name == "sensitivity" else 1 - right)
    return "the detector never alarms there" if expected >= SOME else ""


def _judged(found: Samples, plan: Plan) -> tuple[str, ...]:
    """The rates that decide."""
    from ridgeline.core.errors import InputError, did_you_mean

    known = found.offline.metrics
    if found.field is not None and found.field.metrics.keys() != known.keys():
        raise InputError.expected("two samples with labels, or two without", "one of each", where=found.field.run)
    wanted = plan.metrics or tuple(known)[:1]
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, known, "rates: " + ", ".join(known))
            raise InputError.expected("a rate of the samples", name, where="the metrics", hint=hint)
    return wanted


def count_of(sample: Labelled | None, metric: str, alpha: float, name: str = "") -> Count:
    """The right decisions that a rate counts, of one slice or of all."""
    if sample is None:
        return Count(0, 0, 0.0, why="no field sample")
    rows = rows_at(sample, metric, name)
    groups = None if sample.clusters is None else sample.clusters[rows]
    return counted(sample.right[rows], groups, alpha)


def _checks(found: Samples, plan: Plan, metric: str, judged: Sequence[str]) -> list[Check]:
    """A rate overall and in every slice of the field; slices that the field does not have are described."""
    required = metric in judged
    checks = [_check(found, plan, metric, "overall", required=required)]
    if not plan.slices or found.field is None:
        return checks
    seen = found.field.names()
    every = sorted({*seen, *found.offline.names()})
    return checks + [_check(found, plan, metric, name, required=required and name in seen) for name in every]


def _check(found: Samples, plan: Plan, metric: str, name: str, *, required: bool) -> Check:
    part = "" if name == "overall" else name
    new, old = (count_of(sample, metric, plan.alpha, part) for sample in (found.field, found.offline))
    margin = plan.margin_of(name) if part else plan.margin
    interval = difference_of_rates(new, old, plan.alpha)
    why = "; ".join(f"{count.why} {where}" if count.why != "no field sample" else count.why
                    for count, where in ((new, "in the field"), (old, "offline")) if count.why)  # fmt: skip
    why = why or (_silent(found) if metric == "specificity" else "")
    interval = replace(interval, n=new.n, degenerate=why)
    note = ""
    if interval.clusters is not None and interval.clusters < FEW and not why:
        note = f"{interval.clusters} clusters: too few to condemn"
    check = Check(printable(name), metric, interval, margin, "%", None, required, note, counts=COUNTS[metric])
    return _powered(check, new, old, plan)


def _powered(check: Check, new: Count, old: Count, plan: Plan) -> Check:
    """The field examples that would show the margin kept, if the rates are equal; where none would, the note says so.

    What a field example is worth is taken from the field sample, and without one from the offline sample.
    """
    if check.outcome is not Outcome.INCONCLUSIVE or old.why or (check.interval.degenerate and not new.why):
        return check
    of = old if new.why else new
    wanted = field_needed(of, old, check.margin, alpha=plan.alpha, power=plan.power)
    basis = "if the field is as the test set"
    distance = abs(check.interval.estimate + check.margin)
    if wanted <= new.n and distance:
        basis = AS_SEEN
        wanted = field_needed(of, old, distance, alpha=plan.alpha, power=plan.power)
    if not isfinite(wanted):
        return replace(check, note="; ".join(filter(None, (check.note, TOO_SMALL))))
    return replace(check, needed=max(1, int(wanted) - new.n), basis=basis)


def _look(found: Samples, plan: Plan, metric: str) -> Seen | None:
    """This run as a row of the log: the rise of the error rate."""
    if found.field is None:
        return None
    check = _check(found, plan, metric, "overall", required=True)
    at: Interval = check.interval
    new, old = (count_of(sample, metric, plan.alpha) for sample in (found.field, found.offline))
    first, second = ("+".join(item.sha256 for item in sample.inputs) for sample in (found.field, found.offline))
    rise = [round(-value, DIGITS) for value in (at.estimate, at.high, at.low)]
    return Seen(
        found.date, ERRORS[metric], first, second, round(1 - new.rate, DIGITS), round(1 - old.rate, DIGITS),
        rise[0], rise[1], rise[2], new.n, old.n, plan.alpha, check.margin, str(check.outcome),
    )  # fmt: skip


def _change(found: Samples, checks: Sequence[Check], number: int, look: Seen | None) -> str:
    words = []
    small = [check.name for check in checks if check.required and TOO_SMALL in check.note]
    if small:
        words.append(f"In {parenthesised(', '.join(small))} {TOO_SMALL}.")
    if found.field is None:
        words.append("Without a sample of the deployment no test set can bless it.")
    if look and look.n_field and look.n_offline:
        words.append(
            f"The {look.metric} is {{gate.ood.field.error}} in the field and {{gate.ood.offline.error}} offline."
        )
    if found.logged and look:
        words.append(
            f"This is look {number} of the log: its level is {significant(look.alpha)}, alpha * 6 / (pi {number})^2; "
            "any number of looks errs no more often than alpha."
        )
        alarms = [item.date for item in found.history.looks if item.alarm and not item.same_data(look)]
        if alarms:
            words.append(f"The log has {amount(len(alarms), 'earlier alarm')}, the last of {alarms[-1]}.")
        if look.rose:
            words.append(f"The {look.metric} of the field is higher than offline for certain.")
    return " ".join(words)


def _quantities(found: Samples, metric: str) -> tuple[Quantity, ...]:
    """The error rates of both samples."""
    made = []
    for word, sample in (("field", found.field), ("offline", found.offline)):
        if sample is None or not sample.metrics[metric].any():
            continue
        count = count_of(sample, metric, 0.05)
        source = Source(sample.run, f"{count.n - count.events:,} of {count.n:,}")
        title = f"{ERRORS[metric].capitalize()}, {word}"
        made.append(leaf(f"gate.ood.{word}.error", 100 * (1 - count.rate), "%", "measured", source).titled(title))
    return tuple(made)


def _shown(
    found: Samples, plan: Plan, look: Seen | None
) -> tuple[dict[str, Table], dict[str, Chart], tuple[Section, ...]]:
    tables, drawn, sections = {"gate.ood.rates": rates(found, plan)}, {}, []
    sections.append(Section("Error rates of both samples", (), ("gate.ood.rates",)))
    if found.field is not None and found.offline.positive is not None:
        tables["gate.ood.prevalence"] = prevalence(found, plan.alpha)
        words = (
            "A test set that was balanced on purpose has another share of positives than the field, and its precision "
            "is that of its own share."
        )
        sections.append(Section("What the shift of prevalence does", (words,), ("gate.ood.prevalence",)))
    looks = found.history.after(look).looks if look and found.logged else found.history.looks
    if looks:
        tables["gate.ood.log"] = log = log_table(looks)
        drawn["gate.ood.over_time"] = over_time(log, looks)
        sections.append(Section("Over time", (), ("gate.ood.over_time", "gate.ood.log")))
    return tables, drawn, tuple(sections)


def rates(found: Samples, plan: Plan) -> Table:
    """Errors of the field and offline, of every rate and slice, with the rise."""
    rows = []
    for metric in found.offline.metrics:
        names = found.offline.names() if plan.slices else []
        fields = found.field.names() if found.field and plan.slices else []
        for name in ("", *sorted({*names, *fields})):
            new, old = (count_of(sample, metric, plan.alpha, name) for sample in (found.field, found.offline))
            both = bool(new.n and old.n)
            rows.append((
                printable(name) or "overall", ERRORS[metric], *_share(new), *_share(old),
                100 * (old.rate - new.rate) if both else "",
            ))  # fmt: skip
    columns = (
        Head("slice", "Slice"), Head("rate", "Rate"), Head("field", "Field", "%"), Head("n_field", "n"),
        Head("offline", "Offline", "%"), Head("n_offline", "n"), Head("rise", "Field minus offline", "point"),
    )  # fmt: skip
    return Table("Error rates", columns, tuple(rows))


def _share(count: Count) -> tuple[object, int]:
    return (100 * (1 - count.rate) if count.n else "", count.n)


def prevalence(found: Samples, alpha: float) -> Table:
    """Negatives per positive of both samples, and precision at each, with each sample's own false-positive rate."""
    assert found.field is not None
    hit = count_of(found.offline, "sensitivity", alpha)
    rows = []
    for word, of_rates, of_share in (
        ("offline", found.offline, found.offline),
        ("offline rates at the field's prevalence", found.offline, found.field),
        ("field rates at the field's prevalence", found.field, found.field),
    ):
        positive = of_share.positive
        false = count_of(of_rates, "specificity", alpha)
        if positive is None or not hit.n or not false.n:
            continue
        share = Rate(int(positive.sum()), len(positive))
        tpr, fpr = Rate(hit.events, hit.n), Rate(false.n - false.events, false.n)
        at = ppv_interval(tpr, fpr, share, alpha=alpha)
        ratio = (1 - share.value) / share.value if share.value else "no positives"
        middle = float(ppv(tpr.value, fpr.value, share.value))
        rows.append((word, ratio, 100 * middle if isfinite(middle) else "", 100 * at.low, 100 * at.high))
    columns = (
        Head("sample", "Rates and prevalence"), Head("ratio", "Negatives per positive", "1"),
        Head("ppv", "Precision", "%", "with the hits of the offline sample"), Head("low", "Low", "%"),
        Head("high", "High", "%"),
    )  # fmt: skip
    return Table("Precision at each share of positives", columns, tuple(rows))


def log_table(looks: Sequence[Seen]) -> Table:
    """Every look, in order."""
    rows = [
        (number, look.date, look.metric, 100 * look.field_rate, 100 * look.offline_rate, 100 * look.delta,
         100 * look.low, 100 * look.high, look.n_field, 100 * look.margin, look.outcome,
         "alarm" if look.alarm else "worse than offline" if look.rose else "")
        for number, look in enumerate(looks, 1)
    ]  # fmt: skip
    columns = (
        Head("look", "Look"), Head("date", "Date"), Head("rate", "Rate"), Head("field", "Field", "%"),
        Head("offline", "Offline", "%"), Head("rise", "Field minus offline", "point"), Head("low", "Low", "point"),
        Head("high", "High", "point"), Head("n", "n"), Head("margin", "Margin", "point"), Head("outcome", "Outcome"),
        Head("alarm", "Alarm"),
    )  # fmt: skip
    return Table("Looks at the field", columns, tuple(rows))


def over_time(log: Table, looks: Sequence[Seen]) -> Chart:
    """The rise of the error rate over the looks, with the margin of the last."""
    last = looks[-1]
    look = charts.Look(mark_y=[(100 * last.margin, "margin")])
    spec = charts.line(log, "look", "rise", band=("low", "high"), look=look)
    title = f"Field minus offline, {last.metric}: {significant(100 * last.delta)} points at the last look"
    return Chart(title, f"The rise over {len(looks)} looks with its intervals", spec, "gate.ood.log")
