"""A fit as rows and as text: values, errors, intervals, correlations, bounds, and what the data do not identify."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ridgeline.forecast.fitting.bootstrap import Draws
from ridgeline.forecast.fitting.fit import Fit
from ridgeline.forecast.fitting.profile import Profile

WIDTH = 80
_STRONG = 0.9  # correlations above it are listed
_LEVEL = 0.95


@dataclass(frozen=True)
class ConstantRow:
    """One constant: its value and standard error (natural units), an interval and what that rests on.

    ``note`` says what is wrong with it, empty where nothing is.
    """

    symbol: str
    value: float
    error: float
    low: float
    high: float
    basis: str
    at_bound: bool
    identified: bool
    meaning: str
    note: str = ""


@dataclass(frozen=True)
class FitReport:
    """``rows`` by constant, ``correlated`` pairs by strength, ``said`` the sentences under the table."""

    title: str
    facts: tuple[tuple[str, str], ...]
    rows: tuple[ConstantRow, ...]
    correlated: tuple[tuple[str, str, float], ...]
    said: tuple[str, ...]

    def lines(self) -> list[str]:
        """The report as text, at most 80 columns wide."""
        out = [self.title, *(f"  {name:<12}{value}" for name, value in self.facts), ""]
        out.append(f"  {'':<9}{'value':>12}{'std. error':>13}{'low':>12}{'high':>12}   basis")
        for row in self.rows:
            numbers = f"{_shown(row.value):>12}{_error(row):>13}{_shown(row.low):>12}{_shown(row.high):>12}"
            out.append(f"  {row.symbol:<9}{numbers}   {row.basis}"[:WIDTH])
            out += [f"    {line}" for line in _wrapped(row.note, WIDTH - 4)]
        if self.correlated:
            out += ["", f"  correlations above {_STRONG:g}"]
            out += [f"    {one}, {other:<9}{value:+.3f}" for one, other, value in self.correlated]
        if self.said:
            out += ["", *(line for text in self.said for line in _wrapped(text, WIDTH - 2, "  "))]
        return out

    def text(self) -> str:
        """The lines as one string."""
        return "\n".join(self.lines())


def fit_report(fit: Fit, draws: Draws | None = None, profiles: Mapping[str, Profile] | None = None) -> FitReport:
    """Report a fit. Intervals come from ``profiles`` (by symbol) where given, else from ``draws``, else from errors."""
    profiles = profiles or {}
    errors = fit.standard_errors
    rows = tuple(
        _row(fit, i, errors[p.symbol], draws, profiles.get(p.symbol)) for i, p in enumerate(fit.form.parameters)
    )
    return FitReport(
        title=f"{fit.form.title}: {fit.form.text}",
        facts=_facts(fit, draws),
        rows=rows,
        correlated=_correlated(fit),
        said=tuple(_said(fit, draws, profiles, rows)),
    )


def _row(fit: Fit, index: int, error: float, draws: Draws | None, profile: Profile | None) -> ConstantRow:
    parameter = fit.form.parameters[index]
    symbol, value = parameter.symbol, fit.constants[parameter.symbol]
    if profile is not None:
        low, high, basis = profile.low, profile.high, "profile"
    elif draws is not None and len(draws.theta):
        ends = np.quantile(draws.constants[symbol], [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
        low, high, basis = float(ends[0]), float(ends[1]), "bootstrap"
    else:
        low, high, basis = *_from_error(fit, index), "std. error"
    bound, identified, notes = symbol in fit.at_bound, bool(np.isfinite(error)), []
    if bound:
        notes.append("on its bound")
    if profile is None and not identified:
        notes.append("not identified: the objective has no curvature in it")
    if profile is not None:
        identified = profile.closed
    if profile is not None and not profile.closed:
        sides = [side for side, is_open in (("below", profile.open_low), ("above", profile.open_high)) if is_open]
        notes.append(f"not identified: the profile is open {' and '.join(sides)}")
    return ConstantRow(
        symbol=symbol,
        value=value,
        error=error,
        low=low,
        high=high,
        basis=basis,
        at_bound=bound,
        identified=identified,
        meaning=parameter.meaning,
        note="; ".join(notes),
    )


def _from_error(fit: Fit, index: int) -> tuple[float, float]:
    """A t interval on the scale on which the constant is fitted."""
    from scipy.special import stdtrit  # not at import: a cold command line must not pay for it

    parameter, spread = fit.form.parameters[index], float(np.sqrt(fit.covariance[index, index]))
    half = float(stdtrit(max(fit.freedom, 1), (1 + _LEVEL) / 2)) * spread
    here = float(fit.theta[index])
    with np.errstate(over="ignore"):
        return float(parameter.natural(here - half)), float(parameter.natural(here + half))


def _facts(fit: Fit, draws: Draws | None) -> tuple[tuple[str, str], ...]:
    found = [
        ("runs", f"{len(fit.points)}, {fit.freedom} degrees of freedom"),
        ("objective", f"{fit.objective.name}{_delta(fit)}, {fit.value:.8g}"),
        ("scatter", f"{100 * fit.scatter:.3g}% of the {fit.form.predicts} (root mean square)"),
    ]
    if fit.noise is not None:
        constants = ", ".join(f"{name} {value:.4g}" for name, value in fit.noise.constants.items())
        found.append(("noise", f"{fit.noise.kind}: {constants}; ln likelihood {fit.noise.log_likelihood:.2f}"))
    if draws is not None:
        found.append(("bootstrap", f"{draws.method}, {draws.count:,} resamples, {draws.failed:,} failed"))
    return tuple(found)


def _delta(fit: Fit) -> str:
    return f" (delta {fit.objective.delta:g})" if fit.objective.name == "huber" else ""


def _correlated(fit: Fit) -> tuple[tuple[str, str, float], ...]:
    matrix, symbols = fit.correlations, fit.form.symbols
    pairs = [
        (symbols[i], symbols[j], float(matrix[i, j]))
        for i in range(len(symbols))
        for j in range(i + 1, len(symbols))
        if np.isfinite(matrix[i, j]) and abs(matrix[i, j]) > _STRONG
    ]
    return tuple(sorted(pairs, key=lambda pair: -abs(pair[2])))


def _said(fit: Fit, draws: Draws | None, profiles: Mapping[str, Profile], rows: tuple[ConstantRow, ...]) -> list[str]:
    said = []
    if not fit.converged:
        said.append("The fit did not converge: from no start was a minimum reached. Do not use these constants.")
    if fit.basins[0].why:
        said.append(f"The best basin is degenerate: {fit.basins[0].why}.")
    for basin in fit.basins[1:]:
        if basin.converged:
            worse = basin.value / fit.value - 1 if fit.value > 0 else float("inf")
            what = f" ({basin.why})" if basin.why else ""
            said.append(f"Another basin{what} has an objective {100 * worse:.3g}% higher.")
    loose = [row.symbol for row in rows if not row.identified]
    if loose:
        said.append(f"The ladder does not identify {', '.join(loose)}: forecasts beyond it rest on the form.")
    if draws is not None and draws.degenerate.any():
        share = 100 * float(draws.degenerate.mean())
        said.append(f"{share:.3g}% of the resamples end in a degenerate basin.")
    if draws is not None and draws.failed:
        said.append(f"{draws.failed:,} of {draws.count:,} resamples failed to converge and are in no interval.")
    beaten = [symbol for symbol, profile in profiles.items() if profile.beaten]
    if beaten:
        said.append(f"The profile of {', '.join(beaten)} found a better optimum than the fit: fit again from there.")
    return said


def _shown(value: float) -> str:
    return f"{value:.5g}"


def _error(row: ConstantRow) -> str:
    return "on bound" if row.at_bound else f"{row.error:.3g}"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return [indent + line for line in textwrap.wrap(text, width - len(indent))]
