"""The tables of a forecast's case, from which its report and charts are made."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ridgeline.core.case import Column, Table
from ridgeline.core.quantity import Quantity
from ridgeline.forecast.fitting.fit import Fit
from ridgeline.forecast.fitting.fit_report import FitReport
from ridgeline.forecast.isoflop import IsoFlop

CURVE = 41  # points of a drawn curve
MOST_BUDGETS = 7  # curves in one picture: as many as there are colours


def fit_table(fit: Fit, report: FitReport, known: Mapping[str, Quantity]) -> Table:
    """The constants with standard errors, intervals and what sits on a bound or is not identified.

    ``known`` holds the quantities by the end of their names: ``A``, and where there are such ``A.error``, ``A.low``
    and ``A.high``.
    """
    columns = (
        Column("constant", "Constant"),
        Column("value", "Value"),
        Column("error", "Std. error"),
        Column("low", "95% low", meaning="of the law, not of the next run"),
        Column("high", "95% high"),
        Column("basis", "By", meaning="percentiles of a bootstrap, a profile of the objective, or the standard error"),
        Column("remark", "Remark"),
    )
    rows = tuple(
        (row.symbol, known[row.symbol], *(known.get(f"{row.symbol}.{end}") for end in ("error", "low", "high")),
         row.basis, row.note)
        for row in report.rows
    )  # fmt: skip
    return Table(f"{fit.form.title} fitted to {len(fit.points)} runs", columns, rows, note=f"{fit.form.text}.")


def correlation_table(report: FitReport) -> Table:
    """The pairs of constants of which the runs fix the combination only, strongest first."""
    columns = (Column("first", "Constant"), Column("second", "with"), Column("correlation", "Correlation", "1"))
    rows = tuple((one, two, value) for one, two, value in report.correlated)
    note = "Of ln A, ln B, ln E and of the exponents as they are. Each pair is known together, not one by one."
    return Table("Constants that move together", columns, rows, note=note)


def basin_table(fit: Fit) -> Table:
    """Every minimum that was found, best first."""
    columns = (
        Column("objective", "Objective"),
        Column("above", "Above the best", "%"),
        *(Column(symbol, symbol) for symbol in fit.form.symbols),
        Column("why", "Remark"),
    )
    rows = []
    for basin in fit.basins:
        natural = fit.form.natural(basin.theta)
        above = 100 * (basin.value / fit.value - 1) if fit.value > 0 else 0.0
        said = basin.why or ("" if basin.converged else "not a minimum")
        rows.append((f"{basin.value:.8g}", above, *(f"{float(v):.5g}" for v in natural.values()), said))
    return Table("Minima of the objective", columns, tuple(rows), 0, "used")


def isoflop_table(found: IsoFlop) -> Table:
    """The minimum of every budget, or why there is none."""
    columns = (
        Column("budget", "Budget", "FLOP"),
        Column("runs", "Runs"),
        Column("N", "Best N", "param", "minimum of a parabola in log N"),
        Column("D", "Best D", "token", "minimum of a parabola in log D"),
        Column("loss", "Loss there", "nat"),
        Column("remark", "Remark"),
    )
    rows = tuple(
        (item.compute, len(item.runs), *((item.n, item.d, item.loss) if not item.refused else ("", "", "")),
         item.refused)
        for item in found.budgets
    )  # fmt: skip
    return Table("Budgets of equal compute", columns, rows)


def curve_table(found: IsoFlop, n: Sequence[float], loss: Sequence[float]) -> Table:
    """Runs, parabolas and vertices of the budgets with a minimum, at most `MOST_BUDGETS` of them, evenly picked."""
    used = found.used
    picked = np.unique(np.linspace(0, len(used) - 1, min(len(used), MOST_BUDGETS)).round().astype(int))
    rows: list[tuple[object, ...]] = []
    for item in (used[i] for i in picked):
        name = f"{item.compute:.1e}".replace("e+", "e")
        rows += [(name, "run", float(n[i]), float(loss[i])) for i in item.runs]
        if found.method == "parabola":
            low, high = item.by_n.low, item.by_n.high
            u = np.linspace(-1, 1, CURVE)
            c0, c1, c2 = item.by_n.coefficients
            x, y = np.exp(0.5 * (low + high) + 0.5 * (high - low) * u), c0 + c1 * u + c2 * u * u
            rows += [(name, "fit", float(a), float(b)) for a, b in zip(x, y, strict=True)]
        rows.append((name, "vertex", item.n, item.loss))
    columns = (Column("budget", "Budget, FLOP"), Column("role", "Row", meaning="run, fit (the parabola) or vertex"),
               Column("N", "Parameters", "param"), Column("loss", "Loss", "nat"))  # fmt: skip
    return Table("Runs, parabolas and vertices", columns, tuple(rows))


def optimum_rows(found: IsoFlop, target: float) -> Table:
    """Vertices against compute and the power laws through them, up to the target."""
    assert found.n is not None
    assert found.d is not None
    used = found.used
    compute = np.geomspace(used[0].compute, max(target, used[-1].compute), CURVE)
    rows: list[tuple[object, ...]] = []
    for name, law, places in (("parameters", found.n, [b.n for b in used]), ("tokens", found.d, [b.d for b in used])):
        rows += [(name, "vertex", b.compute, place) for b, place in zip(used, places, strict=True)]
        rows += [(name, "fit", float(c), law.at(float(c))) for c in compute]
    columns = (Column("what", "What"), Column("role", "Row", meaning="vertex, or fit (the power law)"),
               Column("C", "Compute", "FLOP"), Column("best", "Best N, best D"))  # fmt: skip
    return Table("Compute-optimal N and D", columns, tuple(rows))


def exponent_table(found: IsoFlop) -> Table:
    """a, b and a + b with their intervals."""
    assert found.n is not None
    assert found.d is not None
    level = f"{found.level:.0%}"
    columns = (Column("what", "What"), Column("value", "Value"), Column("low", f"{level} low"),
               Column("high", f"{level} high"), Column("law", "Power law"))  # fmt: skip
    rows = tuple(
        (name, f"{law.exponent:.3f}", _three(law.low), _three(law.high), f"{symbol} = {law.coefficient:.3g} C^{name}")
        for name, symbol, law in (("a", "N*", found.n), ("b", "D*", found.d))
    )
    last = ("a + b", f"{found.total:.3f}", _three(found.total_low), _three(found.total_high), found.why)
    return Table("Exponents of the optimum", columns, (*rows, last))


def _three(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "unknown"


def residual_table(fit: Fit) -> Table:
    """Every run's residual with its group: the recipe where there are several, else the budget, else the decade."""
    points, label, what = fit.points, np.empty(0, np.str_), "Recipe"
    for name, title in (("recipe", "Recipe"), ("budget", "Budget")):
        if not label.size and name in points.labels and 1 < len(np.unique(points.labels[name])) <= 20:
            label, what = points.labels[name], title
    if not label.size:
        decade = np.floor(np.log10(points["C"]) if "C" in points else np.zeros(len(points)))
        label, what = np.array([f"1e{int(d)} FLOP" for d in decade]), "Decade"
    order = np.lexsort((np.arange(len(points)), points["C"] if "C" in points else np.zeros(len(points))))
    columns = (Column("group", what), Column("residual", "Observed less predicted", "%", "of the predicted loss"),
               Column("C", "Compute", "FLOP"), Column("place", "Run"))  # fmt: skip
    compute = points["C"] if "C" in points else np.full(len(points), math.nan)
    rows = tuple(
        (str(label[i]), 100 * float(np.expm1(fit.residuals[i])), float(compute[i]), points.place(int(i))) for i in order
    )
    return Table("Residuals", columns, rows)
