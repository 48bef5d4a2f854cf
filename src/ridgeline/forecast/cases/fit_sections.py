"""What the case says about a fit: constants, minima, residuals, budgets of equal compute."""

from dataclasses import replace

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Section
from ridgeline.core.format import significant
from ridgeline.core.quantity import Quantity, Source, leaf
from ridgeline.forecast.cases import tables
from ridgeline.forecast.cases.derived import source_of
from ridgeline.forecast.fitting.bootstrap import Draws
from ridgeline.forecast.fitting.fit import Fit
from ridgeline.forecast.fitting.fit_report import FitReport, fit_report
from ridgeline.forecast.fitting.profile import Profile, profile
from ridgeline.forecast.isoflop import IsoFlop
from ridgeline.forecast.points import Points

_LOOSE = 0.02  # share of degenerate resamples from which the profiles are worth their time


def suspicious(fit: Fit, draws: Draws) -> tuple[str, ...]:
    """The constants that the runs may not identify: on a bound, without a standard error, or loose in resamples."""
    loose = len(draws.theta) == 0 or float(np.mean(draws.degenerate)) > _LOOSE
    found = []
    for item in fit.form.parameters:
        error, value = fit.standard_errors[item.symbol], fit.constants[item.symbol]
        known = np.isfinite(error) and (not item.log or error < abs(value))
        if item.symbol in fit.at_bound or not known or loose:
            found.append(item.symbol)
    return tuple(found)


def profiles_of(fit: Fit, draws: Draws) -> dict[str, Profile]:
    """The profiles of the suspicious constants that are not on a bound."""
    return {symbol: profile(fit, symbol) for symbol in suspicious(fit, draws) if symbol not in fit.at_bound}


def spread(fit: Fit, report: FitReport, prefix: str = "fit") -> dict[str, Quantity]:
    """``<prefix>.objective`` and, of every constant, ``<prefix>.<symbol>.error``, ``.low`` and ``.high``.

    By the name without the prefix; what is not known is left out.
    """
    source = source_of(fit)
    summed = leaf(f"{prefix}.objective", float(fit.value), "1", "measured", source)
    found = {"objective": summed.titled(f"Objective {fit.objective.name} at the optimum")}
    units = {item.symbol: item.unit for item in fit.form.parameters}
    for row in report.rows:
        where = Source(source.title, f"{source.where}, {row.basis}")
        ends = {"error": (row.error, "standard error"), "low": (row.low, "low end of its 95% interval"),
                "high": (row.high, "high end of its 95% interval")}  # fmt: skip
        for end, (value, what) in ends.items():
            if np.isfinite(value):
                at = leaf(f"{prefix}.{row.symbol}.{end}", value, units[row.symbol], "measured", where)
                found[f"{row.symbol}.{end}"] = at.titled(f"{row.symbol}, {what}")
    return found


def fit_section(case: Case, fit: Fit, draws: Draws, known: dict[str, Quantity], used: Fit) -> Section:
    """The fit report; ``known`` holds the constants and gains their errors and intervals.

    ``used`` is the fit that the forecast is read off, which may be another law's.
    """
    report = fit_report(fit, draws, profiles_of(fit, draws))
    known |= spread(fit, report)
    case.add(*known.values())
    case.add_table("fit.constants", tables.fit_table(fit, report, known))
    show = ["fit.constants"]
    if report.correlated:
        case.add_table("fit.correlations", tables.correlation_table(report))
        show.append("fit.correlations")
    if len(fit.basins) > 1:
        case.add_table("fit.basins", tables.basin_table(fit))
        show.append("fit.basins")
    facts = "; ".join(f"{name} {value}" for name, value in report.facts)
    said = [f"{facts[:1].upper()}{facts[1:]}.", *report.said]
    said.append("The intervals are of the law as if it were exact: they are no measure of how far it carries.")
    said += [fit.form.ambiguous] if fit.form.ambiguous else []
    if used is not fit:
        other = f"The forecast is read off {used.form.title}, fitted to the same runs ({used.form.text}); its constants"
        said.insert(0, f"{other} are forecast.fit.*.")
        table = case.tables["fit.constants"]
        title = f"{table.title}; the forecast is read off {used.form.title}"
        case.tables["fit.constants"] = replace(table, title=title)
    return Section("The fit", tuple(said), tuple(show))


def residual_section(case: Case, fit: Fit) -> Section:
    """Residuals by group, with the group that is off most in the title."""
    table = tables.residual_table(fit)
    case.add_table("fit.residuals", table)
    groups: dict[str, list[float]] = {}
    for row in table.rows:
        groups.setdefault(str(row[0]), []).append(float(row[1]))
    worst, values = max(groups.items(), key=lambda item: abs(float(np.median(item[1]))))
    middle = float(np.median(values))
    side = "above" if middle > 0 else "below"
    what = table.columns[0].title
    off = f"{what} {worst} lies {significant(abs(middle), 2)}% {side} the fit, the group that is off most"
    spec = charts.strip(table, "group", "residual", (0.0, ""))
    alt = (
        f"Residuals of every run in percent of the predicted loss, one lane for each {table.columns[0].title.lower()}."
    )
    case.charts["fit.residuals"] = Chart(off, alt, spec, "fit.residuals")
    return Section("Residuals", ("Runs of a group that are off together carry less information than their number.",),
                   ("fit.residuals",))  # fmt: skip


def isoflop_section(case: Case, found: IsoFlop, points: Points, target: float) -> Section | None:
    """IsoFLOP curves, their vertices and the power laws; None where fewer than two budgets have a minimum."""
    if found.n is None or found.d is None:
        return None
    _exponents(case, found, points)
    case.add_table("isoflop.budgets", tables.isoflop_table(found))
    case.add_table("isoflop.curves", tables.curve_table(found, points["N"].tolist(), points["loss"].tolist()))
    case.add_table("isoflop.optimum", tables.optimum_rows(found, target))
    case.add_table("isoflop.exponents", tables.exponent_table(found))
    spec = charts.curves(case.tables["isoflop.curves"], "N", "loss", "budget", "role", look=charts.Look(log_x=True))
    low, high = found.used[0], found.used[-1]
    title = (
        f"The best size moves from {_count(low.n)} at {low.compute:.1e} FLOP to {_count(high.n)} at {high.compute:.1e}"
    )
    alt = "Loss against parameters, one curve for each compute budget, with the vertex of its parabola as a diamond."
    case.charts["isoflop.curves"] = Chart(title.replace("e+", "e"), alt, spec, "isoflop.curves")
    spec = charts.curves(case.tables["isoflop.optimum"], "C", "best", "what", "role",
                         look=charts.Look(log_x=True, log_y=True))  # fmt: skip
    title = f"N* grows as C^{found.n.exponent:.2f} and D* as C^{found.d.exponent:.2f}"
    alt = "Best parameters and tokens against compute on logarithmic axes, with the power laws up to the target."
    case.charts["isoflop.optimum"] = Chart(title, alt, spec, "isoflop.optimum")
    said = [f"{len(found.used)} of {len(found.budgets)} budgets show a minimum."]
    said += [f"{text[:1].upper()}{text[1:]}." for text in found.biases]
    return Section("Budgets of equal compute", tuple(said),
                   ("isoflop.exponents", "isoflop.curves", "isoflop.optimum", "isoflop.budgets"))  # fmt: skip


def _exponents(case: Case, found: IsoFlop, points: Points) -> None:
    assert found.n is not None
    assert found.d is not None
    source = Source(f"IsoFLOP minima of {points.path}", f"{len(found.used)} budgets, {found.method}")
    values = {
        "isoflop.a": (found.n.exponent, "Exponent a of N* = G C^a"),
        "isoflop.b": (found.d.exponent, "Exponent b of D* = H C^b"),
        "isoflop.g": (found.n.coefficient, "Coefficient G of N* = G C^a"),
        "isoflop.h": (found.d.coefficient, "Coefficient H of D* = H C^b"),
    }
    for name, (value, label) in values.items():
        case.add(leaf(name, float(value), "1", "measured", source).titled(label))


def _count(value: float) -> str:
    from ridgeline.core.format import count

    return count(value, "param")
