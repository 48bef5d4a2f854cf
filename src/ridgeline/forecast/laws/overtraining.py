"""Over-training at a fixed ratio M = D/N: L(C, M) = E + (a M^eta + b M^-eta) C^-eta, Gadre et al. 2024.

With C = 6ND this is the law of Chinchilla with both exponents 2 eta, A = a/6^eta and B = b/6^eta: every ratio then
scales alike, which is what lets short runs forecast over-trained ones.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project, spread
from ridgeline.forecast.fitting.terms import SumOfTerms, stack
from ridgeline.forecast.form import Array, Columns, Parameter
from ridgeline.forecast.laws import chinchilla

_ETA = np.geomspace(0.02, 0.8, 33)


@dataclass(frozen=True)
class Overtraining(SumOfTerms):
    """theta = (ln a, ln b, ln E, eta)."""

    def design(self, columns: Columns) -> Array:
        """See `SumOfTerms`."""
        size, tokens = (np.log(6.0) + 2 * np.log(columns[name]) for name in ("N", "D"))
        return stack(4, {0: 1, 3: -size}, {1: 1, 3: -tokens}, {2: 1})

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""

        def basis(cells: Array) -> Array:
            n, d = (spread(2 * cells[:, 0], columns[name]) for name in ("N", "D"))
            return np.stack([n, d, np.ones_like(n)], axis=-1)

        found = project((_ETA,), basis, log_y, weights)
        eta = found.cells[:, 0]
        size, tokens = (np.log(6.0) + 2 * middle(columns[name]) for name in ("N", "D"))
        a, b, e = np.log(found.linear).T
        return np.stack([a + eta * size, b + eta * tokens, e, eta], axis=-1)

    def optimum(self, theta: Array, compute: Array) -> tuple[Array, Array]:
        """See `Form`."""
        a, b, eta = theta[..., 0], theta[..., 1], theta[..., 3]
        ratio = np.exp((b - a) / (2 * eta))  # the same at every compute
        n = np.sqrt(compute / (6 * ratio))
        return n, n * ratio


FORM = Overtraining(
    slug="overtraining",
    title="Over-training",
    kind="overtraining",
    inputs=("N", "D"),
    parameters=(
        Parameter("a", True, 1e-6, chinchilla.PARAMETERS[0].high, "capacity coefficient"),
        Parameter("b", True, 1e-6, chinchilla.PARAMETERS[0].high, "data coefficient"),
        Parameter("E", True, 1e-6, 1e3, "irreducible loss", "nat"),
        Parameter("eta", False, 1e-3, 1.5, "compute exponent"),
    ),
    formula="E + (a*(D/N)**eta + b*(D/N)**(-eta))*(6*N*D)**(-eta)",
    text="L = E + (a M^eta + b M^-eta) C^-eta with M = D/N and C = 6 N D",
    valid="One corpus and schedule; loss falls with compute at the same rate at every ratio of tokens to parameters.",
    source=Source("Language models scale reliably with over-training (arXiv 2403.08540)", "equation 4"),
    ambiguous="The constants of the study are not stored here: they were not read.",
)
