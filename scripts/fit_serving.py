"""Fit TPOT, TTFT and token rates to published serving rows, and write ``core/data/serving.json``.

Run: python scripts/fit_serving.py [--no-write] with the public data sets in $RIDGELINE_DATA or ../shared/data.

Stage one: one constant a term and a factor by class, penalised least squares on ln(seconds) with a loss that grows
linearly beyond 20%. Stage two: boosted trees on what is left, with a loss that is linear beyond 10%. Errors are
those of 25 folds of whole groups (source, device, model, engine, precision, mode), and of leaving a published model
name out; nothing of a held-out group is in its fit.
"""

import argparse
import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.serve.steps import expected
from ridgeline.serve.steps.energy import Power, utilisation
from ridgeline.serve.steps.expected import INTERVALS, OPEN, TARGETS, Fitted, is_open, kind_of, start
from ridgeline.serve.steps.facts import closed_rate
from ridgeline.serve.steps.load import FEATURES, TERMS, Loaded, class_of, features, load_of
from ridgeline.serve.steps.published import Refused, Row, model_of, parse, parse_all, read_rows
from ridgeline.serve.steps.trees import Trees

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DATA = Path(os.environ.get("RIDGELINE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TABLE = DATA / "serve" / "published_serving.csv"
START = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 5.0, 1.0])  # constants where nothing is known
WIDTH, FACTOR_WIDTH = 0.5, 0.2  # of their logarithms
SIGMA = 0.1  # of ln(seconds); the loss turns linear at twice that
FOLDS = 25
KEYS = {"tpot": "tpot_ms", "ttft": "ttft_ms", "rate": "out_tok_s"}


@dataclass(frozen=True)
class Growth:
    """How trees grow: ``count`` of ``depth``, each on a share of rows and of features; the mean over ``seeds``."""

    count: int
    depth: int = 4
    rate: float = 0.06
    leaf: int = 20
    pull: float = 3.0
    bins: int = 48
    turn: float = 0.1
    rows: float = 0.7
    columns: float = 0.3
    seeds: int = 1


GROWTH = {
    "tpot": Growth(120, depth=5, seeds=2), "ttft": Growth(150), "rate": Growth(1), "tpot.open": Growth(60, leaf=10),
    "ttft.open": Growth(60, leaf=10), "rate.open": Growth(80, leaf=10),
}  # fmt: skip


def grow(rows: Floats, wanted: Floats, how: Growth) -> dict[str, Any]:
    """Boosted trees in the JSON form of `Trees`; those of all seeds stand in one list, their leaves divided."""
    edges = [_edges(column, how.bins) for column in rows.T]
    places = np.column_stack([np.searchsorted(e, c, side="left") for e, c in zip(edges, rows.T, strict=True)])
    level = float(np.median(wanted))
    trees = [tree for seed in range(how.seeds) for tree in _forest(places, edges, wanted - level, (how, seed))]
    return {
        "base": level, "unit": _UNIT / how.seeds, "edges": [e.tolist() for e in edges],
        "features": [tree.feature.tolist() for tree in trees],
        "thresholds": [tree.threshold.tolist() for tree in trees],
        "leaves": [np.round(tree.values / _UNIT).astype(int).tolist() for tree in trees],
    }  # fmt: skip


def _forest(places: Ints, edges: Sequence[Floats], wanted: Floats, how_seed: tuple[Growth, int]) -> list["_Tree"]:
    how, seed = how_seed
    rng, sums, trees = np.random.default_rng(seed), np.zeros(len(wanted)), []
    count, width = places.shape
    for _ in range(how.count):
        miss = wanted - sums
        weight = 1 / np.sqrt(1 + (miss / how.turn) ** 2)
        drawn = np.flatnonzero(rng.random(count) < how.rows)
        columns = np.sort(rng.choice(width, max(1, int(width * how.columns)), replace=False))
        tree = _Tree(places, edges, columns, how)
        leaf = tree.grow(drawn, weight * miss, weight)
        sums += tree.values[leaf]
        trees.append(tree)
    return trees


_UNIT = 1e-4


def nothing() -> dict[str, Any]:
    """Trees that change nothing, for a part without rows."""
    return {"base": 0.0, "unit": 1.0, "edges": [], "features": [[-1]], "thresholds": [[0]], "leaves": [[0, 0]]}


def _edges(column: Floats, bins: int) -> Floats:
    values = np.unique(column)
    middles: Floats = (values[1:] + values[:-1]) / 2
    if len(middles) >= bins:
        middles = np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.array([float(f"{x:.6g}") for x in middles])


class _Tree:
    """One full tree of fixed depth by histograms of the gradient."""

    def __init__(self, places: Ints, edges: Sequence[Floats], columns: Ints, how: Growth) -> None:
        self.places, self.edges, self.columns, self.how = places, edges, columns, how
        nodes = 2**how.depth - 1
        self.feature, self.threshold = np.full(nodes, -1), np.zeros(nodes, dtype=np.int64)
        self.values = np.zeros(nodes + 1)

    def grow(self, drawn: Ints, slope: Floats, curve: Floats) -> Ints:
        """The leaf of every row; leaves hold the step of Newton's method times the rate."""
        node = np.zeros(len(self.places), dtype=np.int64)
        for depth in range(self.how.depth):
            for index, (feature, place) in enumerate(self._splits(node, drawn, slope, curve, 2**depth)):
                at = 2**depth - 1 + index
                if feature >= 0:
                    self.feature[at], self.threshold[at] = feature, place
            chosen, limit = self.feature[2**depth - 1 + node], self.threshold[2**depth - 1 + node]
            values = self.places[np.arange(len(node)), np.maximum(chosen, 0)]
            node = 2 * node + ((chosen >= 0) & (values > limit))
        count = len(self.values)
        total = np.bincount(node[drawn], slope[drawn], count)
        self.values = self.how.rate * total / (np.bincount(node[drawn], curve[drawn], count) + self.how.pull)
        return node

    def _splits(self, node: Ints, drawn: Ints, slope: Floats, curve: Floats, nodes: int) -> list[tuple[int, int]]:
        how, width = self.how, len(self.columns)
        cell = node[drawn][:, None] * width + np.arange(width)
        cell = (cell * how.bins + self.places[np.ix_(drawn, self.columns)]).ravel()
        size, shape = nodes * width * how.bins, (nodes, width, how.bins)
        sums = [
            np.bincount(cell, weight if weight is None else np.repeat(weight[drawn], width), size)
            .reshape(shape)
            .cumsum(2)
            for weight in (slope, curve, None)
        ]
        (g, h, n), (gt, ht, nt) = sums, [item[:, :, -1:] for item in sums]
        gain = g**2 / (h + how.pull) + (gt - g) ** 2 / (ht - h + how.pull) - gt**2 / (ht + how.pull)
        gain[(n < how.leaf) | (nt - n < how.leaf)] = -1.0
        flat = gain.reshape(nodes, -1)
        best = flat.argmax(axis=1)
        found = []
        for index, place in enumerate(best.tolist()):
            feature, edge = int(self.columns[place // how.bins]), place % how.bins
            good = flat[index, place] > 0 and edge < len(self.edges[feature])
            found.append((feature, edge) if good else (-1, 0))
        return found


def fit_terms(loads: Sequence[Loaded], log_s: Floats, turns: int = 15) -> tuple[Floats, dict[str, Floats]]:
    """Constants and factors by class: Levenberg-Marquardt steps from where nothing is known."""
    terms = np.array([load.terms for load in loads]) + 1e-12
    names = sorted({class_of(load.row) for load in loads})
    place = np.array([names.index(class_of(load.row)) for load in loads])
    count = len(TERMS)
    begin = np.concatenate([np.log(START), np.zeros(count * len(names))])
    width = np.concatenate([np.full(count, WIDTH), np.full(count * len(names), FACTOR_WIDTH)])

    def parts(values: Floats) -> tuple[Floats, Floats]:
        factors = values[count:].reshape(len(names), count)[place]
        part = terms * np.exp(values[:count] + factors)
        return np.log(part.sum(axis=1)), part / part.sum(axis=1)[:, None]

    def loss(values: Floats) -> float:
        miss = (parts(values)[0] - log_s) / SIGMA
        return float(np.sum(4 * (np.sqrt(1 + miss**2 / 4) - 1)) + np.sum(((values - begin) / width) ** 2) / 2)

    values, damping, now = begin.copy(), 1e-2, loss(begin)
    for _ in range(turns):
        logs, share = parts(values)
        miss = (logs - log_s) / SIGMA
        jacobian = np.zeros((len(logs), len(values)))
        jacobian[:, :count] = share / SIGMA
        for index in range(len(names)):
            here = place == index
            jacobian[here, count * (index + 1) : count * (index + 2)] = share[here] / SIGMA
        weight = 1 / np.sqrt(1 + miss**2 / 4)
        slope = jacobian.T @ (weight * miss) + (values - begin) / width**2
        curve = (jacobian * weight[:, None]).T @ jacobian + np.diag(1 / width**2)
        while True:
            moved = values - np.linalg.solve(curve + damping * np.diag(np.diag(curve)), slope)
            after = loss(moved)
            if after < now or damping > 1e6:
                break
            damping *= 5
        if now - after < 1e-4 * now:
            break
        values, now, damping = moved, after, damping / 5
    factors = np.exp(values[count:]).reshape(len(names), count)
    return np.exp(values[:count]), dict(zip(names, factors, strict=True))


@dataclass(frozen=True)
class Data:
    """Loads with ln(measured) of each target (NaN where there is none), group, published model and device of each."""

    loads: Sequence[Loaded]
    logs: Mapping[str, Floats]
    group: NDArray[np.str_]
    model: NDArray[np.str_]
    device: NDArray[np.str_]

    @classmethod
    def read(cls, path: Path = TABLE) -> "tuple[Data, list[Refused]]":
        """Every row of the table that has an answer, and the refusals."""
        cells = read_rows(path)
        loads, models, refused = [], [], []
        for row, cell in zip(parse_all(cells), cells, strict=True):
            try:
                if isinstance(row, Row):
                    loads.append(load_of(row))
                    models.append(cell["model"])
                    continue
            except InputError as error:
                row = Refused(row.row_id, str(error), row.group, row.source, row.truth)
            refused.append(row)
        chips = np.array([load.row.deployment.chips * load.row.replicas for load in loads])
        scale: dict[str, Any] = {"tpot": 1e-3, "ttft": 1e-3, "rate": 1 / chips}
        logs = {
            name: np.log([load.row.truth.get(key, np.nan) for load in loads]) + np.log(scale[name])
            for name, key in KEYS.items()
        }
        logs["rate"][[load.row.scenario not in ("offline", "server") for load in loads]] = np.nan
        group = np.array([load.row.group for load in loads])
        device = np.array([load.row.deployment.device.slug for load in loads])
        return cls(loads, logs, group, np.array(models), device), refused

    def take(self, index: Ints) -> "Data":
        """Some of the rows."""
        logs = {name: value[index] for name, value in self.logs.items()}
        return Data(
            [self.loads[i] for i in index.tolist()], logs, self.group[index], self.model[index], self.device[index]
        )


def fit(data: Data) -> tuple[dict[str, Any], Fitted]:
    """The document without residuals, and the model that it describes."""
    free = np.array([is_open(load.row) for load in data.loads])
    known = np.isfinite(data.logs["tpot"]) & ~free
    seen = [load for load, has in zip(data.loads, known, strict=True) if has]
    constants, factors = fit_terms(seen, data.logs["tpot"][known])
    model = Fitted(constants, factors, {}, {}, frozenset(load.row.deployment.spec.name for load in data.loads))
    base, shares = model.base(data.loads)
    rows = features(data.loads, base, shares)
    trees = {}
    for name in TARGETS:
        left = data.logs[name] - start(name, data.loads, base)
        for part, side in ((name, ~free), (name + OPEN, free)):
            here = np.isfinite(left) & side
            trees[part] = grow(rows[here], left[here], GROWTH[part]) if here.any() else nothing()
    document = {
        "terms": list(TERMS), "features": list(FEATURES), "constants": [float(f"{x:.5g}") for x in constants],
        "factors": {name: [float(f"{x:.5g}") for x in values] for name, values in factors.items()},
        "models": sorted(model.models), "trees": trees,
    }  # fmt: skip
    return document, replace(model, trees={name: Trees.of(item) for name, item in trees.items()})


def folds(key: NDArray[np.str_], count: int = FOLDS, seed: int = 0) -> Ints:
    """The fold of every row: whole keys, drawn once."""
    names = sorted(set(key.tolist()))
    drawn = dict(zip(names, (np.random.default_rng(seed).permutation(len(names)) % count).tolist(), strict=True))
    return np.array([drawn[name] for name in key])


def held_out(data: Data, fold: Ints, say: Callable[[str], None] = print) -> dict[str, Floats]:
    """ln(predicted/measured) by target, from fits without the row's fold."""
    errors = {name: np.full(len(data.loads), np.nan) for name in TARGETS}
    for number in np.unique(fold):
        left = np.flatnonzero(fold == number)
        _, model = fit(data.take(np.flatnonzero(fold != number)))
        found = expected.predict([data.loads[i] for i in left.tolist()], model=model)
        for name in TARGETS:
            errors[name][left] = np.log(found.value(name)) - data.logs[name][left]
    return errors


def numbered(key: NDArray[np.str_]) -> Ints:
    """Each value as a fold of its own."""
    return np.unique(key, return_inverse=True)[1].astype(np.int64)


def quantiles(error: Floats, group: NDArray[np.str_]) -> dict[str, Any]:
    """Groups, and the conformal ends of ln(actual/predicted); each group weighs as the root of its rows."""
    names, at, count = np.unique(group, return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(count[at])
    order = np.argsort(-error)
    value, total = -error[order], np.cumsum(weight[order]) / weight.sum()
    spare = 1 / (len(names) + 1)
    found: dict[str, Any] = {"groups": len(names)}
    for level in INTERVALS:
        tail = max(0.0, (1 - level) / 2 * (1 - spare))
        low, high = (value[min(int(np.searchsorted(total, q)), len(value) - 1)] for q in (tail, 1 - tail))
        found[f"q{level * 100:.0f}"] = [round(float(low), 4), round(float(high), 4)]
    return found


def residuals(data: Data, known: Mapping[str, Floats], unseen: Mapping[str, Floats]) -> dict[str, Any]:
    """Quantiles by target and class; a class of fewer than five groups takes those of all rows."""
    kinds = np.array([kind_of(load.row) for load in data.loads])
    found: dict[str, Any] = {}
    for target in TARGETS:
        found[target] = {}
        for name, errors in (("known", known[target]), ("unseen", unseen[target])):
            has = np.isfinite(errors)
            for kind in ("closed", "apart", "static", "server"):
                here = has & (kinds == kind)
                if len(set(data.group[here].tolist())) < 5:
                    here = has
                found[target][f"{name}/{kind}"] = quantiles(errors[here], data.group[here])
    return found


@dataclass(frozen=True)
class Metered:
    """One metered run: ``share`` of rated power, J a token, the load and whether a whole server was metered."""

    load: Loaded
    group: str
    share: float
    joules: float
    server: bool


def replica_rate(load: Loaded, ttft_s: float, tpot_s: float) -> float:
    """Output tokens a second of a replica, as `ridgeline serve latency` works it out."""
    times = given("latency.tpot", tpot_s, "s/token"), given("latency.ttft", ttft_s, "s")
    return float(closed_rate(load, *times).base)


def metered(data: Data) -> list[Metered]:
    """Runs with a meter: servers of the power table that have a token rate, and chips with their share of rating."""
    found = []
    for load in data.loads:
        share = load.row.truth.get("power_frac_tdp")
        if share and load.row.deployment.device.power:
            rate = replica_rate(load, load.row.truth["ttft_ms"] * 1e-3, load.row.truth["tpot_ms"] * 1e-3)
            watts = share * float(load.row.deployment.device.power.base) * load.row.deployment.chips
            found.append(Metered(load, load.row.group, share, watts / rate, server=False))
    with (DATA / "serve" / "power_truth.csv").open(encoding="utf-8") as file:
        for cell in csv.DictReader(file):
            if not cell["tokens_per_s"]:
                continue
            hw = cell["accelerator"] or cell["system"].partition("x8")[0]
            row = parse({"hw": hw, "n_accel": cell["n"], "model": cell["model"], "precision": cell["dtype"],
                         "engine": "TensorRT", "mode": "agg", "scenario": f"MLPerf {cell['scenario']}",
                         "target_qps": "", "isl": "", "osl": "", "concurrency": ""} | _rate_of(cell))  # fmt: skip
            assert isinstance(row, Row), row
            rated = float(row.deployment.device.power.base) * float(cell["n"])  # type: ignore[union-attr]
            watts = float(cell["system_watts"])
            joules = watts / float(cell["tokens_per_s"])
            group = f"{cell['system']}|{cell['model'].partition('-99')[0]}"
            found.append(Metered(load_of(row), group, watts / rated, joules, server=True))
    return found


def _rate_of(cell: Mapping[str, str]) -> dict[str, str]:
    """The request rate that a server run was offered: the rate that it kept, by the benchmark's answer length."""
    if cell["scenario"] == "Offline":
        return {}
    answer = float(constant(f"serving.answer.{model_of(cell['model']).name}").base)
    return {"target_qps": str(float(cell["tokens_per_s"]) / answer)}


def fit_power(runs: Sequence[Metered], tpot_s: Floats) -> Power:
    """Least squares of the share of rated power, in logarithms, over a grid of the host's share."""
    busy = np.array([min(1.0, max(utilisation(run.load, float(s)))) for run, s in zip(runs, tpot_s, strict=True)])
    best: tuple[float, Power] | None = None
    for host in np.arange(0.0, 1.01, 0.05):
        scale = np.array([1 + host if run.server else 1.0 for run in runs])
        shares = np.array([run.share for run in runs]) / scale
        rows = np.column_stack([np.ones(len(runs)), busy]) / shares[:, None]
        prior = np.array([[2.0, 0.0], [0.0, 2.0]])  # pulls towards an idle share of 0.4 and a slope of 0.4
        idle, slope = np.linalg.lstsq(np.vstack([rows, prior]), np.append(np.ones(len(runs)), [0.8, 0.8]), rcond=None)[
            0
        ]
        made = Power(float(max(idle, 0.0)), float(max(slope, 0.0)), float(host))
        miss = np.log([made.share(b, server=r.server) / r.share for b, r in zip(busy, runs, strict=True)])
        loss = float(np.sum(np.abs(miss)))
        if best is None or loss < best[0]:
            best = loss, made
    assert best is not None
    return best[1]


def held_out_power(runs: Sequence[Metered], data: Data) -> tuple[Floats, Floats]:
    """ln(predicted/measured) of the share of rated power and of J a token.

    Neither the power constants nor the speed have seen the run's group: the speed is fitted without the run's device
    and model together.
    """
    names = numbered(np.array([run.group for run in runs]))
    share, joules = np.zeros(len(runs)), np.zeros(len(runs))
    for number in np.unique(names):
        here, rest = np.flatnonzero(names == number), np.flatnonzero(names != number)
        first = runs[int(here[0])].load.row.deployment
        same = [load.row.deployment.spec.name == first.spec.name and load.row.deployment.device is first.device
                for load in data.loads]  # fmt: skip
        _, model = fit(data.take(np.flatnonzero(~np.array(same))))
        found = expected.predict([run.load for run in runs], model=model)
        constants = fit_power([runs[i] for i in rest.tolist()], found.tpot_s[rest])
        for i in here.tolist():
            run, made = runs[i], float(found.tpot_s[i])
            drawn = constants.share(max(utilisation(run.load, made)), server=run.server)
            device = run.load.row.deployment.device
            closed = replica_rate(run.load, float(found.ttft_s[i]), made) / run.load.row.deployment.chips
            each = found.rate[i] if run.server else closed
            share[i] = np.log(drawn / run.share)
            joules[i] = np.log(drawn * float(device.power.base) / float(each) / run.joules)  # type: ignore[union-attr]
    return share, joules


def line(title: str, error: Floats) -> str:
    """Rows, median and mean absolute error and bias."""
    here = error[np.isfinite(error)]
    miss = np.abs(np.expm1(here))
    return f"| {title} | {len(here)} | {np.median(miss):.1%} | {np.mean(miss):.1%} | {np.median(here):+.3f} |"


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--no-write", action="store_true", help="only print the held-out errors")
    chosen = parser.parse_args()
    data, refused = Data.read()
    print(f"{len(data.loads)} rows answered, {len(refused)} refused")
    known = held_out(data, folds(data.group))
    unseen = held_out(data, numbered(data.model))
    for title, errors in (("grouped", known), ("one model out", unseen)):
        for name in TARGETS:
            print(line(f"{title}, {name}", errors[name]))
    runs = metered(data)
    share, joules = held_out_power(runs, data)
    print(line("share of rated power", share))
    print(line("J a token", joules))
    if chosen.no_write:
        return
    document, model = fit(data)
    made = fit_power(runs, expected.predict([run.load for run in runs], model=model).tpot_s)
    drawn = {
        "idle": made.idle,
        "slope": made.slope,
        "host": made.host,
        "error": float(np.median(np.abs(np.expm1(joules)))),
    }
    document["power"] = {name: round(value, 4) for name, value in drawn.items()}
    document["rows"] = len(data.loads)
    document["residuals"] = residuals(data, known, unseen)
    expected.FILE.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"wrote {expected.FILE.name}, {expected.FILE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
