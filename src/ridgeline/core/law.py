"""A published scaling law, read from its TOML file. The catalog finds the file: see `ridgeline.core.catalog`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgeline.core import figures
from ridgeline.core.errors import InputError
from ridgeline.core.figures import Context, Disagreement
from ridgeline.core.quantity import Quantity, Source

CONSTANTS = {
    "parametric": {"E", "A", "alpha", "B", "beta"},
    "coupled": {"E", "A", "alpha", "B", "beta", "gamma"},
    "data_constrained": {"E", "A", "alpha", "B", "beta", "R_D", "R_N"},
    "power": {"a", "b"},
    "exponents": {"params", "tokens"},
    "ratio": {"ratio"},
    "kaplan": {"alpha_N", "alpha_D", "N_c", "D_c"},
    "farseer": {"h1", "s1", "alpha", "h2", "s2", "beta", "h3", "s3", "gamma"},
    "overtraining": {"E", "a", "b", "eta"},
    "routed": {"a", "b", "c", "d", "E_start", "E_max"},
    "precision": {
        *("A", "alpha", "B", "beta", "E", "g_w", "n_w", "g_a", "n_a", "g_kv", "n_kv"),
        *("C_T", "gamma_D", "gamma_N", "g_post"),
    },
    "distillation": {"A", "B", "alpha", "beta", "gamma", "c0", "c1", "f1", "d1"},
    "multi_power": {"L0", "A", "alpha", "B", "C", "beta", "gamma"},
    "hyperparameter": {"coefficient", "params", "tokens", "compute"},
    "vocabulary": {"E", "A1", "alpha1", "A2", "alpha2", "B", "beta"},
    "downstream": {"floor", "gain", "steepness", "midpoint"},
    "downstream_exponential": {"epsilon", "k", "gamma"},
    "moe_joint": {"a", "alpha", "delta", "gamma", "b", "beta", "omega", "zeta", "E_start", "E_max", "c"},
    "moe_fine_grained": {"a", "alpha", "b", "beta", "g", "gamma", "c"},
    "moe_sparsity": {"a", "b", "c", "d", "e", "alpha", "beta", "lam", "delta", "gamma"},
}
_KEYS = {"name", "kind", "predicts", "aliases", "params", "note", "source", "constants", "fitted"}
_FITTED_UNITS = {"params": "param", "tokens": "token", "compute": "FLOP"}


@dataclass(frozen=True)
class Law:
    """A published scaling law. N is in parameters (counted as ``params`` says), D in tokens, C = 6ND in FLOP.

    ``kind`` says how the constants are used: ``parametric`` L = E + A/N^alpha + B/D^beta; ``coupled``
    L = E + (A/N^alpha + B/D^beta)^gamma; ``power`` a*C^b gives what ``predicts`` names; ``exponents`` only how
    the optimum moves with C; ``ratio`` D = ratio*N; every other kind is that of a form of ``forecast/laws``, whose
    formula it has.
    ``fitted`` holds the range of the runs behind it, where that was read.
    """

    name: str
    slug: str
    kind: str
    predicts: str
    aliases: tuple[str, ...]
    params: str
    constants: Mapping[str, Quantity]
    fitted: Mapping[str, tuple[Quantity, Quantity]]
    source: Source
    note: str
    disagreements: tuple[Disagreement, ...]


def parse(data: Mapping[str, Any], slug: str) -> Law:
    """The law of a TOML document. Raises `InputError` with the place, such as ``$.constants``."""
    figures.only(data, _KEYS, "$")
    kind = data.get("kind")
    if kind not in CONSTANTS:
        raise InputError.expected("one of " + ", ".join(CONSTANTS), kind, where="$.kind")
    source = figures.source(figures.table(data.get("source"), "$.source"), "$.source")
    entries = figures.table(data.get("constants"), "$.constants")
    missing = sorted(CONSTANTS[kind] - set(entries))
    if missing:
        raise InputError.expected(f"the constant {missing[0]} of a {kind} law", sorted(entries), where="$.constants")
    context = Context({}, source, "published", positive=False)
    found, others = dict[str, Quantity](), list[Disagreement]()
    for symbol, item in entries.items():
        unit = {"ratio": "token/param", "E": "nat"}.get(symbol, "1")
        found[symbol], rest = figures.figure(
            item, f"law.{slug}.{symbol.lower()}", unit, f"$.constants.{symbol}", context
        )
        others += rest
    return Law(
        name=figures.text(data.get("name"), "$.name"),
        slug=slug,
        kind=kind,
        predicts=_predicts(data, kind),
        aliases=figures.texts(data.get("aliases", []), "$.aliases"),
        params=figures.text(data.get("params"), "$.params"),
        constants=found,
        fitted=_fitted(data, slug, source),
        source=source,
        note=str(data.get("note", "")),
        disagreements=tuple(others),
    )


def _predicts(data: Mapping[str, Any], kind: str) -> str:
    value = data.get("predicts", "")
    if kind == "power" and value not in ("params", "tokens"):
        raise InputError.expected("params or tokens", value, where="$.predicts")
    if kind == "hyperparameter" and value not in ("lr", "batch"):
        raise InputError.expected("lr or batch", value, where="$.predicts")
    return str(value)


def _fitted(data: Mapping[str, Any], slug: str, source: Source) -> dict[str, tuple[Quantity, Quantity]]:
    entries = figures.table(data.get("fitted", {}), "$.fitted")
    figures.only(entries, set(_FITTED_UNITS), "$.fitted")
    found = {}
    for key, pair in entries.items():
        place = f"$.fitted.{key}"
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError.expected("a low and a high end", pair, where=place)
        context = Context({}, source, "published")
        low, high = (
            figures.figure(value, f"law.{slug}.fitted.{key}.{end}", _FITTED_UNITS[key], place, context)[0]
            for value, end in zip(pair, ("low", "high"), strict=True)
        )
        if low.value > high.value:
            raise InputError.expected("the low end first", pair, where=place)
        found[key] = (low, high)
    return found
