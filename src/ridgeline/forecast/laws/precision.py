"""Training and quantizing in few bits: Kumar et al. 2024.

L = A/N_eff^alpha + B/D^beta + E + d, N_eff = N prod_x (1 - exp(-P_x/g_x + n_x)) over weights, activations and the
key-value cache trained in P_x bits, and d = C_T D^gamma_D / N^gamma_N exp(-P_post/g_post) for weights quantized to
P_post bits after training.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import settle
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws import chinchilla

KINDS = ("w", "a", "kv")
_BASINS = 3
_LEAST = 1e-9  # the share of N that stays where the law has none left
_FINE = (3.0, 1.5)  # bits, of the first guesses at g_x
_BITS = np.arange(1.0, 32.0, 0.01)


@dataclass(frozen=True)
class Precision(Form):
    """theta = (ln A, ln B, ln E, alpha, beta, ln g and n of each of `KINDS`, ln C_T, gamma_D, gamma_N, ln g_post)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        a, b, e, alpha, beta = (theta[..., i, None] for i in range(5))
        c, gamma_d, gamma_n, g_post = (theta[..., i, None] for i in range(11, 15))
        n, d = np.log(columns["N"]), np.log(columns["D"])
        left = self.log_share(theta[..., None, :], [columns[f"bits_{kind}"] for kind in KINDS])
        after = np.exp(c + gamma_d * d - gamma_n * n - columns["bits_post"] * np.exp(-g_post))
        found: Array = np.log(np.exp(a - alpha * (n + left)) + np.exp(b - beta * d) + np.exp(e) + after)
        return found

    def log_share(self, theta: Array, bits: list[Array]) -> Array:
        """ln(N_eff/N), shape (...,): what is left of N in ``bits`` for weights, activations and cache."""
        total = np.zeros_like(theta[..., 0])
        for i, width in enumerate(bits):
            left = 1 - np.exp(theta[..., 6 + 2 * i] - width * np.exp(-theta[..., 5 + 2 * i]))
            total = total + np.log(np.where(left.real > _LEAST, left, _LEAST))
        return total

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        parents = chinchilla.FORM.starts(columns, log_y, weights)[:3]
        after = np.median(np.exp(log_y)) * 1e-3
        theta = [
            [*parent, *(x for _ in KINDS for x in (np.log(g), 0.0)), np.log(after), 0.1, 0.1, 0.0]
            for parent in parents
            for g in _FINE
        ]
        fitted = settle(self, np.array(theta), range(11), columns, log_y, weights)
        return settle(self, fitted[:_BASINS], range(15), columns, log_y, weights)

    def reduced(self, theta: Array, bits: tuple[float, float, float]) -> Array:
        """Chinchilla's theta (..., 5) of a model trained in these bits and not quantized afterwards."""
        left = self.log_share(theta, [np.asarray(width) for width in bits])
        found = theta[..., :5].copy()
        found[..., 0] -= theta[..., 3] * left
        return found

    def optimum_at(self, theta: Array, compute: Array, bits: tuple[float, float, float]) -> tuple[Array, Array]:
        """The compute-optimal N and D at C = 6ND in these bits, in closed form."""
        return chinchilla.FORM.optimum(self.reduced(theta, bits), compute)

    def best_bits(self, theta: Array) -> float:
        """The bits, the same for all three, in which a FLOP budget goes furthest where cost is N D bits; theta: (P,).

        It maximises N_eff/(N bits), so that it depends on no budget. The least of the range searched (1 to 32) says
        that there is no optimum inside.
        """
        left = self.log_share(theta[None, :], [_BITS, _BITS, _BITS])
        return float(_BITS[int(np.argmax(left - np.log(_BITS)))])


_SHARE = "*".join(f"(1 - exp(n_{kind} - bits_{kind}/g_{kind}))" for kind in KINDS)

FORM = Precision(
    slug="precision",
    title="Precision",
    kind="precision",
    inputs=("N", "D", "bits_w", "bits_a", "bits_kv", "bits_post"),
    parameters=(
        *chinchilla.PARAMETERS,
        Parameter("g_w", True, 0.05, 50.0, "bits of the weights over which their cost falls e-fold"),
        Parameter("n_w", False, -10.0, 10.0, "offset of the weights"),
        Parameter("g_a", True, 0.05, 50.0, "bits of the activations over which their cost falls e-fold"),
        Parameter("n_a", False, -10.0, 10.0, "offset of the activations"),
        Parameter("g_kv", True, 0.05, 50.0, "bits of the key-value cache over which its cost falls e-fold"),
        Parameter("n_kv", False, -10.0, 10.0, "offset of the key-value cache"),
        Parameter("C_T", True, 1e-9, 1e6, "coefficient of quantizing after training"),
        Parameter("gamma_D", False, -3.0, 3.0, "how quantizing hurts more with more tokens"),
        Parameter("gamma_N", False, -3.0, 3.0, "how quantizing hurts less with size"),
        Parameter("g_post", True, 0.05, 50.0, "bits over which the cost of quantizing falls e-fold"),
    ),
    formula=f"A/(count(N)*{_SHARE})**alpha + B/D**beta + E + C_T*D**gamma_D/N**gamma_N*exp(-bits_post/g_post)",
    text="L = A/N_eff^alpha + B/D^beta + E + C_T D^gamma_D/N^gamma_N exp(-P_post/g_post), "
    "N_eff = N prod (1 - exp(n_x - P_x/g_x)) over weights, activations, cache",
    valid="Integer types, each width above n_x g_x bits (with the published constants 3.1 for activations), where "
    "N_eff is positive; models near 16 bits identify no g_x. Take many bits_post to leave quantizing out.",
    source=Source("Scaling Laws for Precision (arXiv 2411.04330)", "sections 3 and 4, appendix K"),
    ambiguous="The text writes the offset with either sign. With +n_x the published constants put the best common "
    "width at 7.0 bits, where the study has it (7 to 8); with -n_x there is no optimum. So +n_x is used. What the "
    "tabulated b (1.1277) multiplies was not found: it is stored and not used, nor is the factor for weights that were "
    "trained in few bits and are quantized again.",
)
