"""A router keeps the weak model's answer where its signal is at or above a threshold, and escalates elsewhere.

Three kinds: ``confidence`` (a column; low escalates), ``difficulty`` (a column; high escalates), and ``slice``, whose
signal is the weak model's mean score in the example's slice on the choosing half.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import InputError
from ridgeline.gate.evidence.samples import Floats, Mask, Texts
from ridgeline.gate.statistics.compare import is_binary
from ridgeline.gate.statistics.paired import tango_ends
from ridgeline.gate.statistics.quantiles import student
from ridgeline.gate.statistics.slices import coded

Kind = Literal["slice", "confidence", "difficulty"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CANDIDATES = 2000  # thresholds that are tried, even in rank; more are nearer than their noise
WEAK_ALWAYS_RUNS = ("confidence",)  # its signal is the weak model's own answer


@dataclass(frozen=True, eq=False)
class Examples:
    """Scores of both models, higher is better, with the router's signal: higher keeps the weak model's answer."""

    weak: Floats
    strong: Floats
    signal: Floats

    def at(self, rows: Mask) -> "Examples":
        """The same columns at some rows."""
        return Examples(self.weak[rows], self.strong[rows], self.signal[rows])

    def kept(self, threshold: float) -> Mask:
        """Which rows the weak model answers."""
        found: Mask = self.signal >= threshold
        return found

    def cascade(self, threshold: float) -> Floats:
        """The score of every row under the router."""
        return np.where(self.kept(threshold), self.weak, self.strong)


def by_slice(weak: Floats, slices: Texts, chosen_on: Mask) -> tuple[Floats, list[str]]:
    """The mean weak score of each row's slice on the choosing half, and slices that are not there: these escalate."""
    names, codes = coded(slices)
    count = np.bincount(codes[chosen_on], minlength=len(names))
    total = np.bincount(codes[chosen_on], weights=weak[chosen_on], minlength=len(names))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, total / count, -np.inf)
    return mean[codes], [name for name, many in zip(names, count, strict=True) if not many]


def choose(data: Examples, margin: float, alpha: float) -> float:
    """The threshold that keeps the most weak answers with the cascade's lower bound above minus the margin.

    It is chosen by the bound on these rows, so that its own figures there are better than they will be elsewhere;
    infinity where no threshold is inside the margin: then every example escalates. Raises `InputError` for a signal of
    one value, which decides nothing.
    """
    if len(np.unique(data.signal)) < 2:
        hint = "a router that says the same of every example is a constant"
        raise InputError.expected("a signal that differs between examples", "one value", where="the router", hint=hint)
    order = np.argsort(-data.signal, kind="stable")
    signal, difference = data.signal[order], (data.weak - data.strong)[order]
    ends = np.flatnonzero(
        np.append(signal[1:] != signal[:-1], True) & np.isfinite(signal)
    )  # equal signals stay together
    if len(ends) > CANDIDATES:
        ends = ends[np.unique(np.linspace(0, len(ends) - 1, CANDIDATES).astype(np.intp))]
    low = _lower_bounds(difference, ends, binary=is_binary(data.weak, data.strong), alpha=alpha)
    inside = ends[low > -margin]
    return float(signal[inside[-1]]) if len(inside) else float("inf")


def _lower_bounds(difference: Floats, ends: NDArray[np.intp], *, binary: bool, alpha: float) -> Floats:
    """The lower bound of the mean over all rows when those up to and with each end take the difference."""
    n = len(difference)
    if binary:
        gained, lost = np.cumsum(difference > 0), np.cumsum(difference < 0)
        return tango_ends(gained[ends], lost[ends], n, alpha)[0]
    mean, square = (np.cumsum(column)[ends] / n for column in (difference, difference**2))
    error = np.sqrt(np.maximum(square - mean**2, 0) / (n - 1))
    found: Floats = mean - student(alpha, n - 1) * error
    return found


@dataclass(frozen=True)
class Side:
    """The router on one half: what it escalates, what it loses, and how well it finds what must be escalated.

    ``needs`` counts examples where the strong model is better, ``recall`` is the share of them that escalate,
    ``precision`` how many of the escalated ones need it, ``constant`` the mean of the mix that escalates the same share
    at random. Shares are NaN where they are of none.
    """

    n: int
    escalated: float
    weak: float
    strong: float
    cascade: float
    constant: float
    needs: int
    recall: float
    precision: float


def side(data: Examples, threshold: float) -> Side:
    """The figures of one half."""
    up = ~data.kept(threshold)
    need = data.strong > data.weak
    share, weak, strong = float(up.mean()), float(data.weak.mean()), float(data.strong.mean())
    return Side(
        len(up), share, weak, strong, float(data.cascade(threshold).mean()), share * strong + (1 - share) * weak,
        int(need.sum()),
        float(up[need].mean()) if need.any() else float("nan"),
        float(need[up].mean()) if up.any() else float("nan"),
    )  # fmt: skip


def against_constant(data: Examples, threshold: float) -> Floats:
    """Cascade less the constant mix with the same share escalated, for every row."""
    share = float((~data.kept(threshold)).mean())
    return data.cascade(threshold) - (share * data.strong + (1 - share) * data.weak)


def saved(kind: Kind, kept: Mask, costs: tuple[Floats, Floats]) -> tuple[Floats, float]:
    """Per row the cost saved against always-strong less its mean share (for the error), and that share itself.

    The share is 1 - sum(cost) / sum(strong cost); its error is that of the ratio's linearised residuals.
    """
    weak, strong = costs
    spent = np.where(kept, weak, strong + (weak if kind in WEAK_ALWAYS_RUNS else 0.0))
    ratio = float(spent.sum() / strong.sum())
    residual: Floats = (ratio * strong - spent) / float(strong.mean())
    return residual + (1 - ratio), 1 - ratio
