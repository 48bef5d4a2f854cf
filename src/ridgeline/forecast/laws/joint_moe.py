"""Dense and mixture-of-experts models in one law: Ludziejewski et al. 2025.

L = a Eh^delta N^(alpha + gamma ln Eh) + b Eh^omega D^(beta + zeta ln Eh) + c, with N the active parameters, Eh the
saturating number of experts of `ridgeline.forecast.laws.routed`, and alpha and beta negative. At one number of
experts the form is Chinchilla's.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic.laws import JOINT_DATA, JOINT_SIZE
from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project, settle, spread
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws import chinchilla
from ridgeline.forecast.laws.routed import EXPERTS, effective_experts

_EXPONENTS = np.geomspace(0.05, 0.8, 13)
_SATURATION = ((1.2, 100.0), (2.0, 300.0), (5.0, 1e3))  # E_start, E_max
_BASINS = 4


@dataclass(frozen=True)
class JointMoe(Form):
    """theta = (ln a, alpha, delta, gamma, ln b, beta, omega, zeta, ln c, ln E_start, ln E_max)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        experts = columns["experts"]
        size, data, floor = self._terms(theta[..., None, :], np.log(columns["N"]), np.log(columns["D"]), experts)
        found: Array = np.log(np.exp(size) + np.exp(data) + np.exp(floor))
        return found

    def _terms(self, theta: Array, n: Array, d: Array, experts: Array) -> tuple[Array, Array, Array]:
        a, alpha, delta, gamma, b, beta, omega, zeta, c, start, most = (theta[..., i] for i in range(11))
        fold = np.log(effective_experts(experts, np.exp(start), np.exp(most)))
        return a + delta * fold + (alpha + gamma * fold) * n, b + omega * fold + (beta + zeta * fold) * d, c

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""

        def basis(cells: Array) -> Array:
            n, d = (spread(cells[:, i], columns[name]) for i, name in enumerate(("N", "D")))
            return np.stack([n, d, np.ones_like(n)], axis=-1)

        found = project((_EXPONENTS, _EXPONENTS), basis, log_y, weights)
        alpha, beta = found.cells.T
        a, b, c = np.log(found.linear).T
        flat = np.zeros((len(alpha), 11))
        flat[:, [0, 1, 4, 5, 8]] = np.stack(
            [a + alpha * middle(columns["N"]), -alpha, b + beta * middle(columns["D"]), -beta, c], axis=-1
        )
        every = []
        for start, most in _SATURATION:
            flat[:, 9:] = np.log(start), np.log(most)
            every.append(settle(self, flat, (0, 2, 4, 6, 8), columns, log_y, weights)[:2])
        return settle(self, np.concatenate(every), range(9), columns, log_y, weights)[:_BASINS]

    def reduced(self, theta: Array, experts: Array) -> Array:
        """Chinchilla's theta (..., 5) at one number of experts, the parameters being the active ones."""
        at = np.zeros(())
        a, b, c = self._terms(theta, at, at, experts)
        slope_n, slope_d, _ = self._terms(theta, at + 1, at + 1, experts)
        return np.stack(np.broadcast_arrays(a, b, c, a - slope_n, b - slope_d), axis=-1)

    def optimum_at(self, theta: Array, compute: Array, experts: Array) -> tuple[Array, Array]:
        """The compute-optimal active N and D at C = 6ND and one number of experts, in closed form."""
        return chinchilla.FORM.optimum(self.reduced(theta, experts), compute)


FORM = JointMoe(
    slug="joint-moe",
    title="Joint dense and MoE",
    kind="moe_joint",
    inputs=("N", "D", "experts"),
    parameters=(
        Parameter("a", True, 1e-6, chinchilla.PARAMETERS[0].high, "capacity coefficient"),
        Parameter("alpha", False, -3.0, 0.0, "capacity exponent, negative"),
        Parameter("delta", False, -10.0, 10.0, "exponent of the experts in the capacity term"),
        Parameter("gamma", False, -1.0, 1.0, "how the capacity exponent moves with ln Eh"),
        Parameter("b", True, 1e-6, chinchilla.PARAMETERS[0].high, "data coefficient"),
        Parameter("beta", False, -3.0, 0.0, "data exponent, negative"),
        Parameter("omega", False, -10.0, 10.0, "exponent of the experts in the data term"),
        Parameter("zeta", False, -1.0, 1.0, "how the data exponent moves with ln Eh"),
        Parameter("c", True, 1e-6, 1e3, "irreducible loss", "nat"),
        *EXPERTS,
    ),
    formula=f"{JOINT_SIZE} + {JOINT_DATA} + c",
    text="L = a Eh^delta N^(alpha + gamma ln Eh) + b Eh^omega D^(beta + zeta ln Eh) + c, "
    "1/Eh = 1/(experts - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max",
    valid="Experts as wide as the dense layer, a fixed number of them chosen; where alpha + gamma ln Eh or "
    "beta + zeta ln Eh reaches 0 the form says that size or data stop helping, which it has not seen.",
    source=Source("Joint MoE Scaling Laws (arXiv 2502.05172)", "section 3, equation 5"),
)
