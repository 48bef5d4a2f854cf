"""Two recipes, one question: which has the lower loss at the target compute, and is the evidence enough to say so.

Both ladders are cut to one design (`forecast.deciding.pairing`) and fitted with the same form and objective; one
resample serves both. The interval of the difference has two parts: what a resample moves, and what the difference
was off by when both laws were fitted below a cut and asked about the runs above it, grown to the target's distance.
The verdict names a recipe only where that interval leaves zero out, and not far beyond ladders too short to test.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.deciding.crossover import Crossover, Window, crossover, frontier
from ridgeline.forecast.deciding.pairing import Shared, share
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.fitting.newton import minimise
from ridgeline.forecast.fitting.objective import HUBER, Objective
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.points import Points
from ridgeline.forecast.reach import require_reach

Verdict = Literal["candidate", "baseline", "not enough evidence"]
CUTS = (0.5, 1.0, 1.5)  # decades below the largest run at which the difference is backtested
LEAST_SPAN = 0.5  # decades below a cut, and share of the ladder's own: over fewer a refit has no slope to extrapolate
UNTESTED = 1.0  # decades beyond the data for which a difference that no hold-out tested may still decide
WORTH = 1e4  # a recipe worth more than this factor of compute has an open interval
FAILED = 0.2  # share of failed resamples above which no verdict is given
STEPS = 60  # bisections in ln C
BASINS = 3  # of the fit, from each of which every resample starts


@dataclass(frozen=True)
class Interval:
    """A value and its interval; a bound is None where it is open."""

    value: float | None
    low: float | None
    high: float | None

    @property
    def straddles(self) -> bool:
        """Whether zero lies inside."""
        return self.low is None or self.high is None or self.low <= 0 <= self.high


@dataclass(frozen=True)
class Side:
    """One recipe at the target: its fit, its compute-optimal N and D there, and its loss (nats)."""

    fit: Fit
    params: float
    tokens: float
    loss: Interval


@dataclass(frozen=True)
class Backtest:
    """How far the difference was off when fitted below each cut: ``growth`` in nats per decade, 0 for none found.

    ``runs`` of the hold-out over all ``cuts`` (decades below the largest run) behind it; None of them: ``growth`` None.
    """

    growth: float | None
    runs: int
    cuts: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """The answer. ``delta`` is the candidate's loss less the baseline's at their own optima (nats), ``equal`` the same
    at one (N, D), the baseline's optimum. ``worth`` is the factor of compute that the baseline needs for the
    candidate's loss (below 1: that it could save). ``decades`` from the largest shared run to the target.
    """

    form: Form
    target: float
    level: float
    shared: Shared
    baseline: Side
    candidate: Side
    delta: Interval
    equal: Interval
    worth: Interval
    crossover: Crossover
    backtest: Backtest
    decades: float
    draws: int
    failed: int
    verdict: Verdict
    because: tuple[str, ...]


@dataclass(frozen=True)
class How:
    """How two ladders are compared: the same form, objective and resamples for both."""

    form: Form = CHINCHILLA
    objective: Objective = HUBER
    draws: int = 1000
    seed: int = 0
    level: float = 0.95


DEFAULT = How()


def compare(baseline: Points, candidate: Points, target: float, how: How = DEFAULT) -> Comparison:
    """Compare two ladders at ``target`` (FLOP).

    Raises `InputError` for a target below a ladder or fewer than 100 draws, and as `share` does for ladders that
    cannot be compared.
    """
    for ladder in (baseline, candidate):
        require_reach(ladder, target)
    if how.draws < 100:
        raise InputError.expected("at least 100 draws", how.draws, where="the comparison")
    shared = share(baseline, candidate, len(how.form.parameters) + 1)
    _closed(how.form, target)
    one, two = (fit(p, how.form, how.objective) for p in (shared.baseline, shared.candidate))
    theta = one.theta, two.theta
    raw, failed = resample(shared, (one, two), how)
    draws = _widened(one, raw[0]), _widened(two, raw[1])
    tested = backtest(shared, how)
    decades = max(0.0, float(np.log10(target / shared.high)))
    rng = np.random.default_rng([how.seed, 1])
    extra = rng.standard_normal(len(raw[0])) * (tested.growth or 0.0) * decades
    sides = _side(one, draws[0], np.zeros(1), target, how), _side(two, draws[1], extra, target, how)
    delta = _delta(how, theta, draws, target, extra)
    verdict, because = judge(delta, (shared, tested, decades), (len(raw[0]), failed), how)
    window = Window((shared.low, shared.high), target)
    return Comparison(
        how.form, target, how.level, shared, sides[0], sides[1], delta,
        _equal(how, theta, draws, (sides[0].params, sides[0].tokens), extra), _worth(how, theta, draws, target, extra),
        crossover(how.form, theta, draws, window, how.level), tested, decades, len(raw[0]), failed, verdict, because,
    )  # fmt: skip


def _closed(form: Form, target: float) -> None:
    """Frontiers of thousands of draws need the optimum in closed form."""
    if form.optimum(np.array([form.box[1]]), np.array([target])) is None:
        hint = "compare with --law chinchilla or --law coupled"
        raise InputError.expected("a law with a closed-form optimum", form.slug, where="--law", hint=hint)


def resample(shared: Shared, fits: tuple[Fit, Fit], how: How) -> tuple[tuple[Array, Array], int]:
    """Paired draws of both fits, each (B, P), and how many resamples failed for either.

    The resamples of `forecast.fitting.bootstrap` do not come in pairs. Runs are drawn with replacement; where the
    ladders are paired the pairs are drawn, once for both.
    """
    rng = np.random.default_rng([how.seed, 0])
    counts = len(shared.baseline), len(shared.candidate)
    weights = [rng.multinomial(n, np.full(n, 1 / n), size=how.draws).astype(float) for n in counts]
    if shared.kind == "paired":
        weights[1] = weights[0]
    found, good = [], np.ones(how.draws, bool)
    for law, weight in zip(fits, weights, strict=True):
        data = replace(law.data, weights=weight * law.weights)
        starts = np.stack([basin.theta for basin in law.basins[:BASINS]])
        batch = minimise(data, starts, how.objective.plain)
        found.append(batch.theta)
        good &= batch.converged
    if good.sum() < 2:
        raise InputError.expected(
            "resamples that can be fitted", f"{int(good.sum())} of {how.draws}", where="the ladders"
        )
    return (found[0][good], found[1][good]), int((~good).sum())


def _widened(law: Fit, draws: Array) -> Array:
    """Draws spread by sqrt(n/(n - P)) around their fit: a resample has fewer distinct runs than the ladder."""
    found: Array = law.theta + (draws - law.theta) * np.sqrt(len(law.points) / max(law.freedom, 1))
    return found


def _side(law: Fit, draws: Array, extra: Array, target: float, how: How) -> Side:
    at = np.array([target])
    params, tokens = optimum(how.form, target, law.theta)
    spread = frontier(how.form, draws, at)[:, 0] + extra
    loss = _interval(float(frontier(how.form, law.theta, at)[0]), spread, how.level)
    return Side(law, float(params), float(tokens), loss)


def _delta(how: How, theta: tuple[Array, Array], draws: tuple[Array, Array], target: float, extra: Array) -> Interval:
    """The difference of loss, each recipe at its own optimum."""
    at = np.array([target])
    one, two = (float(frontier(how.form, t, at)[0]) for t in theta)
    many = [frontier(how.form, d, at)[:, 0] for d in draws]
    return _interval(two - one, many[1] - many[0] + extra, how.level)


def _interval(value: float, draws: Array, level: float) -> Interval:
    """Percentiles of the draws; one that is not finite is open."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    ends = [float(end) if np.isfinite(end) else None for end in (low, high)]
    return Interval(value if np.isfinite(value) else None, ends[0], ends[1])


def _equal(
    how: How, theta: tuple[Array, Array], draws: tuple[Array, Array], size: tuple[float, float], extra: Array
) -> Interval:
    """The difference of loss at one (N, D)."""
    columns = {"N": np.array([size[0]]), "D": np.array([size[1]]), "C": np.array([6 * size[0] * size[1]])}
    one, two = (np.exp(how.form.log_loss(t, columns))[..., 0] for t in theta)
    many = [np.exp(how.form.log_loss(d, columns))[..., 0] for d in draws]
    return _interval(float(two - one), many[1] - many[0] + extra, how.level)


def _worth(how: How, theta: tuple[Array, Array], draws: tuple[Array, Array], target: float, extra: Array) -> Interval:
    """The factor of compute with which the baseline's frontier reaches the candidate's loss at the target."""
    value = equivalent(how.form, theta[0][None], theta[1][None], target)[0]
    return _interval(float(value), equivalent(how.form, *draws, target, extra), how.level)


def equivalent(form: Form, baseline: Array, candidate: Array, target: float, extra: Array | float = 0.0) -> Array:
    """C'/C of each pair of draws (B, P), shape (B,), with L*_baseline(C') = L*_candidate(C) + ``extra`` (B,) nats.

    By bisection along the frontier, so for any form; infinite beyond a factor of 10,000, as where the candidate is
    below the baseline's floor. `ridgeline.arithmetic.laws.equivalent_compute` is the closed form of two of them.
    """
    wanted = frontier(form, candidate, np.array([target]))[:, 0] + extra
    low, high = (np.full(len(wanted), side * np.log(WORTH)) for side in (-1.0, 1.0))
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        flops = target * np.exp(middle)
        params, tokens = optimum(form, flops, baseline)
        columns = {"N": params[:, None], "D": tokens[:, None], "C": flops[:, None]}
        above = np.exp(form.log_loss(baseline, columns))[:, 0] > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    found: Array = np.exp(0.5 * (low + high))
    found = np.where(found > WORTH * 0.999, np.inf, found)
    return np.where(found < 1.001 / WORTH, 0.0, found)


def backtest(shared: Shared, how: How) -> Backtest:
    """Refit both laws below each cut and compare the difference that they forecast with the one above it.

    In a paired design the observed difference is that of the pairs. Otherwise each ladder is tested alone and the two
    growths add as independent. The noise of the runs used, from the fits below the cut, is taken off.
    """
    ladders = (shared.baseline, shared.candidate)
    rows: list[tuple[Array, Array]] = [(np.empty(0), np.empty(0)) for _ in ladders]
    used, seen = [], set[tuple[int, ...]]()
    for cut in CUTS:
        edge = shared.high / 10**cut
        below = [ladder["C"] <= edge * 1.0001 for ladder in ladders]
        key = tuple(int(mask.sum()) for mask in below)
        errors = [_held_out(ladder, mask, how) for ladder, mask in zip(ladders, below, strict=True)]
        one, two = errors
        if one is None or two is None or key in seen:
            continue
        used.append(cut)
        seen.add(key)
        if shared.kind == "paired":
            noise = float(np.sqrt(np.mean((two[0] - one[0]) ** 2)))
            rows[0] = _more(rows[0], two[1] - one[1], one[2], noise)
        else:
            for i, error in enumerate((one, two)):
                rows[i] = _more(rows[i], error[1], error[2], float(np.sqrt(np.mean(error[0] ** 2))))
    if not used:
        return Backtest(None, 0, ())
    growth = float(np.hypot(_growth(*rows[0]), _growth(*rows[1])))
    return Backtest(growth, sum(len(row[0]) for row in rows), tuple(used))


def _held_out(ladder: Points, below: NDArray[np.bool_], how: How) -> tuple[Array, Array, Array] | None:
    """Residuals below the cut, errors above it (both in nats), and decades above the largest run below it.

    None where too few runs, or less than half of the ladder's decades, are below.
    """
    inside, outside = ladder.take(below), ladder.take(~below)
    distinct = len(np.unique(np.stack([inside["N"], inside["D"]]), axis=1).T)
    if distinct < len(how.form.parameters) + 1 or not len(outside):
        return None
    top = float(inside["C"].max())
    span, whole = (float(np.log10(c.max() / c.min())) for c in (inside["C"], ladder["C"]))
    if span < LEAST_SPAN * max(1.0, whole):
        return None
    law = fit(inside, how.form, how.objective)
    predicted = [np.exp(how.form.log_loss(law.theta, p.columns)) for p in (inside, outside)]
    return inside["loss"] - predicted[0], outside["loss"] - predicted[1], np.log10(outside["C"] / top)


def _more(rows: tuple[Array, Array], errors: Array, decades: Array, noise: float) -> tuple[Array, Array]:
    return np.append(rows[0], errors**2 - noise**2), np.append(rows[1], decades)


def _growth(squares: Array, decades: Array) -> float:
    """k of error^2 = noise^2 + (k x)^2, least squares through the origin in x^2; 0 where noise explains it all."""
    if not len(squares):
        return 0.0
    return float(np.sqrt(max(0.0, np.sum(squares * decades**2) / np.sum(decades**4))))


def judge(
    delta: Interval, evidence: tuple[Shared, Backtest, float], draws: tuple[int, int], how: How
) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict and its reasons. ``evidence``: the design, the backtest, and the decades to the target."""
    shared, tested, decades = evidence
    kept, failed = draws
    because = [shared.said]
    if tested.growth is None:
        because.append("The ladders are too short to hold runs out: the interval is of the resamples alone.")
    else:
        place = f"{decades:.1f} decades above" if decades >= 0.05 else "within"
        because.append(
            f"Held-out runs put the difference off by {tested.growth:.4f} nats per decade beyond their noise; "
            f"the target lies {place} the shared runs."
        )
    if failed > FAILED * (kept + failed):
        because.append(f"{failed} of {kept + failed} resamples could not be fitted: the laws are not determined.")
        return "not enough evidence", tuple(because)
    if tested.growth is None and decades > UNTESTED:
        because.append(f"The target is {decades:.1f} decades above runs of which none could be held out.")
        return "not enough evidence", tuple(because)
    if delta.straddles:
        because.append(f"The {how.level:.0%} interval of the difference holds zero.")
        return "not enough evidence", tuple(because)
    assert delta.high is not None
    winner: Verdict = "candidate" if delta.high < 0 else "baseline"
    because.append(f"The {how.level:.0%} interval of the difference leaves zero out.")
    return winner, tuple(because)
