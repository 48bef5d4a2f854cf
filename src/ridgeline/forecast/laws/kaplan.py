"""L = ((N_c/N)^(alpha_N/alpha_D) + D_c/D)^alpha_D: the joint law of Kaplan et al. 2020, without a floor."""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.projection import distinct, nonnegative
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws.chinchilla import HUGE, SMALLEST, normal_equations, powers

_GRID = np.geomspace(0.01, 0.8, 24)  # of each exponent


@dataclass(frozen=True)
class Kaplan(Form):
    """theta = (alpha_N, alpha_D, ln N_c, ln D_c)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln L, shape (..., n)."""
        of_n, of_d, n, d = (theta[..., i, None] for i in range(4))
        capacity, data = (of_n / of_d) * (n - np.log(columns["N"])), d - np.log(columns["D"])
        top = np.maximum(np.real(capacity), np.real(data))  # a constant to the complex step: the sum is the same
        summed: Array = of_d * (top + np.log(np.exp(capacity - top) + np.exp(data - top)))
        return summed

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """Basins of a grid of exponents, (S, P), coefficients by least squares."""
        found = np.array([self._projected(columns, log_y, weights, of_d) for of_d in _GRID])  # (D, N, 4)
        score = np.sum(weights * np.abs(log_y - self.log_loss(found, columns)), axis=-1)
        low, high = self.box
        score = np.where(np.all((found >= low) & (found <= high), axis=-1), score, np.inf)
        return np.array([found[cell] for cell in distinct(score)]).reshape(-1, 4)

    def _projected(self, columns: Columns, log_y: Array, weights: Array, of_d: float) -> Array:
        """The best N_c and D_c for one alpha_D and every alpha_N: L^(1/alpha_D) is linear in its two terms."""
        target = np.exp((log_y - np.mean(log_y)) / of_d)
        relative = weights * (of_d / target) ** 2  # errors of the target to those of ln L
        slopes = _GRID / of_d
        (capacity, n0), (data, d0) = powers(slopes, columns["N"]), powers(np.ones(1), columns["D"])
        gram, moment = normal_equations(capacity, data, relative, target)
        terms, _ = nonnegative(gram[:, 0, :2, :2], moment[:, 0, :2])
        logs = np.log(np.maximum(terms, SMALLEST * float(np.mean(target)))) + np.mean(log_y) / of_d
        return np.stack([_GRID, np.full(len(_GRID), of_d), logs[:, 0] / slopes + n0, logs[:, 1] + d0], axis=1)

    def optimum(self, theta: Array, compute: Array) -> tuple[Array, Array]:
        """N and D in closed form: both terms of the sum fall at one rate there."""
        of_n, of_d, n, d = (theta[..., i] for i in range(4))
        slope = of_n / of_d
        log_n = (np.log(slope) + slope * n - d + np.log(compute / 6)) / (slope + 1)
        found = np.exp(log_n)
        return found, compute / (6 * found)


FORM = Kaplan(
    slug="kaplan",
    title="Kaplan",
    kind="kaplan",
    inputs=("N", "D"),
    parameters=(
        Parameter("alpha_N", False, 1e-3, 3.0, "exponent of the size at unlimited data"),
        Parameter("alpha_D", False, 1e-3, 3.0, "exponent of the data at unlimited size"),
        Parameter("N_c", True, 1e-6, HUGE**3, "size at which the loss of unlimited data would be 1", "param"),
        Parameter("D_c", True, 1e-6, HUGE**3, "data with which the loss of unlimited size would be 1", "token"),
    ),
    formula="((count(N_c)/count(N))**(alpha_N/alpha_D) + count(D_c)/count(D))**alpha_D",
    text="L = ((N_c/N)^(alpha_N/alpha_D) + D_c/D)^alpha_D",
    valid=(
        "N without embeddings. No floor: it falls without end, so it cannot hold far beyond its runs. The schedules "
        "behind the published constants did not end with the run."
    ),
    source=Source("Scaling Laws for Neural Language Models (arXiv 2001.08361)", "section 4, equation 1.5"),
)
