"""IsoFLOP analysis: the best N and D of every compute budget, and the power laws through them.

N* = G C^a and D* = H C^b by least squares in the logarithms (Hoffmann et al. 2022, arXiv 2203.15556, section 3.2).
D* comes from the losses over log D, not from C/(6 N*): a + b differs from one exactly where C is not 6ND, and says so.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.accounting import Place, cause
from ridgeline.forecast.points import Array, Points
from ridgeline.forecast.vertices import Method, Minimum, minimum, resampled

SUM_TOLERANCE = 0.01  # of a + b, beyond which the accounting is named
_GAP = 0.08  # decades (20%) between runs that are not of one budget
_SPREAD = 0.16  # decades that the runs of one budget may span
_OFF_CENTRE = 0.5  # of a half window


@dataclass(frozen=True)
class Budget:
    """One budget: ``compute`` (FLOP, geometric mean), its runs, and the minimum, NaN where ``refused`` says why."""

    name: str
    compute: float
    runs: NDArray[np.int64]
    by_n: Minimum
    by_d: Minimum
    refused: str
    sweep: bool  # three or more sizes at one compute: a minimum could be expected

    @property
    def n(self) -> float:
        """The best N, parameters."""
        return math.exp(self.by_n.x) if not self.refused else math.nan

    @property
    def d(self) -> float:
        """The best D, tokens."""
        return math.exp(self.by_d.x) if not self.refused else math.nan

    @property
    def loss(self) -> float:
        """The loss at the minimum in log N, nats."""
        return self.by_n.loss if not self.refused else math.nan


@dataclass(frozen=True)
class PowerLaw:
    """``coefficient`` * C^``exponent`` with the interval of the exponent (NaN without one)."""

    coefficient: float
    exponent: float
    low: float = math.nan
    high: float = math.nan

    def at(self, compute: float) -> float:
        """The value at a compute, FLOP."""
        return float(self.coefficient * compute**self.exponent)


@dataclass(frozen=True)
class IsoFlop:
    """The analysis. ``n`` and ``d`` are None with fewer than two usable budgets.

    ``total`` is a + b with its interval; ``why`` the likely cause where it is not one. ``biases`` says how the sampled
    windows may have moved the exponents; ``tilt`` is what cubic terms change in a. ``failed`` of ``count`` resamples
    had fewer than two budgets with a minimum.
    """

    method: Method
    budgets: tuple[Budget, ...]
    n: PowerLaw | None
    d: PowerLaw | None
    total: float = math.nan
    total_low: float = math.nan
    total_high: float = math.nan
    why: str = ""
    tilt: float = math.nan
    biases: tuple[str, ...] = ()
    count: int = 0
    failed: int = 0
    level: float = 0.95

    @property
    def used(self) -> tuple[Budget, ...]:
        """The budgets with a minimum."""
        return tuple(budget for budget in self.budgets if not budget.refused)

    @property
    def sweeps(self) -> tuple[Budget, ...]:
        """The budgets with three or more sizes at one compute, with a minimum or not."""
        return tuple(budget for budget in self.budgets if budget.sweep)

    @property
    def refused(self) -> Mapping[str, str]:
        """The reason by budget."""
        return {budget.name: budget.refused for budget in self.budgets if budget.refused}


def isoflop(
    points: Points, method: Method = "parabola", *, level: float = 0.95, count: int = 1000, seed: int = 0
) -> IsoFlop:
    """Minima, power laws and their intervals.

    The interval is a bootstrap over budgets; with parabolas the losses within each budget are resampled too, from the
    pooled residuals. Raises `InputError` for a ladder without N, D, C or loss, and for an unknown method.
    """
    if method not in ("parabola", "akima"):
        raise InputError.expected("parabola or akima", method, where="method")
    if not 0 < level < 1:
        raise InputError.expected("a level between 0 and 1", level, where="level")
    budgets = tuple(_budget(points, name, runs, method) for name, runs in budgets_of(points).items())
    used = [budget for budget in budgets if not budget.refused]
    compute = np.log([budget.compute for budget in used])
    if len(np.unique(compute)) < 2:
        return IsoFlop(method, budgets, None, None, level=level)
    places = np.array([[budget.by_n.x, budget.by_d.x] for budget in used])  # (budgets, 2)
    slopes, starts = _regress(compute, places, np.ones(len(used)))
    draws = _draws(points, used, compute, count, seed)
    good = draws[np.isfinite(draws).all(axis=1)]
    ends = np.full((2, 2), np.nan)
    sums = np.full(2, np.nan)
    if len(good):
        tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        ends = np.quantile(good, tails, axis=0)
        sums = np.quantile(good.sum(axis=1), tails)
    laws = [PowerLaw(math.exp(starts[k]), float(slopes[k]), *ends[:, k].tolist()) for k in (0, 1)]
    total = float(slopes.sum())
    tilt = _tilt(used, compute)
    why = cause(total, points, [Place(budget.runs, budget.by_n.x) for budget in used], SUM_TOLERANCE)
    return IsoFlop(
        method, budgets, laws[0], laws[1], total, float(sums[0]), float(sums[1]), why, tilt,
        (*_mixed(points, used), *_biases(used, compute, tilt, laws[0])), count, len(draws) - len(good), level,
    )  # fmt: skip


def budgets_of(points: Points) -> dict[str, NDArray[np.int64]]:
    """The runs of each budget by name, in the order of compute: by label, else where log C has no gap."""
    if "budget" in points.labels:
        labels = points.labels["budget"]
        found = {str(name): np.flatnonzero(labels == name) for name in np.unique(labels)}
        return dict(sorted(found.items(), key=lambda item: float(points["C"][item[1]].mean())))
    order = np.argsort(points["C"], kind="stable")
    gaps = np.diff(np.log10(points["C"][order])) > _GAP
    groups = np.split(order, np.flatnonzero(gaps) + 1)
    return {f"{np.exp(np.log(points['C'][runs]).mean()):.3g}": runs for runs in groups}


def _budget(points: Points, name: str, runs: NDArray[np.int64], method: Method) -> Budget:
    c, n, d, loss = (points[column][runs] for column in ("C", "N", "D", "loss"))
    compute = float(np.exp(np.log(c).mean()))
    by_n, by_d = minimum(np.log(n), loss, method, "N"), minimum(np.log(d), loss, method, "D")
    refused = by_n.refused or by_d.refused
    single = bool(np.log10(c.max() / c.min()) <= _SPREAD)
    if not single:
        refused = f"no single budget: its runs span {c.min():.3g} to {c.max():.3g} FLOP"
    return Budget(name, compute, runs, by_n, by_d, refused, single and len(np.unique(n)) > 2)


def _regress(x: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Slopes and intercepts of ``y`` (..., budgets, k) on ``x`` (budgets,) with weights (..., budgets)."""
    total = weights.sum(axis=-1)
    mean_x = (weights * x).sum(axis=-1) / total
    mean_y = (weights[..., None] * y).sum(axis=-2) / total[..., None]
    dx = x - mean_x[..., None]
    slopes = (weights[..., None] * dx[..., None] * y).sum(axis=-2) / (weights * dx * dx).sum(axis=-1)[..., None]
    return slopes, mean_y - slopes * mean_x[..., None]


def _draws(points: Points, used: list[Budget], compute: Array, count: int, seed: int) -> Array:
    """Slopes (count, [N, D]) of resampled budgets with resampled minima; NaN where that fails."""
    rng = np.random.default_rng(seed)
    places = np.empty((count, len(used), 2))
    noises = [_pool([budget.by_n for budget in used]), _pool([budget.by_d for budget in used])]
    for i, budget in enumerate(used):
        picked = rng.random((count, len(budget.runs)))  # the same runs are off in log N and in log D
        for k, (bottom, name) in enumerate(((budget.by_n, "N"), (budget.by_d, "D"))):
            if not bottom.residuals:
                places[:, i, k] = bottom.x
                continue
            noise = noises[k][(picked * len(noises[k])).astype(int)]
            places[:, i, k] = resampled(bottom, np.log(points[name][budget.runs]), noise)
    drawn = rng.multinomial(len(used), np.full(len(used), 1 / len(used)), size=count)
    weights = (drawn * np.isfinite(places).all(axis=-1)).astype(float)
    with np.errstate(all="ignore"):
        found = _regress(compute, np.nan_to_num(places), weights)[0]
    enough = np.array([len(np.unique(compute[row > 0])) >= 2 for row in weights], bool)
    found[~enough] = np.nan
    return found


def _pool(minima: list[Minimum]) -> Array:
    """The residuals of all budgets, widened for the three constants that each parabola took."""
    pooled = [
        np.array(found.residuals) * math.sqrt(len(found.residuals) / (len(found.residuals) - 3))
        for found in minima
        if len(found.residuals) > 3
    ]
    return np.concatenate(pooled) if pooled else np.zeros(1)


def _tilt(used: list[Budget], compute: Array) -> float:
    """What the exponent a would gain if every parabola had a cubic term; NaN with fewer than two such budgets."""
    shifts = np.array([budget.by_n.shift for budget in used])
    known = np.isfinite(shifts)
    if len(np.unique(compute[known])) < 2:
        return math.nan
    places = np.array([budget.by_n.x for budget in used])[known]
    before, after = (float(_regress(compute[known], p[:, None], np.ones(len(p)))[0][0])
                     for p in (places, places + shifts[known]))  # fmt: skip
    return after - before


def _mixed(points: Points, used: list[Budget]) -> tuple[str, ...]:
    runs = np.concatenate([budget.runs for budget in used])
    recipes = len(np.unique(points.label("recipe", "schedule")[runs]))
    return (f"{recipes} recipes or schedules share the budgets",) if recipes > 1 else ()


def _biases(used: list[Budget], compute: Array, tilt: float, law: PowerLaw) -> tuple[str, ...]:
    said = []
    offsets = np.array([budget.by_n.offset for budget in used])
    off = int((np.abs(offsets) > _OFF_CENTRE).sum())
    if off:
        said.append(f"in {off} of {len(used)} budgets the minimum lies in the outer half of the sampled sizes")
    if len(used) > 2:
        slope = float(_regress(compute, offsets[:, None], np.ones(len(used)))[0][0])
        drift = slope * float(np.ptp(compute))
        if abs(drift) > _OFF_CENTRE:
            side = "larger" if drift > 0 else "smaller"
            said.append(f"with compute the minimum moves towards the {side} sizes of its window")
    if math.isfinite(tilt) and math.isfinite(law.low) and abs(tilt) > 0.5 * (law.high - law.low):
        said.append(f"cubic terms move a by {tilt:+.3f}, more than its interval: the curves are not symmetric")
    return tuple(said)
