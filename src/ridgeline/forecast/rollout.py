"""Rollouts: the ladder cut below its top, refitted, and asked about the runs that were cut off.

A law is trusted as far as its record goes. Each cut leaves out the top 0.4 to 1 decades of compute; every candidate
form is refitted to what is left, all cuts of a form in one batch, and its errors on the runs left out are kept with
their distance. `growth` turns them into the error per decade that parameters and noise do not explain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import constant
from ridgeline.forecast.fitting.fit import inputs, observed
from ridgeline.forecast.fitting.held import hold
from ridgeline.forecast.fitting.newton import Data, minimise
from ridgeline.forecast.fitting.noise import groups
from ridgeline.forecast.fitting.objective import HUBER, Objective
from ridgeline.forecast.form import Array, Columns, Form
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.laws.coupled import FORM as COUPLED
from ridgeline.forecast.points import Points

CUTS = (0.4, 0.6, 0.8, 1.0)  # decades: the least that spans a design's steps, and what ladders of two decades survive
ENOUGH = 10  # runs: two for each constant of the smallest form
COUPLINGS = (0.8, 0.65, 0.5, 0.4, 0.3)  # of gamma, from Chinchilla's 1 to the lowest published fits
LEAST_COUPLING = 0.25  # below it a power of a power law and a logarithm are the same within a ladder
NEAR = 0.25  # decades: a run so near above a cut shows the noise of hold-outs, not growth
_FEW = 3  # such runs that it takes to see it
_INDEPENDENT = 2  # nested rollouts share their runs: together worth no more than this many
_CLIP = 2.5  # standard deviations at which a residual is cut in the sandwich
GAUSS = 1.4826  # standard deviation over median absolute deviation
SIZES_PER_DECADE = 10  # bins of N in which runs count as one size


@dataclass(frozen=True)
class Rollout:
    """One cut, ``cut`` decades below the largest run: M forms refitted to the runs ``kept`` (n,), asked about the rest.

    ``tested`` (m,) indexes the runs left out, ``decades`` (m,) says how far above the largest one kept they lie.
    ``errors`` (M, m) is ln(predicted) - ln(observed), ``explained`` (M, m) the variance that the uncertainty of the
    constants explains. ``thetas`` holds the M refits.
    """

    cut: float
    kept: NDArray[np.bool_]
    tested: NDArray[np.int64]
    decades: Array
    errors: Array
    explained: Array
    thetas: tuple[Array, ...]

    @property
    def typical(self) -> Array:
        """The median absolute error of each form, (M,)."""
        found: Array = np.median(np.abs(self.errors), axis=1)
        return found


@dataclass(frozen=True)
class Growth:
    """How the error of one form grows beyond the ladder.

    ``per_decade`` is a standard deviation of ln L, of the hold-outs (``measured``, nan without any) and of the
    assumed growth together, on ``freedom`` degrees. ``near`` is the root-mean-square error just above a cut (0 where
    too few runs lie there). ``cuts`` counts the rollouts behind it.
    """

    per_decade: float
    measured: float
    near: float
    freedom: float
    cuts: int


def candidates() -> tuple[Form, ...]:
    """Chinchilla first, then the coupled form with its gamma held between 0.3 and 0.8, and free."""
    held = tuple(replace(hold(COUPLED, {"gamma": g}), slug=f"coupled-{g:g}", title=f"Coupled, gamma {g:g}")
                 for g in COUPLINGS)  # fmt: skip
    narrow = tuple(replace(p, low=LEAST_COUPLING, high=1.0) if p.symbol == "gamma" else p for p in COUPLED.parameters)
    return (CHINCHILLA, *held, replace(COUPLED, parameters=narrow))


def compute(points: Points) -> Array:
    """log10 of the compute of each run, (n,): the column C, else 6ND."""
    found: Array = np.log10(points.compute)
    return found


def fit_all(
    forms: Sequence[Form], columns: Columns, log_y: Array, weights: Array, objective: Objective
) -> tuple[tuple[Array, ...], Array]:
    """Every form fitted under each of B weightings (B, n): theta (B, P) a form, and the objectives (M, B).

    A coupled form starts from the fits before it, its exponents and coefficients scaled to its gamma: a continuation
    from Chinchilla (gamma 1) that ends in a basin connected to it.
    """
    thetas, values = list[Array](), list[Array]()
    for form in forms:
        starts = _continued(form, forms, thetas, values) if form.kind == "coupled" and thetas else None
        if starts is None:
            starts = _own(form, columns, log_y, weights)
        batch = minimise(Data(form, columns, log_y, weights), starts, objective.plain)
        thetas.append(batch.theta)
        values.append(batch.value)
    return tuple(thetas), np.array(values)


def _own(form: Form, columns: Columns, log_y: Array, weights: Array) -> Array:
    """A form's own starts under each weighting, (B, S, P)."""
    return stacked([form.starts(columns, log_y, w) for w in weights])


def stacked(found: Sequence[Array]) -> Array:
    """Starts of several problems, each (S_b, P), as (B, S, P): where one has fewer, its best is repeated."""
    most = max(map(len, found))
    return np.array([np.concatenate([one, np.repeat(one[:1], most - len(one), axis=0)]) for one in found])


def _continued(form: Form, forms: Sequence[Form], thetas: list[Array], values: list[Array]) -> Array | None:
    """Starts (B, S, P) of a coupled form from the fits so far, or None where none is related to it."""
    related = [i for i in range(len(thetas)) if forms[i].kind in ("parametric", "coupled")]
    if not related:
        return None
    target = form.fixed.get("gamma")
    if target is not None:
        held: Array = _coupled(forms[related[-1]], thetas[related[-1]], target)[:, None, :5]
        return held
    every = np.stack([_coupled(forms[i], thetas[i], None) for i in related], axis=1)  # (B, S, 6)
    best = np.argmin(np.stack([values[i] for i in related]), axis=0)
    found: Array = every[np.arange(len(best)), best][:, None]
    return found


def _coupled(form: Form, theta: Array, gamma: float | None) -> Array:
    """(ln A, ln B, ln E, alpha, beta, gamma), (B, 6), of a related form's theta; at another gamma the same slopes."""
    own = np.full(len(theta), form.fixed.get("gamma", 1.0)) if theta.shape[1] == 5 else theta[:, 5]
    to = own if gamma is None else np.full(len(theta), gamma)
    scale = own / to
    full = np.column_stack([theta[:, :5], to])
    full[:, [0, 1, 3, 4]] *= scale[:, None]
    return full


def rollouts(
    points: Points, forms: Sequence[Form], objective: Objective = HUBER
) -> tuple[tuple[Rollout, ...], tuple[Array, ...]]:
    """The cuts that leave enough runs below and above, nearest the top first, and theta (P,) of every form on all runs.

    No cuts for a ladder too small. A cut that leaves the same runs as the one before is left out.
    """
    decades, cuts = compute(points), list[tuple[float, NDArray[np.bool_]]]()
    for cut in CUTS:
        kept = decades <= decades.max() - cut + 1e-9
        known = any(np.array_equal(kept, other) for _, other in cuts)
        if kept.sum() >= ENOUGH and (~kept).sum() >= 2 and not known and _spans(points, kept):
            cuts.append((cut, kept))
    columns = {name: column for form in forms for name, column in inputs(points, form).items()}
    log_y = observed(points, forms[0])
    weights = np.array([*(kept for _, kept in cuts), np.ones(len(log_y))], float)
    thetas, _ = fit_all(forms, columns, log_y, weights, objective)
    labels = groupings(points)
    found = []
    for row, (cut, kept) in enumerate(cuts):
        tested = np.flatnonzero(~kept)
        mine = tuple(theta[row] for theta in thetas)
        errors = np.array([form.log_loss(theta, columns)[tested] - log_y[tested]
                           for form, theta in zip(forms, mine, strict=True)])  # fmt: skip
        explained = np.array([sandwich(form, theta, (columns, log_y), (kept, tested), labels)
                              for form, theta in zip(forms, mine, strict=True)])  # fmt: skip
        above = decades[tested] - decades[kept].max()
        found.append(Rollout(cut, kept, tested, above, errors, explained, mine))
    return tuple(found), tuple(theta[-1] for theta in thetas)


def _spans(points: Points, kept: NDArray[np.bool_]) -> bool:
    """Whether the runs kept differ in both N and D: one size or one D tells nothing about the other."""
    return all(len(np.unique(points[name][kept])) > 2 for name in ("N", "D") if name in points)


def growth(found: Sequence[Rollout], form: int, noise: float) -> Growth:
    """The growth of form number ``form`` from its rollouts; ``noise`` is the standard deviation of one run's ln L.

    Per cut: the mean square error, less the noise and what the constants explain, over the mean square distance. The
    cuts together weigh as `_INDEPENDENT` at most against the assumed growth (`core/data/forecast.toml`): a scaled
    inverse chi-square prior, whose predictive distribution is Student's t.
    """
    assumed, worth = (float(constant(f"forecast.{name}").base) for name in ("growth", "growth_weight"))
    if not found:
        return Growth(assumed, float("nan"), 0.0, worth, 0)
    near = [float(np.mean(one.errors[form][one.decades <= NEAR] ** 2))
            for one in found if (one.decades <= NEAR).sum() >= _FEW]  # fmt: skip
    just = float(np.sqrt(np.median(near))) if near else 0.0
    floor = max(noise, just) ** 2
    squares = [max(0.0, float(np.mean(one.errors[form] ** 2 - one.explained[form]) - floor))
               / float(np.mean(one.decades**2)) for one in found]  # fmt: skip
    own, measured = min(len(found), _INDEPENDENT), float(np.mean(squares))
    freedom = worth + own
    pooled = (worth * assumed**2 + own * measured) / freedom
    return Growth(float(np.sqrt(pooled)), float(np.sqrt(measured)), just, freedom, len(found))


def groupings(points: Points) -> dict[str, NDArray[np.int64]]:
    """Ways in which runs may share an error: ``budget`` (its label, or bins of compute) and ``size`` (bins of N)."""
    found = {"budget": groups(points, "budget")}
    if "N" in points:
        bins = np.round(np.log10(points["N"]) * SIZES_PER_DECADE)
        found["size"] = np.unique(bins, return_inverse=True)[1].astype(np.int64)
    return {name: label for name, label in found.items() if label.max() > 0}


def sandwich(
    form: Form, theta: Array, data: tuple[Columns, Array], cut: tuple[NDArray[np.bool_], NDArray[np.int64]],
    labels: dict[str, NDArray[np.int64]],
) -> Array:  # fmt: skip
    """The variance of ln L at the runs ``tested`` (m,) from the constants fitted to the runs ``kept``, (m,).

    Delta method, clustered by each grouping and by none; the largest counts. Factors G/(G - 1) for G clusters and
    n/(n - P) (Cameron and Miller 2015).
    """
    (columns, log_y), (kept, tested) = data, cut
    value, slopes = form.gradient(theta, columns)
    scale = np.sqrt(np.sum(slopes[kept] ** 2, axis=0)) + np.finfo(float).tiny
    jacobian, there = slopes[kept] / scale, slopes[tested] / scale
    residual = (log_y - value)[kept]
    spread = GAUSS * float(np.median(np.abs(residual)))
    residual = np.clip(residual, -_CLIP * spread, _CLIP * spread)
    bread = np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-10, hermitian=True)
    count, freedom = len(residual), max(len(residual) - len(theta), 1)
    middles = [jacobian.T @ jacobian * (residual @ residual) / count]
    for label in labels.values():
        mine = np.unique(label[kept], return_inverse=True)[1]
        clusters = int(mine.max()) + 1
        if clusters > 1:
            sums = np.zeros((clusters, len(theta)))
            np.add.at(sums, mine, jacobian * residual[:, None])
            middles.append(sums.T @ sums * clusters / (clusters - 1))
    parts = [np.einsum("mp,pq,mq->m", there, bread @ middle @ bread, there) for middle in middles]
    found: Array = np.max(parts, axis=0) * count / freedom
    return found
