"""Simulated ladders of a known law: does an interval cover, and how far off is an estimator.

Truth is a published law, the designs those of the literature, the noise of ln L Gaussian, heavy-tailed or shared within
groups. On real ladders the form is wrong as well, which only hold-outs show (`ridgeline.forecast.holdout`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError
from ridgeline.forecast.forecast import Options, study
from ridgeline.forecast.form import Array
from ridgeline.forecast.interval import log_interval
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.points import Points

Design = Literal["epoch", "ladder", "isoflop"]
Noise = Literal["gaussian", "heavy", "grouped"]
DESIGNS: tuple[Design, ...] = get_args(Design)
NOISES: tuple[Noise, ...] = get_args(Noise)
SIGMA = 0.004  # of ln L: the robust residual of the 240 points of Hoffmann et al.
SHARED = 0.64  # share of the variance common to a group, in the grouped noise
AHEAD = (1.0, 2.0)  # decades beyond the ladder
_TAILS = 3  # degrees of freedom of the heavy-tailed noise (Student's t)


@dataclass(frozen=True)
class Simulated:
    """A ladder of known truth: its points, the group of each run (n,), and the truth's theta."""

    points: Points
    group: NDArray[np.int64]
    theta: Array


@dataclass(frozen=True)
class Cell:
    """Coverage of one kind of interval in one design and noise, ``decades`` beyond the ladder.

    ``law`` is the share of simulations whose interval of the law held the true loss, ``run`` the share whose interval
    of a run held an observed one; ``width`` is the mean relative width of the latter. ``failed`` counts ladders that
    could not be fitted, and which count as not covered.
    """

    design: Design
    noise: Noise
    kind: str
    decades: float
    law: float
    run: float
    width: float
    count: int
    failed: int


def truth(name: str = "besiroglu-2024") -> Array:
    """theta (5,) of a published Chinchilla law. Raises `InputError` for a law of another kind."""
    found = law(name)
    if found.kind != CHINCHILLA.kind:
        raise InputError.expected(f"a law of kind {CHINCHILLA.kind}", found.kind, where=name)
    return CHINCHILLA.internal({symbol: float(value.base) for symbol, value in found.constants.items()})


def runs(design: Design, theta: Array, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.int64]]:
    """N, D and the group of each run of a design.

    ``epoch``: 240 runs, 20 budgets over four decades, 12 sizes each around the optimum, scattered; grouped by budget.
    ``ladder``: 4 sizes at 10, 20, 40 and 80 tokens per parameter; grouped by size. ``isoflop``: 5 budgets over two
    decades, 7 sizes each; grouped by budget.
    """
    if design == "ladder":
        sizes = np.repeat(1e8 * 2.0 ** np.arange(4), 4)
        return sizes, sizes * np.tile([10.0, 20.0, 40.0, 80.0], 4), np.repeat(np.arange(4), 4)
    budgets, each, low, high, reach, scatter = (
        (20, 12, 18.2, 22.0, 0.7, 0.05) if design == "epoch" else (5, 7, 18.5, 20.5, 0.6, 0.0)
    )
    compute = np.repeat(np.logspace(low, high, budgets), each)
    off = np.tile(np.linspace(-reach, reach, each), budgets) + rng.normal(0, 1, budgets * each) * scatter
    n = CHINCHILLA.optimum(theta, compute)[0] * 10**off
    return n, compute / (6 * n), np.repeat(np.arange(budgets), each)


def errors(noise: Noise, group: NDArray[np.int64], rng: np.random.Generator, sigma: float = SIGMA) -> Array:
    """Errors of ln L, (n,), each of standard deviation ``sigma``."""
    count = len(group)
    if noise == "gaussian":
        found: Array = rng.normal(0, sigma, count)
    elif noise == "heavy":
        found = rng.standard_t(_TAILS, count) * sigma / np.sqrt(_TAILS / (_TAILS - 2))
    else:
        common = rng.normal(0, sigma * np.sqrt(SHARED), int(group.max()) + 1)
        found = common[group] + rng.normal(0, sigma * np.sqrt(1 - SHARED), count)
    return found


def simulate(design: Design, noise: Noise, seed: int, sigma: float = SIGMA) -> Simulated:
    """One ladder. Raises `InputError` for an unknown design or noise."""
    for name, known, what in ((design, DESIGNS, "a design"), (noise, NOISES, "a noise")):
        if name not in known:
            raise InputError.expected(f"{what}: " + ", ".join(known), name, where="the simulation")
    rng = np.random.default_rng([seed, DESIGNS.index(design), NOISES.index(noise)])
    theta = truth()
    n, d, group = runs(design, theta, rng)
    loss = np.exp(CHINCHILLA.log_loss(theta, {"N": n, "D": d}) + errors(noise, group, rng, sigma))
    return Simulated(Points({"N": n, "D": d, "C": 6 * n * d, "loss": loss}), group, theta)


def ahead(compute: float, theta: Array) -> Mapping[str, Array]:
    """N and D, each (2,), of the truth's optimum `AHEAD` decades beyond a compute (FLOP)."""
    n, d = CHINCHILLA.optimum(theta, compute * 10 ** np.array(AHEAD))
    return {"N": n, "D": d}


def once(design: Design, noise: Noise, seed: int, kinds: Sequence[str], options: Options) -> NDArray[np.float64]:
    """One simulation: law covered, run covered and width, shape (kinds, decades, 3)."""
    made = simulate(design, noise, seed)
    columns = ahead(float(made.points["C"].max()), made.theta)
    true = CHINCHILLA.log_loss(made.theta, columns)
    rng = np.random.default_rng([seed, DESIGNS.index(design), NOISES.index(noise), 1])
    seen = true + errors(noise, np.arange(len(true)), rng)
    found = study(made.points, options)
    result = np.empty((len(kinds), len(AHEAD), 3))
    for k, kind in enumerate(kinds):
        for column, value, run in ((0, true, False), (1, seen, True)):
            low, high = log_interval(found.evidence, columns, np.array(AHEAD), options.level, kind, run=run)
            result[k, :, column] = (low <= value) & (value <= high)
        result[k, :, 2] = np.exp(high) - np.exp(low)
        result[k, :, 2] /= np.exp(true)
    return result


def coverage(
    design: Design, noise: Noise, seeds: Sequence[int], kinds: Sequence[str] = ("calibrated",),
    options: Options | None = None,
) -> list[Cell]:  # fmt: skip
    """The coverage of kinds of interval over simulated ladders, one cell per kind and distance."""
    options = options or Options()
    results, failed = [], 0
    for seed in seeds:
        try:
            results.append(once(design, noise, seed, kinds, options))
        except InputError:
            failed += 1
    total = len(results) + failed
    stacked = np.array(results).reshape(len(results), len(kinds), len(AHEAD), 3)
    covered, width = stacked[..., :2].sum(axis=0) / total, stacked[..., 2].mean(axis=0)
    return [
        Cell(design, noise, kind, decades, float(covered[k, i, 0]), float(covered[k, i, 1]), float(width[k, i]), total,
             failed)
        for k, kind in enumerate(kinds) for i, decades in enumerate(AHEAD)
    ]  # fmt: skip
