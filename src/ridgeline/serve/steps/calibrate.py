"""A user's measured rows folded into the expectation: one factor on each target, and narrower intervals.

Rows of one system miss in the same direction, so a few of them say most of what a fit over many systems cannot. The
factor is the posterior mean of the logarithm under a normal prior as wide as the published residuals of the class,
with rows of one system scattering about their common miss by a share of that width; the interval keeps the spread
that is left, as in `ridgeline plan --measured`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.errors import NotEnoughDataError
from ridgeline.serve.steps.expected import Calibration, Prediction, fitted
from ridgeline.serve.steps.published import Row

Floats = NDArray[np.float64]
KEYS = {"tpot": "tpot_ms", "ttft": "ttft_ms"}
_MS = 1e-3
_NORMAL_80 = 1.2815515655446004  # the 90th percentile of a standard normal
_WITHIN = 0.5  # rows of one system scatter by half of what systems do: grouped residuals less their group's median


@dataclass(frozen=True)
class Check:
    """Leave-one-out: absolute error of each row by the factor of the others, and without any."""

    calibrated: Floats
    before: Floats


def calibrate(found: Prediction) -> Calibration:
    """The factors of measured rows: ``found`` is their prediction. Raises `NotEnoughDataError` for none."""
    logs = {name: _miss(found, name) for name in KEYS}
    used = max(len(values) for values in logs.values())
    if not used:
        raise NotEnoughDataError("Expected at least one row with tpot_ms or ttft_ms, got none")
    factors, shrink = {"rate": 1.0}, {"rate": 1.0}
    for name, values in logs.items():
        mean, left = posterior(values, _spread(found, name))
        factors[name], shrink[name] = float(np.exp(mean)), left
    factors["rate"] = 1 / factors["tpot"]
    shrink["rate"] = shrink["tpot"]
    return Calibration(factors, shrink, used)


def leave_one_out(found: Prediction) -> Mapping[str, Check]:
    """What the factor of the other rows does to each row's error, for targets of three rows or more."""
    checks = {}
    for name in KEYS:
        values, spread = _miss(found, name), _spread(found, name)
        if len(values) >= 3:
            others = [posterior(np.delete(values, i), spread)[0] for i in range(len(values))]
            checks[name] = Check(np.abs(np.expm1(np.asarray(others) - values)), np.abs(np.expm1(-values)))
    return checks


def _miss(found: Prediction, name: str) -> Floats:
    """ln(measured/predicted) of the rows that have the figure."""
    rows: Sequence[Row] = [load.row for load in found.loads]
    key = KEYS[name]
    pairs = zip(rows, found.value(name), strict=True)
    return np.array([np.log(row.truth[key] * _MS / value) for row, value in pairs if key in row.truth])


def _spread(found: Prediction, name: str) -> float:
    """The standard deviation of the class's residuals, from the width of their 80% interval."""
    ends = np.array([fitted().ends(name, cls, 0.80) for cls in found.classes]).reshape(-1, 2)
    return float(np.mean(ends[:, 1] - ends[:, 0])) / 2 / _NORMAL_80


def posterior(values: Floats, spread: float) -> tuple[float, float]:
    """The mean of the common miss, and what is left of the width: uncertainty of the mean and scatter of one row."""
    between, within = spread**2 * (1 - _WITHIN**2), (spread * _WITHIN) ** 2
    count = len(values)
    if not count:
        return 0.0, 1.0
    pull = count * between / (count * between + within)
    variance = between * (1 - pull) + within
    seen = float(np.var(values, ddof=1)) if count > 2 else within
    variance += (seen - within) * (count - 1) / (count + 9)  # ten rows outweigh the published scatter by half
    return float(np.median(values)) * pull, float(np.sqrt(max(variance, 1e-6)) / spread)
