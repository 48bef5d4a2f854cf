"""A fit as quantities: the constants as measured leaves, and what follows from them through the law's own formula."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ridgeline.arithmetic import laws
from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.forecast.fitting.fit import Fit
from ridgeline.forecast.fitting.optimum import optimum
from ridgeline.forecast.points import Points

ON_FRONTIER = ("parametric", "coupled")  # kinds whose optimum `ridgeline.arithmetic.laws` derives


def short(points: Points) -> str:
    """The ladder's file and its folder: enough to tell two ladders apart in a title."""
    return "/".join(Path(points.path).parts[-2:])


def source_of(fit: Fit) -> Source:
    """Which runs were fitted, by what."""
    path = fit.points.source.path if fit.points.source else "the ladder"
    return Source(f"{fit.form.title} fitted to {path}", f"{len(fit.points)} runs, objective {fit.objective.name}")


def constants(fit: Fit, prefix: str, notes: dict[str, str] | None = None) -> dict[str, Quantity]:
    """``<prefix>.<symbol>`` of every constant; ``notes`` by symbol, such as an interval."""
    source, said = source_of(fit), notes or {}
    found = {}
    for item in fit.form.parameters:
        known = leaf(f"{prefix}.{item.symbol}", fit.constants[item.symbol], item.unit, "measured", source)
        found[item.symbol] = known.titled(f"{item.meaning[:1].upper()}{item.meaning[1:]}", said.get(item.symbol, ""))
    for symbol, value in fit.form.fixed.items():
        held = Source(fit.form.title, "held at this value, not fitted")
        found[symbol] = leaf(f"{prefix}.{symbol}", float(value), "1", "specified", held)
    return found


def frontier(fit: Fit, known: dict[str, Quantity], compute: Quantity, prefix: str) -> dict[str, Quantity]:
    """``<prefix>.params``, ``.tokens`` and ``.loss`` of the compute-optimal run, by name without the prefix.

    The optimum is derived where the law has a closed form, else searched along C = 6ND.
    """
    if fit.form.kind in ON_FRONTIER:
        law = replace(fit.law("fit"), constants=known)
        best = laws.optimum(law, compute, prefix)
        assert best.loss is not None
        return {"params": best.params, "tokens": best.tokens, "loss": best.loss}
    n, _ = optimum(fit, np.array([float(compute.base)]))
    searched = Source("search", f"lowest loss of {fit.form.title} along C = 6ND")
    params = leaf(f"{prefix}.params", float(np.ravel(n)[0]), "param", "measured", searched)
    tokens = derive(f"{prefix}.tokens", "C/(6*N)", "token", C=compute, N=params)
    return {
        "params": params.titled("Compute-optimal parameters", fit.form.title),
        "tokens": tokens.titled("Compute-optimal tokens", fit.form.title),
        "loss": loss(fit, known, {"N": params, "D": tokens, "C": compute}, f"{prefix}.loss"),
    }


def loss(fit: Fit, known: dict[str, Quantity], at: dict[str, Quantity], name: str) -> Quantity:
    """The law's loss at given columns: derived by its formula, or a leaf where no expression can say it."""
    if fit.form.formula:
        inputs = {symbol: at[symbol] for symbol in fit.form.inputs}
        return derive(name, fit.form.formula, "nat", **inputs, **known).titled("Predicted loss", fit.form.title)
    columns = {symbol: np.array([float(item.base)]) for symbol, item in at.items()}
    value = float(fit.predict(columns)[0])
    return leaf(name, value, "nat", "measured", source_of(fit), fit.form.text).titled("Predicted loss", fit.form.title)
