"""Vocabulary: L_u = -E + A1/N_nv^alpha1 + A2/N_v^alpha2 + B/D^beta, Tao et al. 2024.

L_u is the loss less the loss of a unigram model over the same vocabulary, in nats: losses of different vocabularies
compare only so. It is negative, so the form predicts ``ratio`` = exp(L_u), the perplexity as a share of the unigram
model's, and the residuals of its logarithm are those of L_u itself.

N_nv are the parameters outside the vocabulary and N_v those of one embedding, V*d; both count in millions, and D in
billions, as in the authors' fit.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project_log, spread
from ridgeline.forecast.form import Array, Columns, Form, Parameter

_MILLION = 1e6
_UNIT = {"N_nv": _MILLION, "N_v": _MILLION, "D": 1e3 * _MILLION}  # what a column counts in
_EXPONENTS = (np.geomspace(0.1, 1.2, 9), np.geomspace(0.05, 1.5, 9), np.geomspace(0.1, 1.2, 9))


@dataclass(frozen=True)
class Vocabulary(Form):
    """theta = (ln A1, ln A2, ln B, ln E, alpha1, alpha2, beta)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """L_u in nats, shape (..., n)."""
        terms, _ = self._terms(theta, columns)
        return np.asarray(np.sum(terms, axis=-2) - np.exp(theta[..., 3, None]))

    def gradient(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """L_u and its derivatives in closed form: (..., n) and (..., n, 7)."""
        terms, logs = self._terms(theta, columns)
        gained = np.exp(theta[..., 3, None])
        slopes = np.concatenate([terms, np.broadcast_to(-gained[..., None], (*terms.shape[:-2], 1, len(logs.T)))], -2)
        slopes = np.concatenate([slopes, -logs * terms], axis=-2)
        return np.sum(terms, axis=-2) - gained, np.swapaxes(slopes, -1, -2)

    def curvature(self, theta: Array, columns: Columns, weights: Array) -> Array:
        """The weighted sum of second derivatives in closed form: (..., 7, 7)."""
        terms, logs = self._terms(theta, columns)
        found = np.zeros((*theta.shape, theta.shape[-1]))
        found[..., 3, 3] = -np.exp(theta[..., 3]) * np.sum(weights, axis=-1)
        for i in range(3):
            weighed = weights * terms[..., i, :]
            found[..., i, i] = np.sum(weighed, axis=-1)
            found[..., i, 4 + i] = found[..., 4 + i, i] = -(weighed @ logs[i])
            found[..., 4 + i, 4 + i] = weighed @ logs[i] ** 2
        return found

    def _terms(self, theta: Array, columns: Columns) -> tuple[Array, Array]:
        """The three falling terms, shape (..., 3, n), and the logarithms of their columns, (3, n)."""
        logs = np.stack([np.log(columns[name] / _UNIT[name]) for name in self.inputs])
        return np.exp(theta[..., :3, None] - theta[..., 4:, None] * logs), logs

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """The exponents from a grid, the rest by linear least squares: shape (S, 7)."""

        def basis(cells: Array) -> Array:
            terms = [spread(cells[:, i], columns[name]) for i, name in enumerate(self.inputs)]
            return np.stack([*terms, -np.ones_like(terms[0])], axis=-1)

        found = project_log(_EXPONENTS, basis, log_y, weights)
        low = 0.01 * np.ptp(log_y) + 1e-6  # a term that came out negative starts small: it can still grow
        linear = np.log(np.maximum(found.linear, low))
        for i, name in enumerate(self.inputs):
            linear[:, i] += found.cells[:, i] * (middle(columns[name]) - np.log(_UNIT[name]))
        return np.column_stack([linear, found.cells])


def tokens(characters: Array, vocabulary: Array) -> Array:
    """D of the published constants, from characters and vocabulary entries: characters*(c0 + c1 ln v + c2 (ln v)^2).

    The paper's curve of tokens per character takes v = V. The authors' fit puts in V/1000, and its constants hold for
    that alone: with v = V they are off by 0.6 nats on the data that they were fitted to. So v = V/1000 here, and D is
    a measure of data, about 3 times the tokens, not a count of them. Raises `InputError` for V below 1.
    """
    if np.any(~(vocabulary >= 1)):
        raise InputError.expected("vocabularies of 1 or more", float(np.min(vocabulary)), where="the column V")
    c = law("tao-vocabulary").constants
    v = np.log(vocabulary / 1e3)
    return np.asarray(characters * (c["c0"].value + c["c1"].value * v + c["c2"].value * v * v), float)


FORM = Vocabulary(
    slug="vocabulary",
    title="Vocabulary",
    kind="vocabulary",
    inputs=("N_nv", "N_v", "D"),
    parameters=(
        Parameter("A1", True, 1e-6, 1e6, "coefficient of the other parameters, in millions"),
        Parameter("A2", True, 1e-6, 1e6, "coefficient of the vocabulary's parameters, in millions"),
        Parameter("B", True, 1e-6, 1e6, "data coefficient, in billions"),
        Parameter("E", True, 1e-3, 1e3, "the most that training gains over the unigram model", "nat"),
        Parameter("alpha1", False, 0.05, 3.0, "exponent of the other parameters"),
        Parameter("alpha2", False, 0.05, 3.0, "exponent of the vocabulary's parameters"),
        Parameter("beta", False, 0.05, 3.0, "data exponent"),
    ),
    formula="exp(-E + A1/(N_nv/1e6)**alpha1 + A2/(N_v/1e6)**alpha2 + B/(D/1e9)**beta)",
    text="L_u = -E + A1/N_nv^alpha1 + A2/N_v^alpha2 + B/D^beta, in 1e6 parameters and 1e9 tokens",
    valid="One corpus and tokenizer family, vocabularies of 4,096 to 96,256; losses relative to the unigram model's.",
    source=Source("Scaling Laws with Vocabulary (arXiv 2407.13623)", "approach 3: parametric fit of the loss"),
    ambiguous=(
        "The paper ties alpha1 = beta. Its data term is written in characters; its constants hold in millions and "
        "billions, for tokens counted with the vocabulary in thousands (see `tokens`). alpha2 is not identified by "
        "vocabularies of 4,096 to 64,512: it falls to its lower bound while A2 and E grow together."
    ),
    predicts="ratio",
)
