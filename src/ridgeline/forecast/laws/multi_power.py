"""Laws of the whole learning-rate schedule: what a run's loss is at a step, from the rate of every step before it.

    multi-power   L(t) = L0 + A*S(t)^-alpha - B*sum_k (eta[k-1] - eta[k])*G(eta[k]^-gamma * S[k..t]),
                  G(x) = 1 - (1 + C*x)^-beta                                          (Luo et al. 2025)
    tissue        L(t) = L0 + A*S(t)^-alpha - C*sum_k (eta[k-1] - eta[k])*sum_{i=k..t} lambda^(i-k)
                                                                                      (Tissue et al. 2024)

S(t) is the sum of the rates of the steps 0 to t and S[k..t] that of k to t. A law of this kind holds for one model,
one batch size and one data set: it moves between schedules, not between sizes, so it is no `Form` of N and D.

The double sum visits each change of the rate once for each step asked for: (steps asked for) x (changes before it),
in blocks of bounded memory. A constant stretch has no changes. ``merge`` treats that many neighbouring steps as one
change, placed at their mean weighted by its size; with 16 the loss moves by less than 1e-4 nats on the published
schedules and the sum is 16 times shorter.

Valid for one optimizer, and for schedules whose peak and warm-up are like those of the runs behind the constants, after
the warm-up. Neither law knows a best peak: a higher one always forecasts less loss until the run would diverge.

Sources: A Multi-Power Law for Loss Curve Prediction (arXiv 2503.12811); Scaling Law with Learning Rate Annealing (arXiv
2408.11029), the law with the annealing area S2. What they leave open: the worst error in the table of the first is a
mean over curves of each curve's largest error, and the rises of the rate during warm-up are part of the sum in its
authors' code. The second fixes lambda by hand (0.99 to 0.999) where this fit estimates it, and counts the warm-up at
the peak rate; here it is counted as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError, NotEnoughDataError
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, derive, given

Array = NDArray[np.float64]
Kind = Literal["multi-power", "tissue"]
SYMBOLS: Mapping[Kind, tuple[str, ...]] = {
    "multi-power": ("L0", "A", "alpha", "B", "C", "beta", "gamma"),
    "tissue": ("L0", "A", "alpha", "C", "lambda"),
}
_BLOCK = 2_000_000  # elements of the double sum in memory at once
_HUBER = 1e-3  # of residuals of ln L, as both papers fit
_FIT_MERGE = 16
_NEAR_ZERO = 1e-12  # of the peak: eta^-gamma has no value at 0
_FLOOR = 1e-3  # nats, below which a trial of the fit is not let


@dataclass(frozen=True)
class Curve:
    """A run: the rate of every step ``lr`` (T,), and the loss in nats (n,) at the ``steps`` (n,), each below T.

    Raises `InputError` for rates below 0, steps outside the schedule, and losses that are not positive numbers.
    """

    name: str
    lr: Array
    steps: NDArray[np.int64]
    loss: Array

    def __post_init__(self) -> None:
        check_schedule(self.lr, self.steps, self.name)
        if self.loss.shape != self.steps.shape:
            raise InputError.expected(f"{self.steps.size} losses", self.loss.size, where=self.name)
        bad = np.flatnonzero(~(np.isfinite(self.loss) & (self.loss > 0)))
        if bad.size:
            where = f"{self.name}, step {self.steps[bad[0]]}"
            raise InputError.expected("a positive loss", float(self.loss[bad[0]]), where=where)


def check_schedule(lr: Array, steps: NDArray[np.int64], where: str) -> None:
    """Raises `InputError` for a schedule or steps that no law of this module can read."""
    bad = np.flatnonzero(~(np.isfinite(lr) & (lr >= 0)))
    if bad.size:
        raise InputError.expected("a rate of 0 or more", float(lr[bad[0]]), where=f"{where}, step {bad[0]}")
    outside = np.flatnonzero((steps < 0) | (steps >= lr.size))
    if outside.size:
        raise InputError.expected(f"a step from 0 to {lr.size - 1}", int(steps[outside[0]]), where=where)
    if np.cumsum(lr)[steps].min(initial=np.inf) <= 0:
        raise InputError.expected("a rate above 0 before the first step asked for", 0.0, where=where)


@dataclass(frozen=True)
class Changes:
    """The changes of a schedule, m of them: ``step`` (last step of each), ``size`` (eta[k-1] - eta[k]), the rate
    ``lr`` after it, and the sums of rates before it, ``before``; ``total`` (T,) is S. Each float64 of shape (m,).
    """

    step: Array
    size: Array
    lr: Array
    before: Array
    total: Array

    @classmethod
    def of(cls, lr: Array, merge: int = 1) -> "Changes":
        """The changes of a schedule (T,), ``merge`` neighbouring steps as one. A rate of 0 counts as one near it."""
        total = np.cumsum(lr)
        at = 1 + np.flatnonzero(np.diff(lr))
        size, after = lr[at - 1] - lr[at], np.maximum(lr[at], _NEAR_ZERO * lr.max(initial=0.0))
        if merge == 1 or not at.size:
            return cls(at.astype(float), size, after, total[at - 1], total)
        starts = np.flatnonzero(np.diff(at // merge, prepend=-1))
        weight = np.abs(size)
        mass = np.add.reduceat(weight, starts)
        last = np.append(starts[1:], at.size) - 1

        def mean(values: Array) -> Array:
            return np.asarray(np.add.reduceat(weight * values, starts) / mass, float)

        size = np.add.reduceat(size, starts)
        return cls(at[last].astype(float), size, mean(after), mean(total[at - 1]), total)

    def falls(self) -> "Changes":
        """The changes that lower the rate."""
        return self._where(self.size > 0)

    def rises(self) -> "Changes":
        """The changes that raise the rate."""
        return self._where(self.size < 0)

    def _where(self, keep: NDArray[np.bool_]) -> "Changes":
        return Changes(self.step[keep], self.size[keep], self.lr[keep], self.before[keep], self.total)


def predict(kind: Kind, constants: Mapping[str, float], lr: Array, steps: NDArray[np.int64], merge: int = 1) -> Array:
    """The loss in nats, shape (n,), at the ``steps`` (n,) of a schedule ``lr`` (T,).

    ``constants`` are those of `SYMBOLS`. Raises `InputError` for a schedule that cannot be read.
    """
    check_schedule(lr, steps, "the schedule")
    theta = np.array([constants[symbol] for symbol in SYMBOLS[kind]])
    return _MODELS[kind](theta, Changes.of(lr, merge if kind == "multi-power" else 1), steps)[0]


def published(law: Law) -> dict[str, float]:
    """The constants of a published multi-power law. Raises `InputError` for a law of another kind."""
    if law.kind != "multi_power":
        raise InputError.expected("a law of kind multi_power", law.kind, where=law.slug)
    return {symbol: float(law.constants[symbol].value) for symbol in SYMBOLS["multi-power"]}


def loss_of(law: Law, lr: Array, step: int, name: str) -> Quantity:
    """The loss after ``step`` of a schedule ``lr`` (T,) with its derivation: the sum of the rates S, and the double
    sum in two, what the rises of the rate cost (``risen``, the warm-up) and what its falls gained (``fallen``).

    Raises `InputError` as `predict` does.
    """
    steps = np.array([step])
    check_schedule(lr, steps, "the schedule")
    theta, changes = np.array(list(published(law).values())), Changes.of(lr)
    terms = -_multi_power(theta, changes.falls(), steps)[1][3, 0], _multi_power(theta, changes.rises(), steps)[1][3, 0]
    inputs = {symbol: law.constants[symbol] for symbol in ("L0", "A", "alpha", "B")}
    total = given(f"{name}.rates", float(changes.total[step]), "1", "the schedule", "sum of the rates to this step")
    fallen = given(f"{name}.fallen", float(terms[0]), "1", "the schedule", "falls of the rate, each times its G")
    risen = given(f"{name}.risen", float(terms[1]), "1", "the schedule", "rises of the rate, each times its G")
    text = "L0 + A*S**(-alpha) + B*(risen - fallen)"
    return derive(name, text, "nat", S=total, risen=risen, fallen=fallen, **inputs).titled("Predicted loss", law.name)


@dataclass(frozen=True)
class ScheduleFit:
    """Constants fitted to the ``curves``: the Huber sum of ln residuals ``objective``, and whether it converged."""

    kind: Kind
    constants: Mapping[str, float]
    objective: float
    converged: bool
    curves: tuple[str, ...]

    def predict(self, lr: Array, steps: NDArray[np.int64], merge: int = 1) -> Array:
        """The loss in nats (n,) at the ``steps`` of another schedule ``lr`` (T,)."""
        return predict(self.kind, self.constants, lr, steps, merge)


def fit(curves: Sequence[Curve], kind: Kind = "multi-power", held: Mapping[str, float] | None = None) -> ScheduleFit:
    """Fit a law of the schedule to whole curves: the sum of Huber(1e-3) of ln residuals, several starts, best kept.

    ``held`` keeps constants where they are: three curves hardly tell C, beta and gamma apart, and those of another
    size carry over. Two curves with different schedules are the least: one cannot tell what annealing does from what
    training does. Raises `NotEnoughDataError` below that, `InputError` for a constant that the law does not have.
    """
    if len({curve.lr.tobytes() for curve in curves}) < 2:
        raise NotEnoughDataError("Expected curves of two different schedules at least, got one, at the curves")
    symbols, fixed = SYMBOLS[kind], dict(held or {})
    for symbol in fixed:
        if symbol not in symbols:
            raise InputError.expected("one of " + ", ".join(symbols), symbol, where="the constants held")
    found = [_descend(kind, curves, start, fixed) for start in _starts(kind, curves, fixed)]
    objective, theta, converged = min(found, key=lambda item: item[0])
    constants = dict(zip(symbols, theta.tolist(), strict=True))
    return ScheduleFit(kind, constants, objective, converged, tuple(curve.name for curve in curves))


def _descend(
    kind: Kind, curves: Sequence[Curve], start: Array, fixed: Mapping[str, float]
) -> tuple[float, Array, bool]:
    """The objective, constants and convergence from one start, by a trust region in the constants that are free."""
    from scipy.optimize import least_squares

    tables = [Changes.of(curve.lr, _FIT_MERGE if kind == "multi-power" else 1) for curve in curves]
    target = np.log(np.concatenate([curve.loss for curve in curves]))
    free = np.array([symbol not in fixed for symbol in SYMBOLS[kind]])
    model, scale = _MODELS[kind], _scales(kind, curves)[free]

    def full(theta: Array) -> Array:
        whole = start.copy()
        whole[free] = theta * scale
        return whole

    def evaluate(theta: Array) -> tuple[Array, Array]:
        parts = [model(full(theta), table, curve.steps) for table, curve in zip(tables, curves, strict=True)]
        value = np.maximum(np.concatenate([part[0] for part in parts]), _FLOOR)
        slopes = np.concatenate([part[1][free] for part in parts], axis=-1)
        return target - np.log(value), -(slopes / value).T * scale

    high = np.full(scale.size, np.inf)
    if free[-1] and kind == "tissue":
        high[-1] = (1 - 1e-6) / scale[-1]
    found = least_squares(
        lambda theta: evaluate(theta)[0], start[free] / scale, lambda theta: evaluate(theta)[1],
        (np.full(scale.size, 1e-9), high), loss="huber", f_scale=_HUBER, x_scale="jac",
        ftol=1e-12, xtol=1e-10, gtol=1e-12, max_nfev=200,
    )  # fmt: skip
    return float(found.cost), full(found.x), bool(found.status > 0)


def _multi_power(theta: Array, changes: Changes, steps: NDArray[np.int64]) -> tuple[Array, Array]:
    """The loss (n,) and its derivatives by the seven constants, shape (7, n)."""
    base, a, alpha, b, c, beta, gamma = theta
    ends = changes.total[steps]
    fallen, slopes = np.zeros(steps.size), np.zeros((3, steps.size))
    rate, log_lr = c * changes.lr**-gamma, np.log(changes.lr)
    order = np.argsort(steps, kind="stable")
    first = 0
    while first < order.size:
        rows = order[first : first + max(1, _BLOCK // max(changes.size.size, 1))]
        seen = int(np.searchsorted(changes.step, steps[rows[-1]], side="right"))
        cx = rate[:seen] * np.maximum(ends[rows, None] - changes.before[:seen], 0.0)
        cx[changes.step[:seen] > steps[rows, None]] = 0.0  # not yet happened
        log_u = np.log1p(cx)
        kept = np.exp(-beta * log_u)
        size = changes.size[:seen]
        fallen[rows] = (1 - kept) @ size
        moved = beta * kept * (cx / (1 + cx))
        slopes[0, rows] = moved @ size / c
        slopes[1, rows] = (log_u * kept) @ size
        slopes[2, rows] = -(moved @ (size * log_lr[:seen]))
        first += rows.size
    power = ends**-alpha
    value = base + a * power - b * fallen
    return value, np.stack([np.ones_like(value), power, -a * power * np.log(ends), -fallen, *(-b * slopes)])


def _tissue(theta: Array, changes: Changes, steps: NDArray[np.int64]) -> tuple[Array, Array]:
    """The loss (n,) and its derivatives by the five constants, shape (5, n). One pass of a recursion over all steps."""
    from scipy.signal import lfilter

    base, a, alpha, c, decay = theta
    dropped = np.zeros(changes.total.size)
    dropped[changes.step.astype(int)] = changes.size
    momentum = lfilter([1.0], [1.0, -decay], dropped)  # m[i] = decay*m[i-1] + (eta[i-1] - eta[i])
    drift = lfilter([1.0], [1.0, -decay], np.append(0.0, momentum[:-1]))  # its derivative by decay
    area, slope = np.cumsum(momentum)[steps], np.cumsum(drift)[steps]
    ends = changes.total[steps]
    power = ends**-alpha
    value = base + a * power - c * area
    return value, np.stack([np.ones_like(value), power, -a * power * np.log(ends), -area, -c * slope])


_GRID: Mapping[Kind, Mapping[str, tuple[float, ...]]] = {
    "multi-power": {"alpha": (0.3, 0.5, 0.8), "beta": (0.3, 0.6, 1.0), "gamma": (0.3, 0.6, 0.9)},
    "tissue": {"alpha": (0.3, 0.5, 0.8), "lambda": (0.99, 0.997, 0.999, 0.9997)},
}
_MODELS = {"multi-power": _multi_power, "tissue": _tissue}


def _scales(kind: Kind, curves: Sequence[Curve]) -> Array:
    """What each constant is measured in during the fit, so that all are near 1."""
    peak = max(float(curve.lr.max()) for curve in curves)
    shared = [float(np.median(np.concatenate([curve.loss for curve in curves]))), 1.0, 1.0]
    return np.array([*shared, *((0.1 / peak, 1.0, 1.0, 1.0) if kind == "multi-power" else (1e-4 / peak, 1.0))])


def _starts(kind: Kind, curves: Sequence[Curve], fixed: Mapping[str, float]) -> Array:
    """Starting constants, shape (S, P): the best of a grid of the shape constants, the linear ones solved for."""
    target = np.concatenate([curve.loss for curve in curves])
    tables = [Changes.of(curve.lr, _FIT_MERGE if kind == "multi-power" else 1) for curve in curves]
    symbols, model, found = SYMBOLS[kind], _MODELS[kind], []
    grids = [(fixed[symbol],) if symbol in fixed else _GRID[kind].get(symbol, (1.0,)) for symbol in symbols]
    for shape in product(*grids):
        theta = np.array(shape)
        slopes = [model(theta, table, curve.steps)[1] for table, curve in zip(tables, curves, strict=True)]
        slopes_of = np.concatenate(slopes, axis=-1)
        linear = [i for i in (0, 1, 3) if symbols[i] not in fixed]
        rest = sum((theta[i] * slopes_of[i] for i in (0, 1, 3) if i not in linear), np.zeros(target.size))
        design = slopes_of[linear].T
        theta[linear] = np.linalg.lstsq(design / target[:, None], 1 - rest / target, rcond=None)[0]
        if theta.min() > 0:
            value = np.maximum(design @ theta[linear] + rest, _FLOOR)
            found.append((float(np.abs(np.log(target / value)).sum()), theta.tolist()))
    if not found:
        raise NotEnoughDataError("Expected losses that fall as the rate is lowered, got none, at the curves")
    return np.array([theta for _, theta in sorted(found)[:3]])
