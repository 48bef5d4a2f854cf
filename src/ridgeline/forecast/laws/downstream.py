"""From loss to task accuracy: the second stage of a forecast of a benchmark.

    sigmoid       accuracy = floor + gain/(1 + exp(steepness*(L - midpoint)))     (Bhagia et al. 2024)
    exponential   error    = epsilon - k*exp(-gamma*L)                            (Gadre et al. 2024)

L is the loss of the task's own correct answers (nats, or bits per byte) for the sigmoid, and that of a validation set
for the exponential, which was made for an average over tasks.
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import project
from ridgeline.forecast.form import Array, Columns, Form, Parameter

_LEAST = 1e-6  # an accuracy or error that a trial of the fit would take below this
VALID = (
    "Tasks whose accuracy has left chance in the runs fitted to, between their losses; one way of prompting and "
    "scoring. Only 39% of tasks follow such a curve at all (Lourie et al. 2025): emergence, inverse scaling and noise "
    "are the rest. A curve that has not bent yet does not tell where it will flatten."
)


def _log(value: Array) -> Array:
    """ln of a prediction that a trial may take to zero or below; complex values too."""
    return np.asarray(np.log(np.where(np.real(value) > _LEAST, value, _LEAST)))


@dataclass(frozen=True)
class Sigmoid(Form):
    """theta = (floor, gain, ln steepness, midpoint)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln of the accuracy, shape (..., n)."""
        floor, gain, steepness, midpoint = (theta[..., i, None] for i in range(4))
        return _log(floor + gain * _logistic(np.exp(steepness) * (columns["loss"] - midpoint)))

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """Steepness and midpoint from a grid, floor and gain by linear least squares: shape (S, 4)."""
        loss = columns["loss"]
        span = float(np.ptp(loss)) or 1.0
        axes = (np.log(np.geomspace(1.0, 40.0, 12) / span), np.linspace(loss.min() - span, loss.max() + span, 25))

        def basis(cells: Array) -> Array:
            falling = _logistic(np.exp(cells[:, :1]) * (loss - cells[:, 1:]))
            return np.stack([np.ones_like(falling), np.maximum(falling, _LEAST)], axis=-1)

        found = project(axes, basis, log_y, weights)
        return np.column_stack([found.linear, found.cells])


@dataclass(frozen=True)
class Exponential(Form):
    """theta = (epsilon, ln k, ln gamma)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """ln of the error, shape (..., n)."""
        epsilon, k, gamma = (theta[..., i, None] for i in range(3))
        return _log(epsilon - np.exp(k - np.exp(gamma) * columns["loss"]))

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """gamma from a grid, the rest by linear least squares: shape (S, 3)."""
        loss = columns["loss"]
        best = float(loss.min())
        axis = np.log(np.geomspace(0.05, 20.0, 60) / (float(np.ptp(loss)) or 1.0))

        def basis(cells: Array) -> Array:
            near = np.exp(-np.exp(cells) * (loss - best))
            return np.stack([1 - near + _LEAST, near], axis=-1)

        found = project((axis,), basis, log_y, weights)
        gamma, (epsilon, lowest) = found.cells[:, 0], found.linear.T
        drop = np.maximum(epsilon - lowest, _LEAST)
        return np.column_stack([epsilon, np.log(drop) + np.exp(gamma) * best, gamma])


def _logistic(x: Array) -> Array:
    """1/(1 + exp(x)), also for a complex ``x`` that a complex step makes."""
    turned = np.exp(np.where(np.real(x) > 0, -x, x))
    return np.asarray(np.where(np.real(x) > 0, turned, 1.0) / (1 + turned))


SIGMOID = Sigmoid(
    slug="downstream-sigmoid",
    title="Accuracy, sigmoid in the task's loss",
    kind="downstream",
    inputs=("loss",),
    parameters=(
        Parameter("floor", False, 0.0, 1.0, "accuracy at a high loss: chance"),
        Parameter("gain", False, 0.0, 1.0, "from the floor to the ceiling"),
        Parameter("steepness", True, 1e-3, 1e3, "per unit of loss", "1/nat"),
        Parameter("midpoint", False, -20.0, 20.0, "loss at half the gain", "nat"),
    ),
    formula="floor + gain/(1 + exp(steepness*(loss - midpoint)))",
    text="accuracy = floor + gain/(1 + exp(steepness (L - midpoint)))",
    valid=VALID,
    source=Source("Establishing Task Scaling Laws via Compute-Efficient Model Ladders (arXiv 2412.04403)", "step 2"),
    ambiguous="No constants are stored: they belong to one task, and to how it was prompted and scored.",
    predicts="accuracy",
)

EXPONENTIAL = Exponential(
    slug="downstream-exponential",
    title="Error, exponential in the validation loss",
    kind="downstream_exponential",
    inputs=("loss",),
    parameters=(
        Parameter("epsilon", False, 0.0, 1.0, "error at a high loss: chance"),
        Parameter("k", True, 0.0, np.inf, "coefficient"),
        Parameter("gamma", True, 1e-3, 1e3, "per unit of loss", "1/nat"),
    ),
    formula="epsilon - k*exp(-gamma*loss)",
    text="error = epsilon - k exp(-gamma L)",
    valid=VALID + " The error falls without a floor: below the losses fitted to it turns negative.",
    source=Source(
        "Language models scale reliably with over-training (arXiv 2403.08540)", "error as a function of loss"
    ),
    ambiguous="The constants of the study are not stored: they were not read.",
    predicts="error",
)
