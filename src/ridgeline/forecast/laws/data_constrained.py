"""Repeated data, L(N, U, R): Muennighoff et al. 2023.

Repeats of U unique tokens, and parameters beyond what U can feed, are worth less and less:
D' = U + U R_D (1 - exp(-(D/U - 1)/R_D)), N' likewise over U_N with R_N, L = E + A/N'^alpha + B/D'^beta. U_N is the
size whose compute-optimal run takes U tokens, or N where that is smaller.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws.chinchilla import PARAMETERS

_EXPONENTS = (0.08, 0.15, 0.25, 0.35, 0.5, 0.7)
_FED = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # parameters that one unique token feeds
_HALF_LIVES = (1.0, 4.0, 16.0, 64.0, 1e3)


def effective(base: Array, excess: Array, scale: Array) -> Array:
    """``base`` plus what ``excess`` (how often over, 0 or more) is worth: base (1 + scale (1 - exp(-excess/scale)))."""
    return base * (1 - scale * np.expm1(-excess / scale))


def effective_tokens(tokens: Array, unique: Array, scale: Array) -> Array:
    """D' of ``tokens`` drawn from ``unique``; a run shorter than the corpus repeats nothing."""
    seen = np.minimum(unique, tokens)
    return effective(seen, tokens / seen - 1, scale)


@dataclass(frozen=True)
class DataConstrained(Form):
    """theta = (ln A, ln B, ln E, alpha, beta, ln R_D, ln R_N)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        a, b, e, alpha, beta, r_d, r_n = (theta[..., i, None] for i in range(7))
        n, seen = columns["N"], np.minimum(columns["U"], columns["D"])
        with np.errstate(over="ignore"):  # an absurd theta: N is then below any U_N
            fed = np.exp((np.log(alpha / beta) + a - b + beta * np.log(seen)) / alpha)
        base = np.where(fed.real < n, fed, n)
        size = effective(base, n / base - 1, np.exp(r_n))
        tokens = effective_tokens(columns["D"], columns["U"], np.exp(r_d))
        found: Array = np.log(np.exp(e) + np.exp(a) * size**-alpha + np.exp(b) * tokens**-beta)
        return found

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        n, seen = columns["N"], np.minimum(columns["U"], columns["D"])
        centre_n, centre_u = middle(n), middle(seen)

        def ratio(cells: Array) -> Array:
            """ln (A/B) that makes one unique token at the middle feed what the cell says."""
            alpha, beta, fed = cells[:, 0], cells[:, 1], cells[:, 2]
            return alpha * (np.log(fed) + centre_u) - beta * centre_u + np.log(beta / alpha)

        def basis(cells: Array) -> Array:
            alpha, beta, fed, r_d, r_n = (cells[:, i, None] for i in range(5))
            base = np.minimum(n, fed * np.exp(centre_u + (beta / alpha) * (np.log(seen) - centre_u)))
            size = np.log(effective(base, n / base - 1, r_n)) - centre_n
            tokens = np.log(effective_tokens(columns["D"], columns["U"], r_d))
            shift = ratio(cells)[:, None] - alpha * centre_n
            bracket = np.exp(-alpha * size) + np.exp(-shift - beta * tokens)
            return np.stack([bracket, np.ones_like(bracket)], axis=-1)

        axes = (_EXPONENTS, _EXPONENTS, _FED, _HALF_LIVES, _HALF_LIVES)
        found = project(axes, basis, log_y, weights)
        alpha, beta, _, r_d, r_n = found.cells.T
        a = np.log(found.linear[:, 0]) + alpha * centre_n
        e = np.log(found.linear[:, 1])
        return np.stack([a, a - ratio(found.cells), e, alpha, beta, np.log(r_d), np.log(r_n)], axis=-1)


_SEEN = "min(U, D)"
_FEEDS = f"min(count(N), (alpha*A/(beta*B))**(1/alpha)*count({_SEEN})**(beta/alpha))"
_SIZE = f"({_FEEDS}*(1 + R_N*(1 - exp(-(count(N)/{_FEEDS} - 1)/R_N))))"
_TOKENS = f"({_SEEN}*(1 + R_D*(1 - exp(-(D/{_SEEN} - 1)/R_D))))"

FORM = DataConstrained(
    slug="data-constrained",
    title="Data-constrained",
    kind="data_constrained",
    inputs=("N", "D", "U"),
    parameters=(
        *PARAMETERS,
        Parameter("R_D", True, 1e-2, 1e6, "repeats after which tokens are worth little"),
        Parameter("R_N", True, 1e-2, 1e6, "excess of size after which parameters are worth little"),
    ),
    formula=f"E + A/{_SIZE}**alpha + B/{_TOKENS}**beta",
    text="L = E + A/N'^alpha + B/D'^beta, D' = U (1 + R_D (1 - exp(-(D/U - 1)/R_D))), N' alike over U_N with R_N",
    valid="Repeats of one corpus in whole epochs, up to where repetition raises the loss: the form never lets it.",
    source=Source("Scaling Data-Constrained Language Models (arXiv 2305.16264)", "section 5 and appendix A"),
    ambiguous="The published R_D and R_N are a local minimum of their own objective: a lower one lies at R_D 95.4, "
    "R_N 1.71, and R_D is open above. Runs in which repetition raised the loss had been left out.",
)
