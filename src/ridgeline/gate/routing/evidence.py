"""Scores of the weak and of the strong model on the same examples, the router's signal, and what either costs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.format import count
from ridgeline.gate.evidence.pairing import Pairs, pair
from ridgeline.gate.evidence.reader import Wanted, read
from ridgeline.gate.evidence.samples import Floats, Mask, Samples, Texts
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.routing.router import KINDS, Kind

OWN = ("router", "cost", "threshold", "chosen_on", "seed")  # keys of the plan's columns that are no columns
SIGNALS = ("confidence", "difficulty")
COST = "cost"


@dataclass(frozen=True)
class Setting:
    """What the plan's columns say of the router. ``costs`` are numbers or columns, None without.

    ``threshold`` was chosen on the file ``chosen_on``; None: it is chosen on one half of these examples.
    """

    kind: Kind
    costs: tuple[str, str] | None = None
    threshold: float | None = None
    chosen_on: str = ""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Routed:
    """Pairs of strong (baseline) and weak (candidate) with the metric that both are judged by, turned upwards."""

    pairs: Pairs
    metric: str
    weak: Floats
    strong: Floats
    kept: Mask
    setting: Setting
    signal: Floats | None
    costs: tuple[Floats, Floats] | None

    @property
    def keys(self) -> Texts:
        """The ids of the rows that are judged or chosen on."""
        return self.pairs.baseline.keys[self.kept]


def setting(plan: Plan) -> Setting:
    """The router's setting. Raises `InputError` for an unknown kind, a cost or a threshold that is none."""
    said = plan.columns
    kind = said.get("router", "") or next((name for name in SIGNALS if name in said), "slice")
    if kind not in KINDS:
        raise InputError.expected("a router", kind, where="--router", hint=did_you_mean(kind, KINDS, ", ".join(KINDS)))
    threshold = _number(said["threshold"], "the threshold") if "threshold" in said else None
    if threshold is not None and not said.get("chosen_on"):
        hint = "--column chosen_on=FILE names it; without a threshold one half of the examples chooses it"
        raise InputError.expected("the file that the threshold was chosen on", "none", where="chosen_on", hint=hint)
    seed = said.get("seed", "0")
    if not seed.isdecimal():
        raise InputError.expected("a seed", seed, where="--column seed")
    found: Kind = next(item for item in KINDS if item == kind)
    return Setting(found, _costs(said.get("cost", "")), threshold, said.get("chosen_on", ""), int(seed))


def _number(text: str, where: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not np.isfinite(found):
        raise InputError.expected("a number", text, where=where)
    return found


def _costs(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    weak, colon, strong = text.partition(":")
    if not (weak and colon and strong):
        hint = "such as --cost 0.24:10, or two columns"
        raise InputError.expected("a cost of the weak and of the strong model", text, where="--cost", hint=hint)
    return weak, strong


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def routed(weak: str, strong: str, plan: Plan) -> Routed:
    """Both models' results, paired by content. Raises `InputError` as reading and pairing do.

    A path may name one column: ``F.csv#COLUMN``.
    """
    how = setting(plan)
    costs = how.costs or ("", "")
    signal = how.kind if how.kind in SIGNALS else ""
    strong_run = _run(strong, plan, costs[1], "")
    weak_run = _run(weak, plan, costs[0], signal)
    whole = pair(strong_run, weak_run)
    metric = _metric(whole, plan)
    base, cand, kept = whole.scores(metric, plan.on_error)
    own = pair(_only(strong_run, metric), _only(weak_run, metric))  # a signal that both hold says nothing of a cache
    signals = _column(whole.candidate, signal, kept) if signal else None
    return Routed(own, metric, cand, base, kept, how, signals, _cost_columns(whole, kept, how.costs))


def _only(run: Samples, metric: str) -> Samples:
    return replace(run, scores={metric: run.scores[metric]})


def _run(text: str, plan: Plan, cost: str, signal: str) -> Samples:
    path, _, column = text.partition("#") if not Path(text).exists() else (text, "", "")
    roles = {name: value for name, value in plan.columns.items() if name not in (*OWN, *SIGNALS)}
    if plan.slices and plan.slices != "slice":
        roles.setdefault("slice", plan.slices)
    if plan.cluster and plan.cluster != "cluster":
        roles.setdefault("cluster", plan.cluster)
    if signal:
        roles[signal] = plan.columns.get(signal, signal)
    if cost and not _is_number(cost):
        roles[COST] = cost
    wanted: Mapping[str, str] = {**roles, "score": column} if column else roles
    metrics = ("score",) if column else plan.metrics
    found = read(path, Wanted(wanted, (*metrics, signal, COST) if metrics and signal else metrics))
    return replace(found, run=column) if column else found


def _metric(pairs: Pairs, plan: Plan) -> str:
    if plan.metrics:
        return plan.metrics[0]
    known = [name for name in pairs.metrics if name not in (*SIGNALS, COST) and not name.startswith("confidence")]
    if len(known) != 1:
        hint = "name it: PATH#COLUMN, or metrics in the registration"
        raise InputError.expected("one score in both files", ", ".join(known) or "none", where="the scores", hint=hint)
    return known[0]


def _column(run: Samples, name: str, kept: Mask) -> Floats:
    if name not in run.scores:
        known = did_you_mean(name, run.scores, "columns: " + ", ".join(run.scores))
        raise InputError.expected(f"a column {name}", "none", where=run.run, hint=known)
    found = run.scores[name][kept]
    missing = np.flatnonzero(np.isnan(found))
    if len(missing):
        got = f"none in {count(len(missing), 'row')}, first {run.keys[kept][missing[0]]!r}"
        raise InputError.expected(f"a {name} in every row", got, where=run.run)
    return found


def _cost_columns(pairs: Pairs, kept: Mask, costs: tuple[str, str] | None) -> tuple[Floats, Floats] | None:
    if costs is None:
        return None
    found = []
    for run, text in zip((pairs.candidate, pairs.baseline), costs, strict=True):
        column = np.full(int(kept.sum()), float(text)) if _is_number(text) else _column(run, COST, kept)
        if not (np.isfinite(column).all() and (column >= 0).all()):
            raise InputError.expected("costs of zero or more", text, where="--cost")
        found.append(column)
    if not found[1].sum() > 0:
        raise InputError.expected("a strong model that costs something", "zero", where="--cost")
    return found[0], found[1]


def refuse_same_data(found: Routed, plan: Plan) -> None:
    """Raises `InputError` where the threshold was chosen on a file, or on examples, that it is judged on."""
    path = found.setting.chosen_on
    if not path:
        return
    roles = {name: value for name, value in plan.columns.items() if name == "id"}
    other = read(path, Wanted(roles))
    own = (*found.pairs.baseline.inputs, *found.pairs.candidate.inputs)
    hint = "judge it on other examples, or leave the threshold out: one half chooses it, the other judges"
    if {item.sha256 for item in other.inputs} & {item.sha256 for item in own}:
        raise InputError.expected("a threshold from other data", "the same file", where=path, hint=hint)
    shared = set(other.keys.tolist()) & set(found.keys.tolist())
    if shared:
        got = f"{count(len(shared), 'example')} of these, first {min(map(str, shared))!r}"
        raise InputError.expected("a threshold from other examples", got, where=path, hint=hint)
