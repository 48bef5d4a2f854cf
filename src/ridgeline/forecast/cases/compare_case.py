"""Two recipes compared, as a `Case`: the difference at the target, where they cross, what it is worth, its cost."""

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.forecast.cases.derived import constants, frontier
from ridgeline.forecast.deciding.compare import Comparison, Interval, Side
from ridgeline.forecast.deciding.crossover import frontier as losses_of
from ridgeline.forecast.deciding.worth import Machine, serving_flops, serving_price

CURVE = 61  # points of a frontier
_SIDES = ("baseline", "candidate")


def compare_case(found: Comparison, names: tuple[str, str], *, on: Machine | None = None, command: str = "") -> Case:
    """The case of a comparison; ``names`` are what people call the recipes, ``on`` prices their serving."""
    case = Case("forecast compare", f"{names[1]} against {names[0]}", command=command)
    sides = (found.baseline, found.candidate)
    case.inputs = [side.fit.points.source for side in sides if side.fit.points.source]
    case.lost = [f"{name}: {text}" for name, side in zip(names, sides, strict=True)
                 for text in (*side.fit.points.lost, *side.fit.points.assumed)]  # fmt: skip
    target = given("target", found.target, "FLOP", "--target")
    both = [_side(case, side, key, target, on) for side, key in zip(sides, _SIDES, strict=True)]
    _differences(case, found, both)
    reasons = (*found.because, found.crossover.sentence())
    case.decision, case.because = _decision(found, names), " ".join(map(_sentence, reasons))
    case.add_table("compare.sides", _sides_table(found, names, both))
    case.add_table("compare.constants", _constants_table(found, names))
    case.add_table("compare.curves", _curves(found, names))
    case.charts["compare.curves"] = _chart(case, found, names)
    case.sections = _sections(found)
    return case


def _side(case: Case, side: Side, key: str, target: Quantity, on: Machine | None) -> dict[str, Quantity]:
    known = constants(side.fit, f"compare.{key}.fit")
    best = frontier(side.fit, known, target, f"compare.{key}")
    best["serving"] = serving_flops(best["params"], f"compare.{key}")
    if on is not None and on.price is not None:
        best["price"] = serving_price(best["params"], on, f"compare.{key}")
    source = Source("paired resamples and a backtest of the difference", f"interval of {key}'s loss at the target")
    best |= {end: leaf(f"compare.{key}.{end}", value, "nat", "measured", source)
             for end, value in (("low", side.loss.low), ("high", side.loss.high)) if value is not None}  # fmt: skip
    case.add(*known.values(), *best.values())
    return best


def _differences(case: Case, found: Comparison, both: list[dict[str, Quantity]]) -> None:
    delta = derive("compare.delta", "candidate - baseline", "nat", candidate=both[1]["loss"], baseline=both[0]["loss"])
    case.add(delta.titled("Loss of the candidate less the baseline's, each at its own optimum"))
    source = Source("paired resamples and a backtest of the difference", f"{found.draws} draws, {found.level:.0%}")
    kept = {
        "compare.delta.low": (found.delta.low, "nat"), "compare.delta.high": (found.delta.high, "nat"),
        "compare.worth": (found.worth.value, "1"), "compare.worth.low": (found.worth.low, "1"),
        "compare.worth.high": (found.worth.high, "1"), "compare.equal": (found.equal.value, "nat"),
        "compare.equal.low": (found.equal.low, "nat"), "compare.equal.high": (found.equal.high, "nat"),
        "compare.crossover": (found.crossover.compute, "FLOP"), "compare.crossover.low": (found.crossover.low, "FLOP"),
        "compare.crossover.high": (found.crossover.high, "FLOP"),
    }  # fmt: skip
    for name, (value, unit) in kept.items():
        if value is not None:
            case.add(leaf(name, value, unit, "measured", source).titled(_LABELS[name.partition(".")[2]]))


_LABELS = {
    "delta.low": "Difference at the target, low end",
    "delta.high": "Difference at the target, high end",
    "worth": "Compute with which the baseline reaches the candidate's loss, as a factor",
    "worth.low": "Factor of compute, low end",
    "worth.high": "Factor of compute, high end",
    "equal": "Difference at one N and D, the baseline's optimum",
    "equal.low": "Difference at one N and D, low end",
    "equal.high": "Difference at one N and D, high end",
    "crossover": "Compute at which the frontiers cross",
    "crossover.low": "Crossover, low end",
    "crossover.high": "Crossover, high end",
}


def _decision(found: Comparison, names: tuple[str, str]) -> str:
    ends = _ends("compare.delta", found.delta)
    said = f"{{compare.delta}} ({found.level:.0%}: {ends}) against {names[0]} at {{target}}"
    if found.verdict == "not enough evidence":
        return f"Not enough evidence to choose: {names[1]} stands at {said}."
    winner = names[_SIDES.index(found.verdict)]
    worth = ""
    if found.worth.value is not None:
        worth = f"; {names[0]} would need {{compare.worth}} times the compute for that loss"
    return f"Choose {winner}: {names[1]} stands at {said}{worth}."


def _ends(name: str, interval: Interval) -> str:
    low = f"{{{name}.low}}" if interval.low is not None else "open"
    high = f"{{{name}.high}}" if interval.high is not None else "open"
    return f"{low} to {high}"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _sides_table(found: Comparison, names: tuple[str, str], both: list[dict[str, Quantity]]) -> Table:
    priced = all("price" in side for side in both)
    columns = [
        Column("recipe", "Recipe"),
        Column("loss", "Loss", "nat", "at the target, at its own compute-optimal size"),
        Column("low", "Low", "nat", f"{found.level:.0%} interval"),
        Column("high", "High", "nat"),
        Column("N", "Parameters", "param", "compute-optimal"),
        Column("D", "Tokens", "token"),
        Column("serving", "Serving", "FLOP/token", "2N"),
    ]
    columns += [Column("price", "Serving price", "USD/Mtoken")] if priced else []
    rows = []
    for name, side in zip(names, both, strict=True):
        row = (name, side["loss"], side.get("low", "open"), side.get("high", "open"), side["params"], side["tokens"],
               side["serving"])  # fmt: skip
        rows.append((*row, side["price"]) if priced else row)
    winner = _SIDES.index(found.verdict) if found.verdict in _SIDES else None
    note = "The losses share their resamples: the difference is known better than either loss."
    return Table("The two recipes at the target", tuple(columns), tuple(rows), winner, "lower" if winner is not None
                 else "", note)  # fmt: skip


def _constants_table(found: Comparison, names: tuple[str, str]) -> Table:
    columns = (Column("constant", "Constant"), Column("baseline", names[0]), Column("candidate", names[1]),
               Column("meaning", "Meaning"))  # fmt: skip
    rows = tuple(
        (item.symbol, f"{found.baseline.fit.constants[item.symbol]:.5g}",
         f"{found.candidate.fit.constants[item.symbol]:.5g}", item.meaning)
        for item in found.form.parameters
    )  # fmt: skip
    return Table(f"{found.form.title} fitted to both: {found.form.text}", columns, rows)


def _curves(found: Comparison, names: tuple[str, str]) -> Table:
    """Runs and frontiers, from the smallest run to the target."""
    ladders = (found.shared.baseline, found.shared.candidate)
    compute = np.geomspace(found.shared.low, max(found.target, found.shared.high), CURVE)
    rows: list[tuple[object, ...]] = []
    for name, ladder, side in zip(names, ladders, (found.baseline, found.candidate), strict=True):
        rows += [(name, "run", float(c), float(y)) for c, y in zip(ladder["C"], ladder["loss"], strict=True)]
        best = losses_of(found.form, side.fit.theta, compute)
        rows += [(name, "fit", float(c), float(y)) for c, y in zip(compute, best, strict=True)]
        rows.append((name, "forecast", found.target, side.loss.value))
    columns = (Column("recipe", "Recipe"), Column("role", "Row", meaning="run, fit (the frontier) or forecast"),
               Column("C", "Compute", "FLOP"), Column("loss", "Loss", "nat"))  # fmt: skip
    return Table("Runs and compute-optimal frontiers", columns, tuple(rows))


def _chart(case: Case, found: Comparison, names: tuple[str, str]) -> Chart:
    crossing = found.crossover.compute
    low, high = found.shared.low, max(found.target, found.shared.high)
    marks = [(crossing, "crossover")] if crossing is not None and low <= crossing <= high else []
    look = charts.Look(log_x=True, mark_x=marks)
    spec = charts.curves(case.tables["compare.curves"], "C", "loss", "recipe", "role", look=look)
    said = f"The frontiers of {names[0]} and {names[1]} do not cross"
    if crossing is not None:
        said = case.text(f"The frontiers of {names[0]} and {names[1]} cross at {{compare.crossover}}")
        said += "" if marks else ", outside of the picture"
    alt = "Loss against compute of both recipes: the runs as dots, each fitted frontier as a line up to the target."
    return Chart(said, alt, spec, "compare.curves")


def _sections(found: Comparison) -> list[Section]:
    said = f"At one N and D, the baseline's optimum, it is {{compare.equal}} ({_ends('compare.equal', found.equal)})."
    if found.worth.value is not None:
        said += (
            f" In compute, the candidate's loss is worth {{compare.worth}} times the target for the baseline "
            f"({_ends('compare.worth', found.worth)})."
        )
    design = (
        f"{found.shared.said} {found.form.title} is fitted to both with the objective "
        f"{found.baseline.fit.objective.name}; one resample serves both ({found.draws} draws, {found.failed} failed)."
    )
    return [
        Section("The difference at the target", (said,), ("compare.sides",)),
        Section("Where they cross", (found.crossover.sentence(),), ("compare.curves",)),
        Section("What was fitted", (design,), ("compare.constants",)),
    ]  # fmt: skip
