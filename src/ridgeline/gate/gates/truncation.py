"""`truncation`: how long a history must be, and whether an approximation that sees all of it is worth its loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import charts
from ridgeline.core.case import Chart, Column, InputFile, Section, Table
from ridgeline.core.errors import InputError
from ridgeline.core.format import value
from ridgeline.core.lost import Loss
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.gate.case import Decided, figures, read_in
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.gate import Gate
from ridgeline.gate.padding.layouts import Layout
from ridgeline.gate.padding.work import Work, work
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.truncation.curve import (
    UNITS,
    WORDS,
    Rows,
    difference,
    flattens,
    informed,
    not_before,
    powered,
    step,
    value_at,
)
from ridgeline.gate.truncation.scores import Scores

GATE = Gate(
    "truncation", "History length", "Cutting the history that a model sees below what it draws on, or paying for more."
)
Steps = Mapping[int, Sequence[Check]]


@dataclass(frozen=True, eq=False)
class Setting:
    """``length`` to decide on, None for the shortest that holds; the model; an ``approximate`` system's scores."""

    length: int | None = None
    model: ModelSpec | None = None
    approximate: Scores | None = None
    inputs: tuple[InputFile, ...] = ()


@dataclass(frozen=True, eq=False)
class _Curve:
    scores: Scores
    rows: Rows
    steps: Steps
    costs: Mapping[int, Work]
    plan: Plan
    setting: Setting

    @property
    def flat(self) -> int | None:
        return flattens(self.steps)

    @property
    def judged(self) -> int:
        """The length that the decision is on: the one given, else where the curve flattens, else the last step."""
        return self.setting.length or self.flat or max(self.steps)

    @property
    def longest(self) -> int:
        return self.scores.lengths[-1]


def decide(scores: Scores, setting: Setting, plan: Plan) -> Decided:
    """Ship a history length whose loss against the longest is inside the margin, overall and in every slice.

    Raises `InputError` for fewer than two lengths, or a length to decide on that is not among the shorter ones.
    """
    _can_decide(scores, setting)
    rows = informed(scores)
    steps = {length: step(scores, length, rows, plan) for length in scores.lengths[:-1]}
    curve = _Curve(scores, rows, steps, _costs(scores, setting), plan, setting)
    against = _approximation(curve)
    tables = {"gate.truncation.curve": _table(curve)}
    if against is not None:
        tables["gate.truncation.approximation"] = _against(against)
    return Decided(
        GATE,
        f"{scores.inputs[0].path if scores.inputs else 'scores'} at {len(scores.lengths)} history lengths",
        tuple(steps[curve.judged]),
        change=" ".join([_change(curve), *([_verdict(curve, against)] if against else [])]),
        inputs=_inputs(curve),
        lost=(*scores.lost, *_apart(curve), *(setting.approximate.lost if setting.approximate else ())),
        quantities=(*_figures(curve), *_described(curve, against)),
        sections=_sections(curve, against),
        tables=tables,
        charts=_charts(curve, tables["gate.truncation.curve"]),
    )


def _can_decide(scores: Scores, setting: Setting) -> None:
    lengths = ", ".join(map(str, scores.lengths))
    if len(scores.lengths) < 2:
        hint = "a column length, or columns such as score_64 and score_256"
        raise InputError.expected("scores at two history lengths or more", lengths, where="the scores", hint=hint)
    if setting.length is not None and setting.length not in scores.lengths[:-1]:
        hint = f"there are {lengths}; the longest is what others are compared with"
        raise InputError.expected("a length below the longest", setting.length, where="--length", hint=hint)
    other = setting.approximate
    if other is not None and other.metric != scores.metric:
        raise InputError.expected(f"scores for {scores.metric}", other.metric, where="--approximate")


def _inputs(curve: _Curve) -> tuple[InputFile, ...]:
    other = curve.setting.approximate
    return (*curve.scores.inputs, *curve.setting.inputs, *(other.inputs if other else ()))


def _costs(scores: Scores, setting: Setting) -> dict[int, Work]:
    """The model's forward pass over one sequence of each length, an event a token."""
    if setting.model is None:
        return {}
    return {
        length: work(
            setting.model,
            Layout(f"{length} events", np.array([length], dtype=np.int64), length, 1),
            f"gate.truncation.at_{length}",
        )
        for length in scores.lengths
    }


def _approximation(curve: _Curve) -> Check | None:
    """The approximation at its longest history minus exact attention at the judged length, on the same examples."""
    other, scores = curve.setting.approximate, curve.scores
    if other is None:
        return None
    place = {key: at for at, key in enumerate(other.keys.tolist())}
    rows = np.array([at for at in curve.rows if scores.keys[at] in place], dtype=np.intp)
    theirs = np.array([place[scores.keys[at]] for at in rows], dtype=np.intp)
    if not len(rows):
        hint = "both files name examples by the same ids"
        raise InputError.expected("examples of both systems", "none that match", where="--approximate", hint=hint)
    if scores.labels is not None and other.labels is not None and (scores.labels[rows] != other.labels[theirs]).any():
        raise InputError.expected("equal labels of an example in both files", "others", where="--approximate")
    exact, approximate = scores.at[curve.judged][rows], other.at[other.lengths[-1]][theirs]
    interval = difference(scores, approximate, exact, rows, curve.plan.alpha)
    metric = f"{WORDS[scores.metric]} less exact at {curve.judged}"
    missing = len(curve.rows) - len(rows)
    note = f"{missing:,} examples without a score of the approximation" if missing else ""
    found = Check("approximation", metric, interval, curve.plan.margin, UNITS[scores.metric], required=False,
                  note=note, counts="examples")  # fmt: skip
    return powered(found, curve.plan)


def _change(curve: _Curve) -> str:
    """What else would change the outcome: the length where the curve flattens."""
    first = not_before(curve.steps, curve.longest)
    if curve.flat is None:
        shortest = first == curve.scores.lengths[0]
        rest = "none is excluded" if shortest else f"what is shorter than {first} is excluded"
        return f"No length but the longest, {curve.longest} events, is shown to hold; {rest}."
    shorter = [length for length in curve.steps if length < curve.flat]
    if not shorter:
        return f"The shortest length tested, {curve.flat} events, holds: a shorter one may."
    return f"The curve flattens at {first} to {curve.flat} events." if first < curve.flat else (
        f"The curve flattens at {curve.flat} events: {max(shorter)} loses more than the margin."
    )  # fmt: skip


def _apart(curve: _Curve) -> list[Loss]:
    """Examples that no length can tell apart, and a history that is not known."""
    scores, first = curve.scores, curve.scores.lengths[0]
    if scores.history is None:
        return [
            Loss("no column of history: users that no length cuts are among the examples", 1, "--column history=NAME")
        ]
    short = len(scores) - len(curve.rows)
    what = f"examples of users with at most {first} events: every length sees all of them, not judged"
    return [Loss(what, short)] if short else []


def _figures(curve: _Curve) -> tuple[Quantity, ...]:
    """Where the curve flattens, and the cost of each length."""
    source = Source("fixed sequence of the lengths' intervals", "from the longest down, and from the shortest up")
    first = leaf("gate.truncation.not_before", not_before(curve.steps, curve.longest), "1", "measured", source)
    found = [first.titled("Shortest history that is not excluded")]
    if curve.flat is not None:
        last = leaf("gate.truncation.flattens_at", curve.flat, "1", "measured", source)
        found.append(last.titled("Shortest history that is shown to hold"))
    return (*found, *(cost.total for cost in curve.costs.values()))


def _described(curve: _Curve, against: Check | None) -> tuple[Quantity, ...]:
    """The figures of what does not decide: the other lengths, overall, and the approximation."""
    others = [found[0] for length, found in curve.steps.items() if length != curve.judged]
    shown = [*others, *([against] if against else [])]
    return tuple(item for check in shown for item in figures(GATE, check).values())


def _against(against: Check) -> Table:
    """The approximation against exact attention at the judged length."""
    unit, scale = read_in(against)
    columns = (
        Column("metric", "Metric"), Column("delta", "Change", unit), Column("low", "Low", unit),
        Column("high", "High", unit), Column("n", "n"), Column("needed", "More n"), Column("note", "Note"),
    )  # fmt: skip
    ends = [scale * end if isfinite(end) else "" for end in _ends(against)]
    note = "; ".join(filter(None, (against.interval.degenerate, against.note)))
    row = (against.metric, *ends, against.interval.n, "" if against.needed is None else against.needed, note)
    return Table("The approximation", columns, (row,))


def _table(curve: _Curve) -> Table:
    scores, plan = curve.scores, curve.plan
    unit, scale = read_in(curve.steps[curve.judged][0])
    columns = [
        Column("length", "History", "", "events that the model sees"),
        Column("metric", WORDS[scores.metric].capitalize() if scores.metric == "loss" else "AUC",
               "" if scores.metric == "auc" else "nat"),
        Column("delta", "Change", unit, "against the longest; higher is better"), Column("low", "Low", unit),
        Column("high", "High", unit), Column("outcome", "Outcome"),
    ]  # fmt: skip
    costed = [
        Column("flops", "Forward", "FLOP", "of one sequence, an event a token"),
        Column("attention", "Attention", "%", "of them between attention's projections"),
        Column("relative", "Of longest", "%"),
    ]
    rows = []
    for length in scores.lengths:
        metric = value_at(scores, length, curve.rows, plan.alpha)
        check = curve.steps[length][0] if length in curve.steps else None
        ends = (0.0, 0.0, 0.0) if check is None else _ends(check)
        shown = [scale * end if isfinite(end) else "" for end in ends]
        worst = "longest" if check is None else _worst(curve.steps[length])
        rows.append((length, metric.estimate, *shown, worst, *_cost(curve, length)))
    kept = tuple([*columns, *costed] if curve.costs else columns)
    judged = list(scores.lengths).index(curve.judged)
    note = "Outcome: of all the checks of a length, slices included."
    return Table("The curve", kept, tuple(rows), highlight=judged, mark="judged", note=note)


def _ends(check: Check) -> tuple[float, float, float]:
    found = check.interval
    return found.estimate, found.low, found.high


def _worst(checks: Sequence[Check]) -> str:
    every = {check.outcome for check in checks}
    return str(next(one for one in (Outcome.NO_SHIP, Outcome.INCONCLUSIVE, Outcome.SHIP) if one in every))


def _cost(curve: _Curve, length: int) -> tuple[object, ...]:
    if not curve.costs:
        return ()
    cost, longest = curve.costs[length], curve.costs[curve.longest]
    total = float(cost.total.base)
    return cost.total, 100 * cost.attention / total, 100 * total / float(longest.total.base)


def _charts(curve: _Curve, table: Table) -> dict[str, Chart]:
    if not all(isinstance(row[3], float) for row in table.rows):
        return {}
    _, scale = read_in(curve.steps[curve.judged][0])
    look = charts.Look(log_x=True, mark_y=((-scale * curve.plan.margin, "margin"),))
    spec = charts.line(table, "length", "delta", band=("low", "high"), look=look)
    title = f"{WORDS[curve.scores.metric]} against the longest history, by length"
    alt = f"{title}, with its interval; {_flat_words(curve)}"
    return {"gate.truncation.curve.chart": Chart(title, alt, spec, "gate.truncation.curve")}


def _flat_words(curve: _Curve) -> str:
    return f"it flattens at {curve.flat} events" if curve.flat else "no length but the longest is shown to hold"


def _sections(curve: _Curve, against: Check | None) -> tuple[Section, ...]:
    said = (
        "Each length is compared with the longest on the same examples. Lengths are tested from the longest down until "
        "one fails, so that the shortest one that holds needs no correction for how many were tried."
    )
    shown = ("gate.truncation.curve.chart", "gate.truncation.curve")
    first = Section("Score by history length", (said, f"Here {_flat_words(curve)}."), shown)
    if against is None:
        return (first,)
    return (
        first,
        Section(
            "Is an approximation over the whole history worth it?",
            (_verdict(curve, against), *_cost_words(curve)),
            ("gate.truncation.approximation",),
        ),
    )


def _verdict(curve: _Curve, against: Check) -> str:
    """Whether the approximation buys anything over exact attention at the judged length."""
    interval, (unit, scale) = against.interval, read_in(against)
    exact = f"exact attention over {curve.judged} events"
    if interval.degenerate:
        return f"Whether the approximation is worth it cannot be said: {interval.degenerate}."
    low, high = value(scale * interval.low, unit), value(scale * interval.high, unit)
    if interval.high < against.margin:
        least = f"{value(scale * against.margin, unit)} or more"
        gain = f"loses {value(-scale * interval.high, unit)} at least" if interval.high < 0 else f"gains {high} at most"
        return f"The approximation is not worth it: against {exact} it {gain}; {least} would be."
    if interval.low > 0:
        return f"The approximation is better than {exact}, by {low} to {high}: worth it where its FLOPs are no more."
    return f"Whether the approximation is worth it is not decided: against {exact} it changes it by {low} to {high}."


def _cost_words(curve: _Curve) -> tuple[str, ...]:
    """FLOPs of both: of the approximation those that every O(L) attention has, its own not counted."""
    if not curve.costs:
        return ("Without --model nothing is said of what either costs.",)
    exact, whole = curve.costs[curve.judged], curve.costs[curve.longest]
    least = float(whole.total.base) - whole.attention
    ratio = float(exact.total.base) / least
    word = "no more than" if ratio <= 1 else "more than"
    said = (
        f"Exact attention over {curve.judged} events takes {word} the approximation over {curve.longest}: {ratio:.2f} "
        "times the FLOPs of its projections, MLP and head alone."
    )
    return (said,)
