"""Where the compute-optimal losses of two recipes cross, with an interval that counts the draws in which they do not.

A recipe that is better at small scale and has the worse exponent loses from some compute on: the answer to "which
recipe" is that compute, and how well it is known. Both recipes are read off their frontiers L*(C) = min L(N, D) along
C = 6ND, so that each is compared at its own best size.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Form

POINTS = 241  # of the scan in log C, between which a crossing is refined
REFINE = 60  # bisections: to the last digit of a float64
REACH = 1e6  # the scan goes this factor beyond the data and the target on either side


@dataclass(frozen=True)
class Crossover:
    """Compute (FLOP) at which two frontiers cross.

    ``compute`` is the crossing of the two fits (the one nearest to the target where there are several: ``every``),
    None where they do not cross between ``searched``. ``ahead`` wins above it (or everywhere). ``low`` and ``high``
    bound it at ``level``; a bound is None where the interval is open: more than the tail's share of draws cross
    beyond the search, or not at all. ``share`` of the ``draws`` cross once or more; ``never`` have ``ahead`` in front
    everywhere, ``reversed_share`` of the crossing ones cross in the other direction. ``place`` is ``within``,
    ``above`` or ``below`` the data.
    """

    compute: float | None
    every: tuple[float, ...]
    ahead: str
    low: float | None
    high: float | None
    level: float
    share: float
    never: float
    reversed_share: float
    draws: int
    place: str
    searched: tuple[float, float]

    def sentence(self) -> str:
        """The crossing, or that there is none, in one sentence."""
        return self._said().replace("e+", "e")

    def _said(self) -> str:
        between = f"between {self.searched[0]:.1e} and {self.searched[1]:.1e} FLOP"
        if self.compute is None:
            some = f"; they cross in {self.share:.0%} of {self.draws} draws" if self.draws else ""
            return f"The two recipes do not cross {between}: {self.ahead} is in front throughout{some}."
        low = "open" if self.low is None else f"{self.low:.2e}"
        high = "open" if self.high is None else f"{self.high:.2e}"
        where = {"within": "within the data", "above": "above the data", "below": "below the data"}[self.place]
        text = f"They cross at {self.compute:.2e} FLOP, {where}; {self.ahead} is in front above it"
        if not self.draws:
            return text + "."
        return f"{text} ({self.level:.0%} interval {low} to {high}; {self.share:.0%} of {self.draws} draws cross)."


def frontier(form: Form, theta: Array, compute: Array) -> Array:
    """L*(C) in the form's unit: shape (..., K) of parameters (..., P) and computes (K,) in FLOP."""
    params, tokens = optimum(form, compute, theta[..., None, :])
    columns = {"N": params[..., None], "D": tokens[..., None], "C": np.broadcast_to(compute, params.shape)[..., None]}
    found: Array = np.exp(form.log_loss(theta[..., None, :], columns))[..., 0]
    return found


def crossings(form: Form, baseline: Array, candidate: Array, between: tuple[float, float]) -> list[list[float]]:
    """Every crossing of each pair of draws, in FLOP, smallest first. ``baseline`` and ``candidate``: (B, P)."""
    x = np.linspace(np.log(between[0]), np.log(between[1]), POINTS)
    gap = _gap(form, baseline, candidate, np.exp(x))
    draw, place = np.nonzero(np.sign(gap[:, :-1]) * np.sign(gap[:, 1:]) < 0)
    found: list[list[float]] = [[] for _ in range(len(baseline))]
    if len(draw):
        at = _refine(form, baseline[draw], candidate[draw], x[place], x[place + 1])
        for row, flops in zip(draw.tolist(), at.tolist(), strict=True):
            found[row].append(flops)
    return found


def _gap(form: Form, baseline: Array, candidate: Array, compute: Array) -> Array:
    """Candidate minus baseline, (B, K); what is within rounding of zero is zero."""
    one, two = frontier(form, candidate, compute), frontier(form, baseline, compute)
    gap: Array = np.where(np.abs(one - two) > 1e-12 * np.abs(two), one - two, 0.0)
    return gap


def _refine(form: Form, baseline: Array, candidate: Array, low: Array, high: Array) -> Array:
    """Bisection in ln C of many brackets at once; returns FLOP."""

    def sign(x: Array) -> Array:
        both = []
        for theta in (candidate, baseline):
            params, tokens = optimum(form, np.exp(x), theta)
            columns = {"N": params[:, None], "D": tokens[:, None], "C": np.exp(x)[:, None]}
            both.append(form.log_loss(theta, columns)[:, 0])
        found: Array = np.sign(both[0] - both[1])
        return found

    left = sign(low)
    for _ in range(REFINE):
        middle = 0.5 * (low + high)
        same = sign(middle) == left
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found: Array = np.exp(0.5 * (low + high))
    return found


@dataclass(frozen=True)
class Window:
    """Where to look, in FLOP: the ``data`` from the smallest to the largest run, and the ``target``."""

    data: tuple[float, float]
    target: float

    @property
    def searched(self) -> tuple[float, float]:
        """The scan: a factor beyond the data and the target on either side."""
        return min(self.data[0], self.target) / REACH, max(self.data[1], self.target) * REACH


def crossover(
    form: Form, fits: tuple[Array, Array], draws: tuple[Array, Array] | None, window: Window, level: float = 0.95
) -> Crossover:
    """The crossing of two frontiers of one form, from their fits (P,) and their paired draws (B, P).

    ``fits`` and ``draws`` hold the baseline first. A draw without a crossing stands at the end of the axis where
    the recipe that ``ahead`` names is not in front, so that the interval opens instead of narrowing.
    Raises `InputError` for an empty window or a level outside (0, 1).
    """
    if not (0 < window.data[0] <= window.data[1] and window.target > 0):
        raise InputError.expected("computes above zero, the smallest first", window.data, where="the crossover")
    if not 0 < level < 1:
        raise InputError.expected("a level between 0 and 1", level, where="the crossover")
    base, other = (theta[None, :] for theta in fits)
    searched = window.searched
    every = crossings(form, base, other, searched)[0]
    nearest = min(every, key=lambda flops: abs(np.log(flops / window.target))) if every else None
    beyond = np.array([searched[1] if nearest is None else _just_above(nearest, every, searched[1])])
    sign = float(_gap(form, base, other, beyond)[0, 0])
    ahead = "candidate" if sign < 0 else "baseline" if sign > 0 else "neither"
    place = "within" if nearest is None or window.data[0] <= nearest <= window.data[1] else "above"
    if nearest is not None and nearest < window.data[0]:
        place = "below"
    alone = Crossover(
        nearest, tuple(every), ahead, None, None, level, share=0.0, never=0.0, reversed_share=0.0, draws=0,
        place=place, searched=searched,
    )  # fmt: skip
    return alone if draws is None else _with_draws(alone, form, draws, window)


def _just_above(flops: float, every: list[float], top: float) -> float:
    """Half way, in the logarithm, from a crossing to the next one or to the end."""
    return float(np.sqrt(flops * min((other for other in every if other > flops), default=top)))


def _with_draws(alone: Crossover, form: Form, draws: tuple[Array, Array], window: Window) -> Crossover:
    """The crossing of the fits with what the draws say about it."""
    every = crossings(form, *draws, alone.searched)
    ends = _gap(form, *draws, np.array(alone.searched))
    wins: NDArray[np.bool_] = (ends < 0) if alone.ahead == "candidate" else (ends > 0)
    at = np.array([_closest(found, alone.compute or window.target) for found in every])
    crossed = ~np.isnan(at)
    back = crossed & wins[:, 0] & ~wins[:, 1]
    at[~crossed] = np.where(wins[~crossed, 1], 0.0, np.inf)
    at[back] = np.inf  # there is a compute above which the other one wins
    tail = (1 - alone.level) / 2
    low, high = np.quantile(at, [tail, 1 - tail], method="inverted_cdf")
    known = alone.compute is not None
    return replace(
        alone,
        low=float(low) if known and 0 < low < np.inf else None,
        high=float(high) if known and 0 < high < np.inf else None,
        share=float(crossed.mean()),
        never=float((~crossed & wins[:, 1]).mean()),
        reversed_share=float(back.sum() / crossed.sum()) if crossed.any() else 0.0,
        draws=len(at),
    )


def _closest(found: list[float], near: float) -> float:
    return min(found, key=lambda flops: abs(np.log(flops / near))) if found else np.nan
