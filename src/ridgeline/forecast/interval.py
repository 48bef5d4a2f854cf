"""Intervals of the loss of one new run, by kind.

``calibrated``  the default: in quadrature the noise of a run, the uncertainty of the constants (bootstrap of whole
                budgets and whole sizes, the wider at each side) and the error that the ladder's own rollouts show to
                grow with the decades (`ridgeline.forecast.rollout`), by Student's t.
``point``, ``group``, ``residual``  percentile bootstraps of the fitted form, a residual added to each draw.
``profile``     profile likelihood of the loss at the target, the noise added in quadrature.
``average``     refits of every candidate form, in proportion to the likelihood of its rollouts, a residual added.

All but the first take the form for the truth, and between runs of a real ladder that is what fails.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri, stdtrit

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.forecast.average import weights
from ridgeline.forecast.fitting.bootstrap import Draws, bootstrap, standard_residuals
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.fitting.profile import profile_loss
from ridgeline.forecast.form import Array, Columns, Form
from ridgeline.forecast.rollout import GAUSS, Growth, Rollout, groupings, growth
from ridgeline.forecast.verdict import FLOOR_SHARE

Kind = Literal["calibrated", "point", "group", "residual", "profile", "average"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ONE_SIGMA = float(ndtri(0.84))  # quantiles 16 and 84 of a bootstrap: degenerate refits in the tails do not count
_LEAST_WEIGHT = 0.05  # of a form in the average: below it a form adds a draw or two


@dataclass(frozen=True)
class Parts:
    """What a calibrated interval is made of, as half widths of ln L at its level, each (m,).

    ``low`` and ``high`` are those of the constants to each side.
    """

    noise: Array
    low: Array
    high: Array
    growth: Array


@dataclass(frozen=True)
class Evidence:
    """What intervals rest on: the fit, every rollout of every candidate form, and which form was chosen."""

    fit: Fit
    forms: tuple[Form, ...]
    rollouts: tuple[Rollout, ...]
    index: int
    count: int
    seed: int

    @cached_property
    def growth(self) -> Growth:
        """The growth of the chosen form's error."""
        return growth(self.rollouts, self.index, self.noise)

    @cached_property
    def noise(self) -> float:
        """A robust standard deviation of one run's ln L about the fit."""
        return GAUSS * float(np.median(np.abs(standard_residuals(self.fit))))

    @cached_property
    def draws(self) -> dict[str, Draws]:
        """Bootstraps of whole groups, by grouping; of runs where no runs form groups."""
        labels = groupings(self.fit.points)
        if not labels:
            return {"run": bootstrap(self.fit, "point", self.count, self.seed)}
        return {name: bootstrap(self.fit, "group", self.count, self.seed, by=name) for name in labels}

    @cached_property
    def degenerate(self) -> float:
        """The share of resamples that failed or have no floor (`ridgeline.forecast.verdict`), in the worst grouping."""
        least = FLOOR_SHARE * float(np.exp(self.fit.log_y.min()))
        lost = [found.failed + (int(np.sum(found.constants["E"] < least)) if "E" in found.constants else 0)
                for found in self.draws.values()]  # fmt: skip
        return max(count / found.count for count, found in zip(lost, self.draws.values(), strict=True))

    def parts(self, columns: Columns, decades: Array, level: float) -> Parts:
        """The parts of the calibrated interval at columns (m,), ``decades`` (m,) above the largest run."""
        z, t = float(ndtri(0.5 + level / 2)), float(stdtrit(self.growth.freedom, 0.5 + level / 2))
        seen = float(np.quantile(np.abs(standard_residuals(self.fit)), level))
        centre = self.fit.form.log_loss(self.fit.theta, columns)
        sides = []
        for found in self.draws.values():
            if not len(found.theta):
                continue
            low, high = np.quantile(found.log_loss(columns), [0.16, 0.84], axis=0)
            sides.append((np.maximum(centre - low, (high - low) / 2), np.maximum(high - centre, (high - low) / 2)))
        low, high = np.max(np.array(sides), axis=0) * z / _ONE_SIGMA if sides else np.full((2, len(centre)), np.inf)
        noise = np.full(len(centre), max(seen, z * self.growth.near))
        return Parts(noise, low, high, t * self.growth.per_decade * np.maximum(decades, 0.0))


def log_interval(
    of: Evidence,
    columns: Columns,
    decades: Array,
    level: float = 0.95,
    kind: str = "calibrated",
    *,
    run: bool = True,
) -> tuple[Array, Array]:
    """The ends of the interval of ln L of a new run at columns (m,), each (m,); without ``run`` of the law.

    Raises `InputError` for an unknown kind or level.
    """
    if not 0 < level < 1:
        raise InputError.expected("a level between 0 and 1", level, where="the interval")
    centre = of.fit.form.log_loss(of.fit.theta, columns)
    if kind == "calibrated":
        parts = of.parts(columns, decades, level)
        common = parts.growth**2 + (parts.noise**2 if run else 0.0)
        return centre - np.sqrt(common + parts.low**2), centre + np.sqrt(common + parts.high**2)
    if kind == "profile":
        return _profile(of, columns, level, run=run)
    if kind == "average":
        found = _average(of, columns, run=run)
    elif kind in ("point", "group", "residual"):
        method: Literal["point", "group", "residual"] = kind  # type: ignore[assignment]
        found = np.log(bootstrap(of.fit, method, of.count, of.seed).predict(columns, noise=run))
    else:
        hint = did_you_mean(kind, KINDS, "intervals: " + ", ".join(KINDS))
        raise InputError.expected("a kind of interval", kind, where="--interval", hint=hint)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _profile(of: Evidence, columns: Columns, level: float, *, run: bool) -> tuple[Array, Array]:
    centre = of.fit.form.log_loss(of.fit.theta, columns)
    noise = float(np.quantile(np.abs(standard_residuals(of.fit)), level)) if run else 0.0
    ends = []
    for i in range(len(centre)):
        found = profile_loss(of.fit, {name: column[i : i + 1] for name, column in columns.items()}, level)
        ends.append((np.log(found.low), np.log(found.high)))
    low, high = np.array(ends).T
    return centre - np.hypot(centre - low, noise), centre + np.hypot(high - centre, noise)


def _average(of: Evidence, columns: Columns, *, run: bool) -> Array:
    """Draws of ln L (B, m) of the candidate forms, each form's share by its weight."""
    share = weights(of.rollouts, of.forms)
    share = np.where(share >= _LEAST_WEIGHT, share, 0.0) / share[share >= _LEAST_WEIGHT].sum()
    drawn = []
    for form, part in zip(of.forms, share, strict=True):
        count = round(of.count * float(part))
        if not count:
            continue
        own = of.fit if form is of.fit.form else fit(of.fit.points, form, of.fit.objective)
        drawn.append(np.log(bootstrap(own, "point", count, of.seed).predict(columns, noise=run)))
    return np.concatenate(drawn)
