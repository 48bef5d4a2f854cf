"""The expected TPOT, TTFT and token rate of a deployment under a load, with intervals that were measured.

Two stages, fitted to published rows by ``scripts/fit_serving.py`` and kept in ``core/data/serving.json``. First the
terms of `load`, each times a constant and a factor by class (engine, and whether prefill is apart); then sums of small
trees on what is left of the logarithm. TTFT starts from one prompt's prefill alone, the token rate of a chip from the
batch over the expected step. Intervals are quantiles of ln(actual/predicted) over rows whose whole group (source,
device, model, engine, precision, mode) was held out, each group counting once, at the rank of n + 1 (split conformal:
Vovk et al. 2005); a model that the fit has not seen takes those of leaving its model out, which are wider.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import DATA
from ridgeline.core.errors import InputError
from ridgeline.serve.steps.load import FEATURES, TERMS, Loaded, class_of, features
from ridgeline.serve.steps.published import OFFLINE, SERVER, Row
from ridgeline.serve.steps.trees import Trees

Floats = NDArray[np.float64]
TARGETS = ("tpot", "ttft", "rate")
OPEN = ".open"  # the trees of rows whose load is a rate or as much as fits: their batch is worked out, not given
INTERVALS = (0.80, 0.95)
FILE = DATA / "serving.json"


@dataclass(frozen=True)
class Calibration:
    """What measured rows say: ``factors`` on each target, and what is left of the logarithmic width of an interval."""

    factors: Mapping[str, float]
    shrink: Mapping[str, float]
    rows: int


@dataclass(frozen=True)
class Prediction:
    """Arrays, one entry a row: ``tpot_s``, ``ttft_s``, ``rate`` (token/s/chip); ``classes`` name their residuals."""

    loads: Sequence[Loaded]
    tpot_s: Floats
    ttft_s: Floats
    rate: Floats
    shares: Floats
    classes: tuple[str, ...]
    calibration: Calibration | None = None

    def value(self, target: str) -> Floats:
        """The most likely value of a target."""
        return {"tpot": self.tpot_s, "ttft": self.ttft_s, "rate": self.rate}[target]

    def interval(self, target: str, level: float = 0.80) -> tuple[Floats, Floats]:
        """Both ends at 80% or 95%. Raises `InputError` for another level."""
        if level not in INTERVALS:
            raise InputError.expected("a level of 0.80 or 0.95", level, where="the interval")
        ends = np.array([fitted().ends(target, name, level) for name in self.classes]).reshape(-1, 2)
        if self.calibration is not None:  # its factor has taken the bias out: the width alone is left
            half = (ends[:, 1] - ends[:, 0]) / 2 * self.calibration.shrink[target]
            ends = np.column_stack([-half, half])
        value = self.value(target)
        return value * np.exp(ends[:, 0]), value * np.exp(ends[:, 1])


@dataclass(frozen=True)
class Fitted:
    """What the file holds. ``constants`` (terms) and ``factors`` by class multiply the terms; ``models`` were seen."""

    constants: Floats
    factors: Mapping[str, Floats]
    trees: Mapping[str, Trees]
    residuals: Mapping[str, Mapping[str, Mapping[str, Any]]]
    models: frozenset[str]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Fitted":
        """From the document of the file. Raises `InputError` where it was made for other terms or features."""
        if data["terms"] != list(TERMS) or data["features"] != list(FEATURES):
            raise InputError.expected("coefficients of these terms and features", "others", where=str(FILE),
                                      hint="run scripts/fit_serving.py")  # fmt: skip
        factors = {name: np.asarray(values) for name, values in data["factors"].items()}
        trees = {name: Trees.of(item) for name, item in data["trees"].items()}
        return cls(np.asarray(data["constants"]), factors, trees, data["residuals"], frozenset(data["models"]))

    def base(self, loads: Sequence[Loaded]) -> tuple[Floats, Floats]:
        """ln(seconds a token) by the terms, and the share of each."""
        ones = np.ones(len(TERMS))
        rows = [load.terms * self.constants * self.factors.get(class_of(load.row), ones) for load in loads]
        parts = np.asarray(rows).reshape(len(loads), len(TERMS))
        total = parts.sum(axis=1)
        return np.log(total), parts / total[:, None]

    def ends(self, target: str, name: str, level: float) -> tuple[float, float]:
        """Both ends of ln(actual/predicted) of a class."""
        low, high = self.residuals[target][name][f"q{level * 100:.0f}"]
        return float(low), float(high)


@lru_cache(maxsize=1)
def fitted() -> Fitted:
    """The coefficients of this release."""
    return Fitted.of(json.loads(FILE.read_text(encoding="utf-8")))


def start(target: str, loads: Sequence[Loaded], base: Floats) -> Floats:
    """The logarithm that the trees of a target correct."""
    if target == "tpot":
        return base
    if target == "ttft":
        return np.log([load.prefill_s for load in loads])
    chips = np.array([load.row.deployment.chips for load in loads])
    found: Floats = np.log([max(load.sequences, 1.0) for load in loads]) - base - np.log(chips)
    return found


def is_open(row: Row) -> bool:
    """Whether the row's batch follows from a rate or from memory."""
    return row.scenario in (SERVER, OFFLINE)


def kind_of(row: Row) -> str:
    """The part of a residual class that says how requests come."""
    return "apart" if row.pools else {"closed": "closed", "static": "static"}.get(row.scenario, "server")


def residual_class(row: Row, models: frozenset[str]) -> str:
    """The class of held-out rows that a row's intervals come from."""
    return f"{'known' if row.deployment.spec.name in models else 'unseen'}/{kind_of(row)}"


def predict(loads: Sequence[Loaded], calibration: Calibration | None = None, model: Fitted | None = None) -> Prediction:
    """The expected times of all rows."""
    chosen = model or fitted()
    base, shares = chosen.base(loads)
    rows = features(loads, base, shares)
    free = np.array([is_open(load.row) for load in loads], dtype=bool)
    found = {}
    for name in TARGETS:
        left = np.zeros(len(loads))
        for part, here in ((name, ~free), (name + OPEN, free)):
            left[here] = chosen.trees[part](rows[here])
        found[name] = np.exp(start(name, loads, base) + left)
    if calibration is not None:
        found = {name: value * calibration.factors[name] for name, value in found.items()}
    classes = tuple(residual_class(load.row, chosen.models) for load in loads)
    return Prediction(loads, found["tpot"], found["ttft"], found["rate"], shares, classes, calibration)
