"""Routed language models: log10 L = a log10 N + b log10 Eh + c log10 N log10 Eh + d, Clark et al. 2022.

N is the size of the dense model that a token passes through, Eh the number of experts, saturating between ``E_start``
(at one expert) and ``E_max``: 1/Eh = 1/(experts - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic.laws import SATURATING
from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import project_log
from ridgeline.forecast.form import Array, Columns, Form, Parameter

_E_START = (1.0, 1.4, 2.0, 2.8, 4.0, 5.7, 8.0)
_E_MAX = (60.0, 120.0, 240.0, 480.0, 1e3, 4e3)
EXPERTS = (
    Parameter("E_start", True, 0.5, 30.0, "effective experts of one expert"),
    Parameter("E_max", True, 31.0, 1e6, "effective experts that no number of experts exceeds"),
)


def effective_experts(experts: Array, start: Array, most: Array) -> Array:
    """Eh of a number of experts; ``start`` at one, ``most`` at infinitely many."""
    return 1 / (1 / (experts - 1 + 1 / (1 / start - 1 / most)) + 1 / most)


@dataclass(frozen=True)
class Routed(Form):
    """theta = (a, b, c, d, ln E_start, ln E_max)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        a, b, c, d, start, most = (theta[..., i, None] for i in range(6))
        size = np.log10(columns["N"])
        experts = np.log(effective_experts(columns["experts"], np.exp(start), np.exp(most))) / np.log(10)
        found: Array = np.log(10) * (a * size + b * experts + c * size * experts + d)
        return found

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        size = np.log10(columns["N"])

        def basis(cells: Array) -> Array:
            found = np.log10(effective_experts(columns["experts"], cells[:, :1], cells[:, 1:]))
            every = np.broadcast_to(size, found.shape)
            return np.stack([every, found, every * found, np.ones_like(found)], axis=-1)

        found = project_log((_E_START, _E_MAX), basis, log_y / np.log(10), weights)
        return np.concatenate([found.linear, np.log(found.cells)], axis=-1)

    def cutoff(self, theta: Array) -> Array:
        """The dense size 10^(-b/c) at which more experts stop helping, shape (...,); infinite where c is not > 0."""
        b, c = theta[..., 1], theta[..., 2]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.where(c > 0, 10 ** (-b / c), np.inf)


FORM = Routed(
    slug="routed",
    title="Routed",
    kind="routed",
    inputs=("N", "experts"),
    parameters=(
        Parameter("a", False, -2.0, 2.0, "exponent of the size"),
        Parameter("b", False, -5.0, 5.0, "exponent of the experts"),
        Parameter("c", False, -1.0, 1.0, "interaction: how routing loses with size"),
        Parameter("d", False, -20.0, 20.0, "log10 of the loss at one parameter"),
        *EXPERTS,
    ),
    formula=f"10**(a*log10(N) + b*log10({SATURATING}) + c*log10(N)*log10({SATURATING}) + d)",
    text="log10 L = a log10 N + b log10 Eh + c log10 N log10 Eh + d, "
    "1/Eh = 1/(experts - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max",
    valid="One number of training tokens (130e9 in the study) and one router; it has no floor and no term for data. "
    "Routing stops helping at N = 10^(-b/c).",
    source=Source("Unified Scaling Laws for Routed Language Models (arXiv 2202.01169)", "section 4, equation 8"),
    ambiguous="E_start and E_max are weakly identified: refits on the released final losses move them by a third or "
    "more at the same quality. Which runs the published fit used is not said.",
)
