"""L = E + (A/N^alpha + B/D^beta)^gamma: the supervised form of Busbridge et al. 2025, Chinchilla at gamma = 1."""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.expansion import Block, Blocks
from ridgeline.forecast.fitting.projection import BASINS, nonnegative
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.laws.chinchilla import HUGE, SMALLEST, features, normal_equations, powers

_EXPONENTS = np.geomspace(0.05, 1.5, 14)  # alpha*gamma and beta*gamma: the slopes seen in the loss
_OUTER = np.array([0.1, 0.2, 0.35, 0.6, 1.0, 1.6, 2.6])
_FLOORS = np.array([0.01, 0.3, 0.5, 0.7, 0.8, 0.9, 0.96])  # E as a share of the lowest loss


@dataclass(frozen=True)
class Coupled(Form):
    """theta = (ln A, ln B, ln E, alpha, beta, gamma)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln L, shape (..., n)."""
        a, b, e, alpha, beta, gamma = (theta[..., i, None] for i in range(6))
        inner = np.log(np.exp(a - alpha * np.log(columns["N"])) + np.exp(b - beta * np.log(columns["D"])))
        summed: Array = np.log(np.exp(e) + np.exp(gamma * inner))
        return summed

    def expand(self, theta: Array, columns: Columns) -> Blocks:
        """Closed-form derivatives, in blocks."""
        a, b, e, alpha, beta, gamma = (theta[..., i, None] for i in range(6))
        capacity, data = a - alpha * np.log(columns["N"]), b - beta * np.log(columns["D"])
        top = np.maximum(capacity, data)
        inner = top + np.log1p(np.exp(-np.abs(capacity - data)))
        of_n, of_d = np.exp(capacity - inner), np.exp(data - inner)  # shares of the bracket
        outer = np.exp(gamma * inner)
        total = outer + np.exp(e)
        bracket = outer / total  # share of the loss above E
        spread = bracket * (1 - bracket)
        # derivatives of gamma*inner - e, by block: N, D, gamma, E
        turn = (gamma * of_n, gamma * of_d, inner, -np.ones_like(inner))
        second = {(i, j): spread * turn[i] * turn[j] for i in range(4) for j in range(i, 4)}
        within = bracket * gamma * of_n * of_d
        second[0, 0] += within
        second[1, 1] += within
        second[0, 1] -= within
        second[0, 2] += bracket * of_n
        second[1, 2] += bracket * of_d
        one = np.ones((total.shape[-1], 1))
        blocks = (
            Block((0, 3), features(columns["N"]), bracket * turn[0]),
            Block((1, 4), features(columns["D"]), bracket * turn[1]),
            Block((5,), one, bracket * inner),
            Block((2,), one, 1 - bracket),
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
        found = np.array([
            self._projected(columns, np.exp(log_y), weights, gamma, share) for gamma in _OUTER for share in _FLOORS
        ])  # fmt: skip
        score = np.sum(weights * np.abs(log_y - self.log_loss(found, columns)), axis=1)
        low, high = self.box
        score = np.where(np.all((found >= low) & (found <= high), axis=1), score, np.inf)
        by_outer = score.reshape(len(_OUTER), len(_FLOORS))
        best = by_outer.argmin(axis=1) + np.arange(len(_OUTER)) * len(_FLOORS)  # one for each gamma: basins lie there
        best = np.append(best, [i for i in np.argsort(score) if i not in best][: BASINS - len(best)])
        best = best[np.isfinite(score[best])]
        kept: Array = found[best[np.argsort(score[best])]]
        return kept

    def _projected(self, columns: Columns, loss: Array, weights: Array, gamma: float, share: float) -> Array:
        """The best exponents and coefficients for one gamma and one E, by weighted least squares of the bracket."""
        floor = share * float(np.min(loss))
        target = (loss - floor) ** (1 / gamma)
        relative = weights * (gamma * (loss - floor) / (target * loss)) ** 2  # errors of the bracket to those of ln L
        (capacity, n0), (data, d0) = (powers(_EXPONENTS / gamma, columns[name]) for name in ("N", "D"))
        gram, moment = normal_equations(capacity, data, relative, target)
        found, gain = nonnegative(gram[..., :2, :2].reshape(-1, 2, 2), moment[..., :2].reshape(-1, 2))
        best = int(np.argmax(gain))
        alpha, beta = (_EXPONENTS[i] / gamma for i in divmod(best, len(_EXPONENTS)))
        smallest = SMALLEST ** (1 / gamma) * float(np.mean(target))
        a, b = np.log(np.maximum(found[best], smallest))
        theta: Array = np.array([a + alpha * n0, b + beta * d0, np.log(floor), alpha, beta, gamma])
        return theta

    def optimum(self, theta: Array, compute: Array) -> tuple[Array, Array]:
        """N and D in closed form: the bracket's, whose constants come first; gamma does not move it."""
        return CHINCHILLA.optimum(theta[..., :5], compute)


FORM = Coupled(
    slug="coupled",
    title="Coupled",
    kind="coupled",
    inputs=("N", "D"),
    parameters=(
        Parameter("A", True, 1e-9, HUGE**3, "capacity coefficient, inside the bracket"),
        Parameter("B", True, 1e-9, HUGE**3, "data coefficient, inside the bracket"),
        Parameter("E", True, 1e-6, 1e3, "irreducible loss", "nat"),
        Parameter("alpha", False, 1e-3, 10.0, "capacity exponent, inside the bracket"),
        Parameter("beta", False, 1e-3, 10.0, "data exponent, inside the bracket"),
        Parameter("gamma", False, 0.05, 5.0, "exponent of the bracket: 1 is Chinchilla"),
    ),
    formula="E + (A/N**alpha + B/D**beta)**gamma",
    text="L = E + (A/N^alpha + B/D^beta)^gamma",
    valid="As Chinchilla; gamma is only identified by ladders where both terms matter off the compute-optimal line.",
    source=Source("Distillation Scaling Laws (arXiv 2502.08606)", "section 4, the supervised form"),
)
