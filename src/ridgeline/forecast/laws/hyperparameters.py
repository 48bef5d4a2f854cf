"""Learning rate and batch as power laws of the size, the tokens and the compute: y = coefficient * N^a * D^b * C^c.

The published laws disagree, by factors of several at a flagship's scale, and even on the sign of the tokens'
exponent. `advise` puts them side by side with their spread; `near_best` picks the runs of a sweep that such a law is
fitted to. A rate law holds for one optimizer, schedule, batch rule and parametrization.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic.inputs import require_positive
from ridgeline.arithmetic.napkin import training_compute
from ridgeline.core import catalog
from ridgeline.core.errors import InputError
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, Source, derive
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.points import Points

UNITS: Mapping[str, str] = {"lr": "1", "batch": "token"}
_EXPONENTS: Mapping[str, tuple[str, str]] = {"N": ("params", "N"), "D": ("tokens", "D"), "C": ("compute", "C")}


@dataclass(frozen=True)
class PowerLaw(Form):
    """ln y = ln coefficient + sum of exponents times ln of the inputs: theta = (ln coefficient, exponents...)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln of the rate or batch, shape (..., n)."""
        value = theta[..., 0, None]
        for i, name in enumerate(self.inputs):
            value = value + theta[..., i + 1, None] * np.log(columns[name])
        return np.asarray(value)

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """The solution, shape (1, P): the law is linear in its logarithms."""
        root = np.sqrt(weights)
        design = np.column_stack([np.ones_like(log_y), *(np.log(columns[name]) for name in self.inputs)])
        theta: Array = np.linalg.lstsq(design * root[:, None], log_y * root, rcond=None)[0]
        return theta[None, :]


def _form(slug: str, title: str, predicts: str, inputs: tuple[str, ...], source: Source, ambiguous: str) -> PowerLaw:
    symbols = [_EXPONENTS[name][0] for name in inputs]
    terms = "".join(f"*{name}**{symbol}" for name, symbol in zip(inputs, symbols, strict=True))
    what = "learning rate" if predicts == "lr" else "batch"
    return PowerLaw(
        slug=slug,
        title=title,
        kind="hyperparameter",
        inputs=inputs,
        parameters=(
            Parameter("coefficient", True, 0.0, np.inf, f"the {what} where the inputs are 1"),
            *(
                Parameter(symbol, False, -3.0, 3.0, f"exponent of {name}")
                for symbol, name in zip(symbols, inputs, strict=True)
            ),
        ),
        formula=f"coefficient{terms}",
        text=f"best {what} = coefficient" + terms.replace("**", "^"),
        valid="The optimizer, schedule, parametrization and data of the sweep, whose grid brackets the best runs.",
        source=source,
        ambiguous=ambiguous,
        predicts=predicts,
        fixed={symbol: 0.0 for symbol, _ in _EXPONENTS.values() if symbol not in symbols},
    )


_STEP = Source("Predictable Scale: Part I, Step Law (arXiv 2503.04715)", "the abstract's law; the authors' fits")
_DEEPSEEK = Source("DeepSeek LLM (arXiv 2401.02954)", "scaling laws for hyperparameters")
_SKALING = Source("Skaling (arXiv 2608.07222)", "the hyperparameters of its grid of runs")
_STEP_AMBIGUOUS = (
    "The released sweep does not give the published constants. Medians of the authors' 1,000 bootstrap fits do "
    "(lr 1.782 N^-0.7122 D^0.307, batch 0.573 D^0.5713); their script on the released table, the runs within 0.25% "
    "of the best of their (N, D), gives lr 78 N^-0.766 D^0.197, and the best runs alone lr 30 N^-0.82 D^0.29 with "
    "batch 3.4 D^0.50."
)
_C_AMBIGUOUS = "C counts non-embedding training FLOP with attention (72 L d^2 + 12 L d S a token), not 6ND."
_F_AMBIGUOUS = (
    "The law is in F and D, and F was not defined where it was read. It is taken as training FLOP per token, C/D: "
    "read as total compute it would put the rate of a 1e9 model near 1e-7."
)

STEP_LAW_LR = _form("step-law-lr", "Step Law, learning rate", "lr", ("N", "D"), _STEP, _STEP_AMBIGUOUS)
STEP_LAW_BATCH = _form("step-law-batch", "Step Law, batch", "batch", ("D",), _STEP, _STEP_AMBIGUOUS)
DEEPSEEK_LR = _form("deepseek-lr", "DeepSeek, learning rate", "lr", ("C",), _DEEPSEEK, _C_AMBIGUOUS)
DEEPSEEK_BATCH = _form("deepseek-batch", "DeepSeek, batch", "batch", ("C",), _DEEPSEEK, _C_AMBIGUOUS)
SKALING_LR = _form("skaling-lr", "Skaling grid, learning rate", "lr", ("D", "C"), _SKALING, _F_AMBIGUOUS)
SKALING_BATCH = _form("skaling-batch", "Skaling grid, batch", "batch", ("D", "C"), _SKALING, _F_AMBIGUOUS)


@dataclass(frozen=True)
class Advice:
    """The learning rate and the batch (tokens) of every published law at one (N, D), by slug.

    ``lr_spread`` and ``batch_spread`` are the largest over the smallest. ``outside`` names the laws whose fitted
    range does not hold the point, with the range; ``unread`` those whose range is not known.
    """

    lr: Mapping[str, Quantity]
    batch: Mapping[str, Quantity]
    lr_spread: Quantity
    batch_spread: Quantity
    outside: Mapping[str, str]
    unread: tuple[str, ...]


def advise(params: Quantity, tokens: Quantity) -> Advice:
    """What each published law sets for N parameters on D tokens, with C = 6ND. Raises `InputError` unless positive."""
    require_positive(params, tokens)
    compute = training_compute(params, tokens)
    laws = [law for law in map(catalog.law, catalog.laws()) if law.kind == "hyperparameter"]
    found = {law.slug: _evaluate(law, params, tokens, compute) for law in laws}
    lr = {law.slug: found[law.slug] for law in laws if law.predicts == "lr"}
    batch = {law.slug: found[law.slug] for law in laws if law.predicts == "batch"}
    outside = {law.slug: why for law in laws if (why := _outside(law, params, tokens, compute))}
    unread = tuple(law.slug for law in laws if not law.fitted)
    return Advice(lr, batch, _spread("lr", lr), _spread("batch", batch), outside, unread)


def near_best(points: Points, within: float = 0.0025) -> Points:
    """The runs whose loss is within that share of the best at their N and D: what the rate and batch are fitted to.

    The share 0.0025 is Step Law's. 0 keeps the best run of each (N, D) alone. Raises `InputError` for a negative one.
    """
    if not within >= 0:
        raise InputError.expected("a share of the loss of 0 or more", within, where="within")
    loss = points["loss"]
    _, cell = np.unique(np.column_stack([points["N"], points["D"]]), axis=0, return_inverse=True)
    best = np.full(cell.max(initial=0) + 1, np.inf)
    np.minimum.at(best, cell.ravel(), loss)
    return points.take(loss <= best[cell.ravel()] * (1 + within))


def _evaluate(law: Law, params: Quantity, tokens: Quantity, compute: Quantity) -> Quantity:
    inputs, terms = {"coefficient": law.constants["coefficient"]}, ["coefficient"]
    for (symbol, name), quantity in zip(_EXPONENTS.values(), (params, tokens, compute), strict=True):
        if law.constants[symbol].value != 0:
            inputs |= {name: quantity, symbol: law.constants[symbol]}
            terms.append(f"count({name})**{symbol}")
    found = derive(f"advice.{law.slug.replace('-', '_')}", "*".join(terms), UNITS[law.predicts], **inputs)
    return found.titled("Learning rate" if law.predicts == "lr" else "Batch", law.name)


def _spread(what: str, found: Mapping[str, Quantity]) -> Quantity:
    symbols = {slug.replace("-", "_"): quantity for slug, quantity in found.items()}
    names = ", ".join(symbols)
    spread = derive(f"advice.{what}_spread", f"max({names})/min({names})", "1", **symbols)
    return spread.titled("Largest over smallest of the laws")


def _outside(law: Law, params: Quantity, tokens: Quantity, compute: Quantity) -> str:
    """The inputs that lie outside the runs behind a law, in words; empty where none does."""
    asked = {"params": params, "tokens": tokens, "compute": compute}
    found = []
    for key, (low, high) in law.fitted.items():
        value = np.asarray(asked[key].base)
        if np.any((value < low.base) | (value > high.base)):
            found.append(f"{key} {low.base:.3g} to {high.base:.3g}")
    return ", ".join(found)
