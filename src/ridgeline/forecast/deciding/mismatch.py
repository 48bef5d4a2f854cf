"""From Kaplan to Chinchilla: what a late schedule, and a count that leaves something out, do to exponents.

A run read before its learning-rate schedule has ended has too high a loss. Here the excess is scale (1 - D/horizon)
nats: zero where the schedule ends with the run, `scale` where it has hardly begun. Two designs over the same runs:

``matched``   every run has a horizon of a fixed multiple of its own D: the excess is one offset, and goes into E;
``shared``    one horizon for all, as when checkpoints of one long run per size are read: the excess falls as D grows,
              so the data term seems to go on where the floor should be. E and beta come out too small.

What that does to N* ~ C^a depends on how the runs are read. The parametric refit tilts a with beta. The envelope (the
lowest loss at each compute) is pulled towards the horizon and then stops there, since no run is longer: from that
compute on N* = C/(6 horizon) grows with exponent one, which is how a steep law comes out of a flat one.

Counting is the other half (Porian et al. 2024, arXiv:2406.19146, who take warm-up and tuning apart too; Pearce and
Song 2024, arXiv:2406.12907): N and C without the embeddings bend the same truth, most where models are small.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive, given, leaf
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.points import Points

SCALE = 0.15  # nats: of the illustration, not a measured penalty
FINE = 4001  # sizes of a scan along one budget


@dataclass(frozen=True)
class Grid:
    """The runs of the experiment: every size of ``params`` read at every token count of ``tokens``."""

    params: tuple[float, ...]
    tokens: tuple[float, ...]

    def runs(self, form: Form, truth: Array) -> Points:
        """The runs without a penalty, sizes * token counts of them."""
        params, tokens = (axis.ravel() for axis in np.meshgrid(self.params, self.tokens, indexing="ij"))
        return runs(form, truth, params.tolist(), tokens.tolist())


@dataclass(frozen=True)
class Refit:
    """One design: its points, the refit, the exponent of N* ~ C^a between the ends of the grid, the excess (nats)."""

    design: str
    points: Points
    fit: Fit
    exponent: float
    penalty: Array


@dataclass(frozen=True)
class Experiment:
    """The truth, the same runs without a penalty, at a matched and at a shared horizon."""

    truth: float
    clean: Refit
    matched: Refit
    shared: Refit


def penalty(tokens: Quantity, horizon: Quantity, scale: Quantity, name: str) -> Quantity:
    """The excess loss (nat) of a run read at D of a schedule that ends at ``horizon``: scale*(1 - D/horizon).

    Raises `InputError` for a horizon before D.
    """
    if np.any(np.asarray(horizon.base) < np.asarray(tokens.base)):
        raise InputError.expected("a horizon at or beyond D", horizon.value, where=horizon.name)
    found = derive(name, "scale*(1 - D/horizon)", "nat", scale=scale, D=tokens, horizon=horizon)
    return found.titled("Excess loss of an unfinished schedule")


def excess(tokens: Array, horizon: Array, scale: float = SCALE) -> Array:
    """`penalty` of many runs, shape (n,), in nats."""
    parts = (leaf("tokens", tokens, "token"), leaf("horizon", np.asarray(horizon, float), "token"))
    return np.asarray(penalty(*parts, given("scale", float(scale), "nat"), "excess").value, float)


def runs(form: Form, truth: Array, params: Sequence[float], tokens: Sequence[float]) -> Points:
    """Runs without noise of a known law: run i has ``params[i]`` and ``tokens[i]``, and C = 6ND."""
    columns = {"N": np.array(params, float), "D": np.array(tokens, float)}
    if len(columns["N"]) != len(columns["D"]):
        raise InputError.expected(f"{len(params)} token counts", len(tokens), where="the runs")
    columns["C"] = 6 * columns["N"] * columns["D"]
    return Points({**columns, "loss": np.exp(form.log_loss(truth, columns))}, params="total")


def experiment(form: Form, truth: Array, grid: Grid, scale: float = SCALE, multiple: float = 2.0) -> Experiment:
    """The same runs under three schedules, refitted with the same form.

    ``truth`` (P,) are the constants of the law that made the losses. Matched runs have a horizon of ``multiple`` times
    their own D, shared ones the largest D of the grid. No noise: what moves is the design's doing.
    """
    plain = grid.runs(form, truth)
    tokens = plain["D"]
    horizons = {
        "clean": tokens,
        "matched": tokens * multiple,
        "shared": np.full_like(tokens, tokens.max()),
    }
    ends = (float(plain["C"].min()), float(plain["C"].max()))
    refits = {
        name: _refit(name, form, plain, excess(tokens, horizon, scale), ends) for name, horizon in horizons.items()
    }
    return Experiment(exponent(form, truth, ends), **refits)


def _refit(design: str, form: Form, plain: Points, added: Array, ends: tuple[float, float]) -> Refit:
    points = replace(plain, columns={**plain.columns, "loss": plain["loss"] + added})
    found = fit(points, form)
    return Refit(design, points, found, exponent(form, found.theta, ends), added)


def exponent(form: Form, theta: Array, ends: tuple[float, float]) -> float:
    """a of N* ~ C^a between two budgets (FLOP)."""
    low, high = (float(optimum(form, flops, theta)[0]) for flops in ends)
    return float(np.log(high / low) / np.log(ends[1] / ends[0]))


def tilt(result: Experiment) -> Sequence[tuple[str, float, float]]:
    """Design, exponent, and its distance from the truth."""
    every = (result.clean, result.matched, result.shared)
    return [(refit.design, refit.exponent, refit.exponent - result.truth) for refit in every]


def envelope(form: Form, truth: Array, budgets: Sequence[float], horizon: float, scale: float) -> float:
    """a of N* ~ C^a (least squares in the logarithms) through the lowest loss at each of the ``budgets`` (FLOP).

    Every run has the one ``horizon`` (tokens) and none is longer; ``scale`` 0 is the effect of that cap alone, an
    infinite ``horizon`` that of neither.
    """
    best = []
    for flops in budgets:
        smallest = flops / (6 * horizon) if np.isfinite(horizon) else 1.0
        counted = np.geomspace(max(smallest, 1.0), flops / 6, 10 * FINE)
        tokens = flops / (6 * counted)
        columns = {"N": counted, "D": tokens, "C": np.full_like(tokens, flops)}
        loss = np.exp(form.log_loss(truth, columns))
        if np.isfinite(horizon):
            loss = loss + excess(np.minimum(tokens, horizon), np.full_like(tokens, horizon), scale)
        best.append(counted[np.argmin(loss)])
    return float(np.polyfit(np.log(np.asarray(budgets, float)), np.log(best), 1)[0])


@dataclass(frozen=True)
class Shape:
    """What turns a count without embeddings into one with them: ``vocab`` rows of d, and ``aspect`` = d/layers.

    A block has 12 d^2 weights, so that a body of M weights has d = (M aspect/12)^(1/3).
    """

    vocab: float
    aspect: float
    tables: int = 1  # 2 where input and output tables differ

    def total(self, body: Array) -> Array:
        """All parameters (n,) of bodies of that many."""
        width = np.cbrt(body * self.aspect / 12)
        found: Array = body + self.tables * self.vocab * width
        return found


@dataclass(frozen=True)
class Counted:
    """The exponent of N* ~ C^a of one truth under one count, between two budgets in FLOP of that count."""

    count: str
    exponent: float
    params: tuple[float, float]


def counting(form: Form, truth: Array, shape: Shape, budgets: tuple[float, float]) -> tuple[Counted, Counted]:
    """The same law read with all parameters, and with those outside the embeddings in both N and C = 6ND.

    ``truth`` is in total parameters. Each count finds its own optimum at each of the two ``budgets`` (FLOP), as a
    reader of runs would. Raises `InputError` for budgets that are not in order.
    """
    if not 0 < budgets[0] < budgets[1]:
        raise InputError.expected("two budgets, the smaller first", budgets, where="the budgets")
    whole = tuple(_least(form, truth, flops, None) for flops in budgets)
    body = tuple(_least(form, truth, flops, shape) for flops in budgets)
    decades = np.log(budgets[1] / budgets[0])
    return tuple(
        Counted(name, float(np.log(high / low) / decades), (low, high))
        for name, (low, high) in (("total", whole), ("non-embedding", body))
    )  # type: ignore[return-value]


def _least(form: Form, truth: Array, compute_flops: float, shape: Shape | None) -> float:
    """The counted size of least loss at a counted budget, by a scan that zooms in twice."""
    low, high = 3.0, np.log10(compute_flops / 6) - 3.0
    for _ in range(3):
        x = np.linspace(low, high, FINE)
        counted = 10.0**x
        columns = {"N": counted if shape is None else shape.total(counted), "D": compute_flops / (6 * counted)}
        best = int(np.argmin(form.log_loss(truth, {**columns, "C": np.full(FINE, compute_flops)})))
        low, high = x[max(best - 2, 0)], x[min(best + 2, FINE - 1)]
    return float(10.0 ** x[best])
