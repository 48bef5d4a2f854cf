"""The forecast: the loss of a run beyond the ladder, with an interval that covers it, and a verdict.

`study` does the work that no target changes: rollouts of every candidate form, the choice among them, the fit.
`Study.at` reads a forecast off it. The point forecast is plain Huber-Chinchilla unless another form has a record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ridgeline.arithmetic.laws import LOSS_KINDS, equivalent_compute
from ridgeline.core.errors import InputError, NotEnoughDataError
from ridgeline.core.quantity import given
from ridgeline.forecast.average import Choice, choose, weights
from ridgeline.forecast.fitting.bootstrap import Draws
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.fitting.objective import HUBER, Objective
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Columns, Form
from ridgeline.forecast.interval import Evidence, Parts, log_interval
from ridgeline.forecast.points import Points
from ridgeline.forecast.reach import require_reach
from ridgeline.forecast.rollout import Growth, Rollout, candidates, groupings, rollouts
from ridgeline.forecast.rollout import compute as ladder_compute
from ridgeline.forecast.verdict import FLOOR_SHARE, Case, Verdict, judge


@dataclass(frozen=True)
class Options:
    """How to forecast.

    ``forms``: the candidates, the first one the default; empty for Chinchilla and the coupled form. ``interval`` is a
    kind of `ridgeline.forecast.interval`, ``draws`` the resamples of a bootstrap. ``labels`` are those of the target
    (recipe, schedule), where they are known.
    """

    forms: tuple[Form, ...] = ()
    objective: Objective = HUBER
    interval: str = "calibrated"
    level: float = 0.95
    draws: int = 400
    seed: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Member:
    """A candidate form: its weight by rollouts, what it predicts at the target (nats), and whether it was chosen."""

    form: Form
    weight: float
    loss: float
    chosen: bool


@dataclass(frozen=True)
class Forecast:
    """What is said of one target.

    ``loss``, ``low`` and ``high`` in nats per token, the interval for one observed run at ``level``. ``n``
    (parameters), ``d`` (tokens) and ``compute`` (FLOP) say where, ``decades`` how far beyond the largest run.
    ``gain`` is by how much (nats) the target's optimum lies below that of the largest run's compute. ``doubt`` (nats)
    is the half width of the law itself, a run's noise left out, and ``worth`` the factor of compute that it comes to
    at the target (nan where the law gives none). ``parts`` are the interval's, as half widths of ln L.
    """

    loss: float
    low: float
    high: float
    level: float
    kind: str
    n: float
    d: float
    compute: float
    decades: float
    gain: float
    doubt: float
    worth: float
    fit: Fit
    members: tuple[Member, ...]
    choice: Choice
    growth: Growth
    backtest: tuple[Rollout, ...]
    parts: Parts
    draws: Mapping[str, Draws]
    verdict: Verdict

    @property
    def because(self) -> tuple[str, ...]:
        """The reasons of the verdict, the deciding ones first."""
        return self.verdict.because


@dataclass(frozen=True)
class Study:
    """A ladder studied: its rollouts, the choice of a form, the fit. `at` forecasts."""

    points: Points
    options: Options
    forms: tuple[Form, ...]
    rollouts: tuple[Rollout, ...]
    choice: Choice
    thetas: tuple[Array, ...]
    evidence: Evidence

    @property
    def fit(self) -> Fit:
        """The fit of the chosen form."""
        return self.evidence.fit

    @cached_property
    def top(self) -> float:
        """log10 of the largest compute of the ladder."""
        return float(ladder_compute(self.points).max())

    @cached_property
    def span(self) -> float:
        """Decades of compute from the smallest to the largest run."""
        return float(np.ptp(ladder_compute(self.points)))

    def predict(self, columns: Columns) -> Array:
        """The point forecast in nats at columns (m,)."""
        return self.fit.predict(columns)

    def interval(self, columns: Columns, decades: Array) -> tuple[Array, Array]:
        """The interval of one run at columns (m,), ``decades`` (m,) above the largest run: low and high in nats."""
        low, high = log_interval(self.evidence, columns, decades, self.options.level, self.options.interval)
        return np.exp(low), np.exp(high)

    def at(self, compute: float | None = None, *, n: float | None = None, d: float | None = None) -> Forecast:
        """The forecast at a compute (FLOP; at the chosen law's optimal N and D there), or at given N and D.

        Raises `InputError` where neither is given, the law has no optimum, or the target lies below the ladder, and
        `NotEnoughDataError` where the runs leave the loss there open.
        """
        compute, n, d = self._target(compute, n, d)
        require_reach(self.points, compute)
        columns = {"N": np.array([n]), "D": np.array([d])}
        decades = float(np.log10(compute) - self.top)
        loss = float(self.predict(columns)[0])
        low, high = (float(end[0]) for end in self.interval(columns, np.array([decades])))
        parts = self.evidence.parts(columns, np.array([decades]), self.options.level)
        best, here = self.frontier(10**self.top), self.frontier(compute)
        doubt = loss * float(np.hypot(parts.high, parts.growth)[0])
        if not np.all(np.isfinite([loss, low, high, doubt])):
            self._open(compute)
        gain, worth = best - here, self.worth(here, doubt)
        facts = Case(
            doubt=doubt, level=self.options.level, decades=decades, span=self.span, gain=gain, worth=worth,
            scatter=self.worth(best, best * self.evidence.noise), fit=self.fit, choice=self.choice,
            growth=self.evidence.growth, degenerate=self.evidence.degenerate, labels=self.options.labels,
        )  # fmt: skip
        return Forecast(
            loss=loss, low=low, high=high, level=self.options.level, kind=self.options.interval,
            n=n, d=d, compute=compute, decades=decades, gain=gain, doubt=doubt, worth=worth, fit=self.fit,
            members=self.members(columns), choice=self.choice, growth=self.evidence.growth, backtest=self.rollouts,
            parts=parts, draws=self.evidence.draws,
            verdict=judge(facts),
        )  # fmt: skip

    def _open(self, compute: float) -> None:
        """Say that an interval has no end."""
        where = f"{compute:.3g}".replace("e+", "e")
        raise NotEnoughDataError(
            f"Expected runs that bound the loss at {where} FLOP, got {len(self.points)} that leave the constants of "
            f"{self.fit.form.title} open, at {self.points.path}",
            hint="add runs at other sizes and token counts, or check the columns of N, D and the loss",
        )

    def members(self, columns: Columns) -> tuple[Member, ...]:
        """Every candidate at columns of shape (1,)."""
        share = weights(self.rollouts, self.forms)
        return tuple(
            Member(
                form, float(share[i]), float(np.exp(form.log_loss(self.thetas[i], columns)[0])), i == self.choice.index
            )
            for i, form in enumerate(self.forms)
        )

    def frontier(self, compute: float) -> float:
        """The loss at the chosen law's optimal N and D of a compute (FLOP); nan where it has none."""
        n, d = optimum(self.fit, compute)
        if not (np.isfinite(n) and np.isfinite(d)):
            return float("nan")
        return float(self.predict({"N": np.atleast_1d(n), "D": np.atleast_1d(d)})[0])

    def worth(self, loss: float, step: float) -> float:
        """The factor of compute between two losses ``step`` (nats) apart on the frontier, nan where none is known.

        Upward of ``loss``: what a run that is worse by the step could have saved.
        """
        if self.fit.form.kind not in LOSS_KINDS or not np.isfinite(loss):
            return float("nan")
        law = self.fit.law("forecast")
        best, off = given("forecast.loss", loss, "nat"), given("forecast.off", loss + step, "nat")
        share = float(equivalent_compute(law, best, off, "forecast.worth").base)
        return 1 / share if share > 0 else float("inf")

    def _target(self, compute: float | None, n: float | None, d: float | None) -> tuple[float, float, float]:
        if n is not None and d is not None:
            if not (np.isfinite(n) and np.isfinite(d) and n > 0 and d > 0):
                raise InputError.expected("positive N and D", f"{n:g}, {d:g}", where="the target")
            counted = 10 ** accounted(self.points)
            return (float(6 * n * d * counted) if compute is None else float(compute)), float(n), float(d)
        if compute is None or n is not None or d is not None:
            raise InputError.expected("a compute, or both N and D", "one of N and D" if compute is None else "both",
                                      where="the target")  # fmt: skip
        best_n, best_d = optimum(self.fit, compute)
        if not (np.isfinite(best_n) and np.isfinite(best_d)):
            raise InputError.expected(f"a compute at which {self.fit.form.title} has an optimum", f"{compute:g}",
                                      where="--target", hint="give N and D: --target 70Bx1.4T")  # fmt: skip
        return float(compute), float(best_n), float(best_d)


def accounted(points: Points) -> float:
    """log10 of the compute that the ladder states over 6ND, the median over its runs; 0 where it states none."""
    return float(np.median(ladder_compute(points) - np.log10(6 * points["N"] * points["D"])))


def study(points: Points, options: Options | None = None) -> Study:
    """Everything about a ladder that a forecast needs and no target changes.

    Raises `InputError` for a ladder that no candidate can be fitted to and for a form that reads more than N and D.
    """
    options = options or Options()
    forms = options.forms or candidates()
    for form in forms:
        if set(form.inputs) != {"N", "D"}:
            hint = "`ridgeline forecast laws` shows what each law reads; a forecast gives it N and D alone"
            raise InputError.expected("a law of N and D", f"{form.slug}, of {', '.join(form.inputs)}", where="--law",
                                      hint=hint)  # fmt: skip
    if "loss" in points and len(points) > 1 and np.ptp(points["loss"]) == 0:
        raise InputError.expected("losses that differ between the runs", f"{points['loss'][0]:g} for all of them",
                                  where=points.path, hint="check which column holds the loss")  # fmt: skip
    labelled = _labelled(points)
    first = fit(labelled, forms[0], options.objective)
    distinct = len(np.unique(np.stack([labelled["N"], labelled["D"]], axis=1), axis=0))
    forms = tuple(form for form in forms if distinct >= len(form.parameters))
    found, thetas = rollouts(labelled, forms, options.objective)
    flat = (first.theta, *thetas[1:])
    lowest = float(np.min(labelled["loss"])) if "loss" in labelled else np.nan
    choice = choose(
        found, forms, np.array([shows_floor(f, theta, lowest) for f, theta in zip(forms, flat, strict=True)])
    )
    form = forms[choice.index]
    chosen = first if choice.index == 0 else fit(labelled, form, options.objective, starts=flat[choice.index])
    evidence = Evidence(chosen, forms, found, choice.index, options.draws, options.seed)
    return Study(labelled, options, forms, found, choice, flat, evidence)


def shows_floor(form: Form, theta: Array, lowest: float) -> bool:
    """Whether a fit has an irreducible loss of some size against the ladder's ``lowest``; a form without one: yes."""
    floor = form.natural(theta).get("E")
    return floor is None or not float(floor) < FLOOR_SHARE * lowest


def _labelled(points: Points) -> Points:
    """The points with a label ``size``, that the bootstrap of whole sizes resamples by."""
    found = groupings(points)
    extra = {
        name: label.astype(np.str_) for name, label in found.items() if name not in points.labels and name != "budget"
    }
    return replace(points, labels={**points.labels, **extra})


def forecast(
    points: Points,
    compute: float | None = None,
    options: Options | None = None,
    *,
    n: float | None = None,
    d: float | None = None,
) -> Forecast:
    """The forecast at a compute (FLOP) or at given N and D. Raises `InputError` as `study` and `Study.at` do."""
    return study(points, options).at(compute, n=n, d=d)
