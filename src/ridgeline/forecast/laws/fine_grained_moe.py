"""Fine-grained experts: L = c + (g/G^gamma + a)/N^alpha + b/D^beta, Krajewski et al. 2024.

G, the granularity, is how many times narrower an expert is than the feed-forward layer that it replaces. At one G the
form is Chinchilla's with A = g/G^gamma + a.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project, spread
from ridgeline.forecast.fitting.terms import SumOfTerms, stack
from ridgeline.forecast.form import Array, Columns, Parameter
from ridgeline.forecast.laws import chinchilla

_EXPONENTS = np.geomspace(0.03, 0.9, 13)
_GRANULARITY = (0.1, 0.3, 0.6, 1.0, 2.0)


@dataclass(frozen=True)
class FineGrained(SumOfTerms):
    """theta = (ln a, ln b, ln c, ln g, alpha, beta, gamma)."""

    def design(self, columns: Columns) -> Array:
        """See `SumOfTerms`."""
        n, d, fine = (np.log(columns[name]) for name in self.inputs)
        return stack(7, {0: 1, 4: -n}, {1: 1, 5: -d}, {2: 1}, {3: 1, 4: -n, 6: -fine})

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""

        def basis(cells: Array) -> Array:
            n, d, fine = (spread(cells[:, i], columns[name]) for i, name in enumerate(self.inputs))
            return np.stack([n, d, np.ones_like(n), n * fine], axis=-1)

        found = project((_EXPONENTS, _EXPONENTS, _GRANULARITY), basis, log_y, weights)
        alpha, beta, gamma = found.cells.T
        a, b, c, g = np.log(found.linear).T
        n, d, fine = (middle(columns[name]) for name in self.inputs)
        return np.stack([a + alpha * n, b + beta * d, c, g + alpha * n + gamma * fine, alpha, beta, gamma], axis=-1)

    def reduced(self, theta: Array, granularity: Array) -> Array:
        """Chinchilla's theta (..., 5) at one granularity; its optimum is the form's where C = 6 N D counts the FLOPs.

        A token of a mixture passes through its active parameters: with the share f of N active, C/f takes C's place.
        """
        a, b, c, g, alpha, beta, gamma = (theta[..., i] for i in range(7))
        capacity = np.log(np.exp(a) + np.exp(g - gamma * np.log(granularity)))
        return np.stack([capacity, b, c, alpha, beta], axis=-1)

    def optimum_at(self, theta: Array, compute: Array, granularity: Array) -> tuple[Array, Array]:
        """The compute-optimal N and D at C = 6ND and one granularity, in closed form."""
        return chinchilla.FORM.optimum(self.reduced(theta, granularity), compute)


FORM = FineGrained(
    slug="fine-grained-moe",
    title="Fine-grained experts",
    kind="moe_fine_grained",
    inputs=("N", "D", "granularity"),
    parameters=(
        Parameter("a", True, 1e-6, chinchilla.PARAMETERS[0].high, "capacity coefficient at fine granularity"),
        Parameter("b", True, 1e-6, chinchilla.PARAMETERS[0].high, "data coefficient"),
        Parameter("c", True, 1e-6, 1e3, "irreducible loss", "nat"),
        Parameter(
            "g", True, 1e-9, chinchilla.PARAMETERS[0].high, "what coarse experts add to the capacity coefficient"
        ),
        Parameter("alpha", False, 1e-3, 3.0, "capacity exponent"),
        Parameter("beta", False, 1e-3, 3.0, "data exponent"),
        Parameter("gamma", False, 1e-3, 5.0, "granularity exponent"),
    ),
    formula="c + (g/granularity**gamma + a)/N**alpha + b/D**beta",
    text="L = c + (g/G^gamma + a)/N^alpha + b/D^beta",
    valid="One expansion rate (64 in the study). Finer experts never hurt in the form; routing costs, which end the "
    "gain in practice, are outside it.",
    source=Source("Scaling Laws for Fine-Grained Mixture of Experts (arXiv 2402.07871)", "section 5"),
)
