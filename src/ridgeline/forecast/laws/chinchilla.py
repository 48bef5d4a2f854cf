"""L = E + A/N^alpha + B/D^beta: the parametric law of Hoffmann et al. 2022, approach 3."""

import math
from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.expansion import Block, Blocks
from ridgeline.forecast.fitting.projection import distinct, nonnegative
from ridgeline.forecast.form import Array, Columns, Form, Parameter

_GRID = np.geomspace(0.03, 2.0, 24)  # of each exponent
HUGE = math.exp(70.0)  # a bound on coefficients, far above any that was fitted
SMALLEST = 1e-2  # share of the loss with which a term that projection sets to zero starts: it can still grow


def powers(grid: Array, column: Array) -> tuple[Array, Array]:
    """(x/mean x)^-exponent of shape (len(grid), n), and ln mean x: near 1, so that no power overflows."""
    logs = np.log(column)
    centre = float(np.mean(logs))
    return np.exp(-grid[:, None] * (logs - centre)), np.asarray(centre)


def features(column: Array) -> Array:
    """Derivatives of ln(A/x^alpha) by ln A and alpha, shape (n, 2)."""
    return np.stack([np.ones_like(column), -np.log(column)], axis=1)


def normal_equations(capacity: Array, data: Array, weights: Array, target: Array) -> tuple[Array, Array]:
    """Gram matrices (I, J, 3, 3) and moments (I, J, 3) of capacity (I, n), data (J, n) and a constant."""
    shape = (len(capacity), len(data))
    gram, moment = np.empty((*shape, 3, 3)), np.empty((*shape, 3))
    gram[..., 0, 0] = (capacity**2 @ weights)[:, None]
    gram[..., 1, 1] = data**2 @ weights
    gram[..., 2, 2] = np.sum(weights)
    gram[..., 0, 1] = gram[..., 1, 0] = (capacity * weights) @ data.T
    gram[..., 0, 2] = gram[..., 2, 0] = (capacity @ weights)[:, None]
    gram[..., 1, 2] = gram[..., 2, 1] = data @ weights
    moment[..., 0] = (capacity @ (weights * target))[:, None]
    moment[..., 1] = data @ (weights * target)
    moment[..., 2] = np.sum(weights * target)
    return gram, moment


@dataclass(frozen=True)
class Chinchilla(Form):
    """theta = (ln A, ln B, ln E, alpha, beta)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln L, shape (..., n)."""
        a, b, e, alpha, beta = (theta[..., i, None] for i in range(5))
        capacity, data = a - alpha * np.log(columns["N"]), b - beta * np.log(columns["D"])
        summed: Array = np.log(np.exp(e) + np.exp(capacity) + np.exp(data))
        return summed

    def expand(self, theta: Array, columns: Columns) -> Blocks:
        """Closed-form derivatives, in blocks."""
        a, b, e, alpha, beta = (theta[..., i, None] for i in range(5))
        capacity = np.exp(a - alpha * np.log(columns["N"]))
        data = np.exp(b - beta * np.log(columns["D"]))
        floor = np.exp(e)
        total = capacity + data + floor
        shares = capacity / total, data / total, floor / total
        second = {(i, j): -shares[i] * shares[j] for i in range(3) for j in range(i + 1, 3)}
        second |= {(i, i): shares[i] - shares[i] ** 2 for i in range(3)}
        blocks = (
            Block((0, 3), features(columns["N"]), shares[0]),
            Block((1, 4), features(columns["D"]), shares[1]),
            Block((2,), np.ones((total.shape[-1], 1)), shares[2]),
        )
        return Blocks(np.log(total), blocks, second)

    def gradient(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """ln L and its derivatives, shapes (..., n) and (..., n, P)."""
        around = self.expand(theta, columns)
        return around.value, around.slopes()

    def curvature(self, theta: Array, columns: Columns, weights: Array) -> Array:
        """The weighted sum of second derivatives, shape (..., P, P)."""
        return self.expand(theta, columns).curvature(weights)

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """Basins of a grid of exponents, (S, P), coefficients by least squares."""
        loss = np.exp(log_y)
        (capacity, n0), (data, d0) = powers(_GRID, columns["N"]), powers(_GRID, columns["D"])
        relative = weights / loss**2
        gram, moment = normal_equations(capacity, data, relative, loss)
        found, _ = nonnegative(gram.reshape(-1, 3, 3), moment.reshape(-1, 3))
        found = np.maximum(found, SMALLEST * float(np.min(loss)))
        alpha, beta = (grid.ravel() for grid in np.meshgrid(_GRID, _GRID, indexing="ij"))
        logs = np.log(found)
        theta = np.stack([logs[:, 0] + alpha * n0, logs[:, 1] + beta * d0, logs[:, 2], alpha, beta], axis=1)
        score = np.sum(weights * np.abs(log_y - self.log_loss(theta, columns)), axis=1)
        side = len(_GRID)
        cells = distinct(score.reshape(side, side))
        return theta[[i * side + j for i, j in cells]]

    def optimum(self, theta: Array, compute: Array) -> tuple[Array, Array]:
        """N and D in closed form: both terms of the sum fall at one rate there."""
        a, b, alpha, beta = (theta[..., i] for i in (0, 1, 3, 4))
        balance = np.exp((np.log(alpha) + a - np.log(beta) - b) / (alpha + beta))
        n = balance * (compute / 6) ** (beta / (alpha + beta))
        return n, compute / (6 * n)


PARAMETERS = (
    Parameter("A", True, 1e-6, HUGE, "capacity coefficient"),
    Parameter("B", True, 1e-6, HUGE, "data coefficient"),
    Parameter("E", True, 1e-6, 1e3, "irreducible loss", "nat"),
    Parameter("alpha", False, 1e-3, 3.0, "capacity exponent"),
    Parameter("beta", False, 1e-3, 3.0, "data exponent"),
)

FORM = Chinchilla(
    slug="chinchilla",
    title="Chinchilla",
    kind="parametric",
    inputs=("N", "D"),
    parameters=PARAMETERS,
    formula="E + A/N**alpha + B/D**beta",
    text="L = E + A/N^alpha + B/D^beta",
    valid="One recipe, one data distribution, schedules that end with the run, no repeated data.",
    source=Source("Training Compute-Optimal Large Language Models (arXiv 2203.15556)", "section 3.3, equation 2"),
)
