"""What the case says about the forecast itself: the fan up to the target, the laws, the record on held-out runs."""

from collections.abc import Sequence

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, Section, Table
from ridgeline.core.format import parenthesised
from ridgeline.core.quantity import Quantity
from ridgeline.forecast.calibrate import Held, pooled
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.forecast import Forecast, Study
from ridgeline.forecast.form import Array

CURVE, STEPS = 49, 6  # points of the fan; rows of the table between the ladder's top and the target
MOST_REASONS = 2  # of the verdict, beside the decision; the section on the forecast has the rest
SLOW = ("profile",)  # kinds of interval that take a search at each point of a fan


def section(case: Case, made: Study, found: Forecast, numbers: dict[str, Quantity]) -> Section:
    """The fan by decade, as a table and as a chart."""
    case.add_table("forecast.decades", _decades(made, found, numbers))
    case.add_table("forecast.fan", _curve(made, found))
    look = charts.Look(log_x=True, mark_x=[(10**made.top, "largest run")] if found.decades > 0 else [])
    spec = charts.curves(case.tables["forecast.fan"], "C", "loss", "law", "role", ("low", "high"), look)
    half = 50 * (found.high - found.low) / found.loss
    title = f"{max(found.decades, 0.0):.1f} decades up, the interval is {half:.2g}% of the loss to each side"
    alt = "Loss against compute: the runs as dots, the frontier of the law as a line with its interval, the target."
    case.charts["forecast.fan"] = Chart(title, alt, spec, "forecast.fan")
    said = [f"The interval is the {found.kind} one, of one run at {found.level:.0%}."]
    said += [parenthesised(text) for text in found.because[MOST_REASONS:]]
    if "forecast.worth" in numbers and np.isfinite(found.worth) and found.decades > 0:
        said.append("Half the interval is worth a factor {forecast.worth} of compute, and the compute from the largest "
                    "run to the target is to gain {forecast.gain}.")  # fmt: skip
    return Section("The forecast", tuple(said), ("forecast.decades", "forecast.fan"))


def _frontier(made: Study, compute: Array) -> tuple[Array, Array, Array, Array, Array]:
    """N, D, loss, low and high along the frontier, each (m,)."""
    n, d = optimum(made.fit, compute)
    columns = {"N": n, "D": d}
    loss = made.predict(columns)
    if made.options.interval in SLOW:
        return n, d, loss, np.full(len(n), np.nan), np.full(len(n), np.nan)
    low, high = made.interval(columns, np.log10(compute) - made.top)
    return n, d, loss, low, high


def _decades(made: Study, found: Forecast, numbers: dict[str, Quantity]) -> Table:
    """Compute-optimal runs from the ladder's top to the target."""
    top = 10**made.top
    steps = max(2, min(STEPS, round(2 * abs(found.decades)) + 1))
    compute = np.geomspace(top, found.compute, steps)[:-1]
    rows = [tuple(float(value) for value in row) for row in zip(compute, *_frontier(made, compute), strict=True)]
    last = tuple(numbers[f"forecast.{name}"] for name in ("params", "tokens", "loss", "low", "high"))
    columns = (
        Column("C", "Compute", "FLOP"),
        Column("N", "Parameters", "param"),
        Column("D", "Tokens", "token"),
        Column("loss", "Loss", "nat"),
        Column("low", "Low", "nat", f"{found.level:.0%} interval of one run"),
        Column("high", "High", "nat"),
    )
    cells = [_known(row) for row in rows]
    return Table(
        "From the largest run to the target", columns, (*cells, (numbers["target"], *last)), len(cells), "target"
    )


def _curve(made: Study, found: Forecast) -> Table:
    points, name = made.points, made.fit.form.title
    compute = points.compute
    ends = float(compute.min()), max(float(compute.max()), found.compute)
    grid = np.geomspace(*ends, CURVE)
    rows: list[tuple[object, ...]] = [
        (name, "run", float(c), float(y), "", "") for c, y in zip(compute, points[made.fit.form.predicts], strict=True)
    ]
    _, _, loss, low, high = _frontier(made, grid)
    line = zip(grid.tolist(), loss.tolist(), low.tolist(), high.tolist(), strict=True)
    rows += [(name, "fit", *_known(row)) for row in line]
    rows.append((name, "forecast", found.compute, found.loss, found.low, found.high))
    columns = (
        Column("law", "Law"),
        Column("role", "Row", meaning="run, fit (the frontier of the law) or forecast"),
        Column("C", "Compute", "FLOP"),
        Column("loss", "Loss", "nat"),
        Column("low", "Low", "nat"),
        Column("high", "High", "nat"),
    )
    return Table("Runs, frontier and interval", columns, tuple(rows))


def record_section(case: Case, made: Study, found: Forecast) -> Section:
    """The laws side by side, their record on the runs cut off, and the parts of the interval."""
    case.add_table("forecast.members", _members(made, found))
    show = ["forecast.members"]
    if found.kind == "calibrated":
        case.add_table("forecast.parts", _parts(found))
        show.append("forecast.parts")
    growth = found.growth
    rate = f"{100 * growth.per_decade:.2g}% a decade (standard deviation)"
    said = [
        f"The error that grows with the distance is {rate}: {growth.cuts} hold-outs and the assumed growth together."
    ]
    if np.isfinite(growth.measured):
        said.append(f"The hold-outs alone show {100 * growth.measured:.2g}% a decade beyond noise and constants.")
    return Section("What the interval rests on", tuple(said), tuple(show))


def _members(made: Study, found: Forecast) -> Table:
    """The laws side by side: what each says of the target, and how each did on the runs cut off."""
    columns = (
        Column("law", "Law"),
        Column("loss", "At the target", "nat"),
        Column("weight", "Weight", "%", "by the likelihood of the hold-outs; used by --interval average"),
        *(
            Column(f"cut{i}", f"Top {one.cut:g} decades", "%",
                   f"median absolute error on the {len(one.tested)} runs cut off, {int(one.kept.sum())} kept")
            for i, one in enumerate(made.rollouts)
        ),
    )  # fmt: skip
    rows = tuple(
        (member.form.title, member.loss, 100 * member.weight, *(100 * float(one.typical[i]) for one in made.rollouts))
        for i, member in enumerate(found.members)
    )
    index = next(i for i, member in enumerate(found.members) if member.chosen)
    note = "The columns of decades are median errors on runs above a cut, of fits below it." if made.rollouts else ""
    return Table("Laws at the target, and on the runs cut off", columns, rows, index, "used", note)


def _parts(found: Forecast) -> Table:
    columns = (
        Column("what", "Part"),
        Column("low", "Below", "%", "half width of the loss"),
        Column("high", "Above", "%"),
    )
    parts = found.parts
    rows = (
        ("noise of one run", 100 * float(parts.noise[0]), 100 * float(parts.noise[0])),
        ("uncertain constants", 100 * float(parts.low[0]), 100 * float(parts.high[0])),
        ("the law, over the distance", 100 * float(parts.growth[0]), 100 * float(parts.growth[0])),
    )
    note = "They add in squares."
    return Table("What the interval is made of", columns, rows, note=note)


def calibrated_section(case: Case, held: Sequence[Held], law: str) -> Section:
    """The coverage that the interval would have had on this ladder; ``law`` is the title of the one used today."""
    columns = (
        Column("cut", "Held out", meaning="decades below the largest run"),
        Column("kept", "Kept"),
        Column("tested", "Tested"),
        Column("covered", "Covered", "%", "share of the tested runs inside their intervals"),
        Column("width", "Width", "%", "mean full width of the intervals, of the loss"),
        Column("median", "Median error", "%"),
        Column("best", "At the best", "%", "signed error at the lowest loss; positive: the forecast was too high"),
        Column("law", "Law used"),
    )
    rows = tuple(_held_row(one) for one in held)
    table = Table("The interval on runs of this ladder that it had not seen", columns, rows)
    case.add_table("forecast.calibration", table)
    inside, tested = pooled(held)
    if not tested:
        said = "The ladder is too short to hold any of it out, so the interval has no record here."
    else:
        said = (
            f"Over the cuts, {inside} of {tested} forecasts held ({100 * inside / tested:.0f}%). Runs near a cut are "
            "easier than the target, and the cuts share their runs: read it as a record, not as a guarantee."
        )
    others = sorted({one.form for one in held if one.form and one.form != law})
    if others:
        said += f" Below the cuts the choice fell on {' and '.join(others)}, and today on {law}: the record is of the "
        said += "procedure, not of that law."
    return Section("Would it have held", (said,), ("forecast.calibration",))


def _held_row(one: Held) -> tuple[object, ...]:
    name = f"top {one.cut:g} decades"
    if one.refused:
        return (name, one.kept, one.tested, None, None, None, None, f"none: {one.refused}")
    shares = (100 * one.covered / one.tested, 100 * one.width, 100 * one.median, 100 * one.best)
    return (name, one.kept, one.tested, *shares, one.form)


def _known(row: Sequence[float]) -> tuple[float | None, ...]:
    """The figures of a row, None for what is not known."""
    return tuple(value if np.isfinite(value) else None for value in row)
