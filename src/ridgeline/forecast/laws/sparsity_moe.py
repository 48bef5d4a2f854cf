"""Sparsity of mixtures of experts, Abnar et al. 2025.

L = a/N^alpha + b/D^beta + c (1 - S)^-lam + d (1 - S)^-delta N^-gamma + e, with N the total parameters and S the share
of the experts that does not work on a token.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project, settle, spread
from ridgeline.forecast.fitting.terms import SumOfTerms, stack
from ridgeline.forecast.form import Array, Columns, Parameter
from ridgeline.forecast.laws import chinchilla

_EXPONENTS = (0.08, 0.15, 0.3, 0.5, 0.8)
_LAM = (-0.6, -0.3, -0.15, 0.1)
_DELTA = (-0.2, 0.1, 0.3, 0.6)
_GAMMA = (0.05, 0.12, 0.25, 0.5)
_SETTLED = 40  # steps: the terms trade against each other along long valleys


@dataclass(frozen=True)
class SparsityMoe(SumOfTerms):
    """theta = (ln a, ln b, ln c, ln d, ln e, alpha, beta, lam, delta, gamma)."""

    def design(self, columns: Columns) -> Array:
        """See `SumOfTerms`."""
        size, tokens, active = np.log(columns["N"]), np.log(columns["D"]), np.log1p(-columns["sparsity"])
        both: dict[int, Array | float] = {3: 1, 8: -active, 9: -size}
        return stack(10, {0: 1, 5: -size}, {1: 1, 6: -tokens}, {2: 1, 7: -active}, both, {4: 1})

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        active = 1 - columns["sparsity"]

        def basis(cells: Array) -> Array:
            alpha, beta, lam, delta, gamma = cells.T
            size, tokens = spread(alpha, columns["N"]), spread(beta, columns["D"])
            mixed = spread(delta, active) * spread(gamma, columns["N"])
            return np.stack([size, tokens, spread(lam, active), mixed, np.ones_like(size)], axis=-1)

        found = project((_EXPONENTS, _EXPONENTS, _LAM, _DELTA, _GAMMA), basis, log_y, weights)
        alpha, beta, lam, delta, gamma = found.cells.T
        a, b, c, d, e = np.log(found.linear).T
        n, tokens, share = middle(columns["N"]), middle(columns["D"]), middle(active)
        logs = [a + alpha * n, b + beta * tokens, c + lam * share, d + delta * share + gamma * n, e]
        theta = np.stack([*logs, alpha, beta, lam, delta, gamma], axis=-1)
        return settle(self, theta, range(10), columns, log_y, weights, _SETTLED)


FORM = SparsityMoe(
    slug="sparsity-moe",
    title="Sparsity of MoE",
    kind="moe_sparsity",
    inputs=("N", "D", "sparsity"),
    parameters=(
        Parameter("a", True, 1e-9, chinchilla.PARAMETERS[0].high, "capacity coefficient"),
        Parameter("b", True, 1e-9, chinchilla.PARAMETERS[0].high, "data coefficient"),
        Parameter("c", True, 1e-9, 1e6, "coefficient of the active share"),
        Parameter("d", True, 1e-9, 1e8, "coefficient of active share and size together"),
        Parameter("e", True, 1e-6, 1e3, "irreducible loss", "nat"),
        Parameter("alpha", False, 1e-3, 3.0, "capacity exponent"),
        Parameter("beta", False, 1e-3, 3.0, "data exponent"),
        Parameter("lam", False, -3.0, 3.0, "exponent of the active share"),
        Parameter("delta", False, -3.0, 3.0, "exponent of the active share in the joint term"),
        Parameter("gamma", False, 1e-3, 3.0, "exponent of the size in the joint term"),
    ),
    formula="a/N**alpha + b/D**beta + c*(1 - sparsity)**(-lam) + d*(1 - sparsity)**(-delta)*N**(-gamma) + e",
    text="L = a/N^alpha + b/D^beta + c (1 - S)^-lam + d (1 - S)^-delta N^-gamma + e",
    valid="S below 1 (dense is S = 0), total parameters, one number of chosen experts. Five exponents on three inputs: "
    "ladders of less than a few dozen runs do not identify it.",
    source=Source("Parameters vs FLOPs: Scaling Laws for Optimal Sparsity (arXiv 2501.12370)", "section 4"),
    ambiguous="The published constants have a held-out R2 of 68% only, and lam is negative there: the third term "
    "falls as models grow sparser.",
)
