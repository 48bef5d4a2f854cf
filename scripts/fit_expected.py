"""Fit the constants of the step model to published runs, and write ``core/data/expected.toml``.

Run: python scripts/fit_expected.py [--check] with the public data sets in $RIDGELINE_DATA or ../shared/data.

Penalised least squares on ln(seconds a step): every constant has one value for all runs and factors by class, normal
in their logarithm around 1 with the widths below, and the loss grows linearly beyond 10% (so that a broken run counts
little). A site of n rows weighs as at most 80. Held-out errors are grouped cross-validation over (source,
configuration) in ten folds, and leaving one source out, where the two vTrain tables are one source.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.published_rows import DATA, TABLES, Row, layout_of, rows

from ridgeline.core.catalog import DATA as HOME
from ridgeline.plan.steps.expected import INTERVALS, LEVELS, SHARES, keys
from ridgeline.plan.steps.machine import Array, Machine
from ridgeline.plan.steps.step import Constants, combine
from ridgeline.plan.steps.work import Work, work

Ints = NDArray[np.int64]
# Constant -> (unit, the value where nothing is known, width of its logarithm or log-odds).
PRIORS: Mapping[str, tuple[str, float, float]] = {
    "matmul": ("1", 1.15, 0.2),
    "experts": ("1", 1.2, 0.5),
    "attention": ("1", 1.0, 0.3),
    "vector": ("1", 1.5, 0.5),
    "optimizer": ("1", 1.0, 0.5),
    "launch_s": ("s", 5e-5, 0.4),
    "meeting_s": ("s", 3e-6, 1.0),
    "wire": ("1", 1.0, 0.3),
    "far_wire": ("1", 1.2, 0.4),
    "exchange": ("1", 1.0, 0.5),
    "hidden": ("1", 0.62, 1.0),
    "beside": ("1", 0.12, 1.0),
    "step_s": ("s", 5e-3, 0.7),
}
# Level -> constants that may differ by its classes, and how widely.
WIDTHS: Mapping[str, Mapping[str, float]] = {
    "family": {
        "matmul": 0.12, "attention": 0.3, "vector": 0.3, "launch_s": 0.7, "hidden": 0.7, "beside": 0.7, "far_wire": 0.2,
    },
    "framework": {"matmul": 0.06, "launch_s": 0.3, "far_wire": 0.15},
    "chip": {"matmul": 0.12, "experts": 0.2, "launch_s": 0.3, "far_wire": 0.2, "vector": 0.15},
    "generation": {"attention": 0.3},
    "plan": {"matmul": 0.15, "launch_s": 0.6},
    "site": {
        "matmul": 0.12, "attention": 0.15, "vector": 0.2, "launch_s": 0.5, "wire": 0.2, "far_wire": 0.3, "hidden": 0.5,
        "step_s": 0.7,
    },
}  # fmt: skip
TITLES = {
    "matmul": "Time of matmuls over their measured surface",
    "experts": "Time of routed experts' matmuls over that, on top",
    "attention": "Time of attention over its measured surface",
    "vector": "Time of memory-bound kernels over full memory bandwidth",
    "optimizer": "Time of the optimizer over full memory bandwidth",
    "launch_s": "Host time of one kernel launch, framework included",
    "meeting_s": "Waiting of tensor-parallel hosts for each other at a collective, times (tp - 1)^2",
    "wire": "Time of collectives over their measured time inside a domain",
    "far_wire": "Time of collectives across domains over that of the port",
    "exchange": "Exposed time of all-to-all to experts over its wire",
    "hidden": "Share of a pass under which data-parallel traffic hides",
    "beside": "Share of tensor-parallel collectives that runs beside kernels",
    "step_s": "Seconds a step costs besides",
}
FAMILIES = {
    "megatron-deepspeed": "megatron-unfused", "megatron-lm-unfused": "megatron-unfused", "alpa": "megatron-unfused",
    "oneflow": "megatron-unfused", "megatron-bridge": "megatron-core", "nemo": "megatron-core",
    "megatron-lm": "megatron-core", "megascale": "megatron-core", "megatron-habana": "megatron-core",
    "primus": "megatron-core", "internevo": "megatron-core", "llm-foundry": "fsdp", "torchtitan": "fsdp",
    "fms-fsdp": "fsdp", "nemo-automodel": "fsdp", "deepspeed-zero3": "fsdp", "maxtext": "jax", "pax": "jax",
}  # fmt: skip
SIGMA = 0.05  # of ln(seconds): what a good prediction misses by; the loss turns linear at twice that
MOST = 80  # rows that a site weighs as
FOLDS = 10
LEAST = 0.02  # a smaller logarithm of a factor is left out of the file
OWN = 20  # configurations that give a site residuals of its own


@dataclass(frozen=True)
class Data:
    """Rows with their work: one entry each. ``log_s`` is ln(measured seconds a step)."""

    rows: Sequence[Row]
    work: Work
    log_s: Array
    weight: Array
    classes: Sequence[Mapping[str, str]]

    @classmethod
    def of(cls, found: Sequence[Row]) -> "Data":
        """The work of every row under its plan."""
        parts = [work(r.spec, Machine(r.cluster, r.software), r.batch, layout_of(r)) for r in found]
        joined = Work(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Work)})
        names, count = np.unique([r.source for r in found], return_counts=True)
        many = dict(zip(names.tolist(), count.tolist(), strict=True))
        weight = np.array([min(1.0, MOST / many[r.source]) for r in found])
        classes = [keys(r.spec, r.cluster, r.software, r.source, FAMILIES) for r in found]
        return cls(found, joined, np.log([r.step_s for r in found]), weight, classes)

    def take(self, index: Ints) -> "Data":
        """Some of the rows."""
        picked = Work(**{f.name: getattr(self.work, f.name)[index] for f in fields(Work)})
        some = [self.rows[i] for i in index], [self.classes[i] for i in index]
        return Data(some[0], picked, self.log_s[index], self.weight[index], some[1])


class Model:
    """The parameters: a base for every constant, and a deviation for each class seen in fitting."""

    def __init__(self, classes: Sequence[Mapping[str, str]]) -> None:
        self.places: dict[tuple[str, str, str], int] = {}
        start: list[float] = []
        width: list[float] = []
        for name, (_, value, sd) in PRIORS.items():
            self.places["", name, ""] = len(start)
            start.append(np.log(value / (1 - value)) if name in SHARES else np.log(value))
            width.append(sd)
        for level in LEVELS:
            for key in sorted({c[level] for c in classes}):
                for name, sd in WIDTHS[level].items():
                    self.places[level, name, key] = len(start)
                    start.append(0.0)
                    width.append(sd)
        self.start, self.width = np.array(start), np.array(width)
        self.values = self.start.copy()

    def columns(self, classes: Sequence[Mapping[str, str]]) -> dict[tuple[str, str], Ints]:
        """For every (level, constant): the parameter of each row, or -1 for a class that was not seen."""
        found = {("", name): np.full(len(classes), self.places["", name, ""]) for name in PRIORS}
        for level, widths in WIDTHS.items():
            for name in widths:
                found[level, name] = np.array([self.places.get((level, name, c[level]), -1) for c in classes])
        return found

    def constants(self, values: Array, columns: Mapping[tuple[str, str], Ints]) -> Constants:
        """The constants of each row."""
        padded = np.append(values, 0.0)
        logs = {name: np.zeros(len(next(iter(columns.values())))) for name in PRIORS}
        for (_, name), place in columns.items():
            logs[name] = logs[name] + padded[place]
        return Constants(**{n: 1 / (1 + np.exp(-x)) if n in SHARES else np.exp(x) for n, x in logs.items()})

    def predict(self, data: Data) -> Array:
        """ln(seconds) of every row."""
        return np.log(combine(data.work, self.constants(self.values, self.columns(data.classes))).step_s)

    def fit(self, data: Data, turns: int = 25) -> "Model":
        """Levenberg-Marquardt steps from the priors until the loss stands still."""
        columns = self.columns(data.classes)
        damping, now = 1e-3, self._loss(data, columns, self.values)
        for _ in range(turns):
            slope, curve = self._normal_equations(data, columns)
            while True:
                moved = self.values - np.linalg.solve(curve + damping * np.diag(np.diag(curve)), slope)
                after = self._loss(data, columns, moved)
                if after < now or damping > 1e6:
                    break
                damping *= 6
            gain = now - after
            if gain <= 0:
                break
            self.values, now, damping = moved, after, damping / 5
            if gain < 1e-4 * now:
                break
        return self

    def _miss(self, data: Data, columns: Mapping[tuple[str, str], Ints], values: Array) -> Array:
        return np.asarray((np.log(combine(data.work, self.constants(values, columns)).step_s) - data.log_s) / SIGMA)

    def _loss(self, data: Data, columns: Mapping[tuple[str, str], Ints], values: Array) -> float:
        miss = self._miss(data, columns, values)
        pulled = float(np.sum(((values - self.start) / self.width) ** 2)) / 2
        return float(np.sum(data.weight * 4 * (np.sqrt(1 + miss**2 / 4) - 1))) + pulled

    def _normal_equations(self, data: Data, columns: Mapping[tuple[str, str], Ints]) -> tuple[Array, Array]:
        """Classes of one level and constant touch different rows, so one evaluation gives all their derivatives."""
        miss, step = self._miss(data, columns, self.values), 1e-3
        jacobian = np.zeros((len(miss), len(self.values)))
        lines = np.arange(len(miss))
        for place in columns.values():
            moved, seen = self.values.copy(), place >= 0
            moved[np.unique(place[seen])] += step
            jacobian[lines[seen], place[seen]] = ((self._miss(data, columns, moved) - miss) / step)[seen]
        weight = data.weight / np.sqrt(1 + miss**2 / 4)
        slope = jacobian.T @ (weight * miss) + (self.values - self.start) / self.width**2
        return slope, (jacobian * weight[:, None]).T @ jacobian + np.diag(1 / self.width**2)


def cross_validated(data: Data, folds: int = FOLDS, *, named: bool = True) -> tuple[Array, Ints]:
    """ln(predicted/measured) of every row from a fit without its group, and the fold it was in.

    ``named``: the prediction knows the row's site, so the site's other configurations. Otherwise it knows framework,
    chip and plan class alone, though the site was in the fit.
    """
    groups = list(dict.fromkeys(row.group for row in data.rows))
    drawn = dict(zip(groups, (np.random.default_rng(0).permutation(len(groups)) % folds).tolist(), strict=True))
    fold = np.array([drawn[row.group] for row in data.rows])
    return _without(data, [(fold != k, fold == k) for k in range(folds)], named=named), fold


def one_source_out(data: Data) -> Array:
    """ln(predicted/measured) from a fit without the row's whole source."""
    source = np.array([row.source.partition("-single")[0].partition("-multi")[0] for row in data.rows])
    return _without(data, [(source != name, source == name) for name in dict.fromkeys(source.tolist())])


def _without(data: Data, parts: Iterable[tuple[NDArray[np.bool_], NDArray[np.bool_]]], *, named: bool = True) -> Array:
    error = np.zeros(len(data.rows))
    for kept, left in parts:
        train, test = data.take(np.flatnonzero(kept)), data.take(np.flatnonzero(left))
        if not named:
            test = replace(test, classes=[{**one, "site": ""} for one in test.classes])
        error[left] = Model(train.classes).fit(train).predict(test) - test.log_s
    return error


def quantiles(error: Array, rows_: Sequence[Row]) -> tuple[int, dict[float, tuple[float, float]]]:
    """Configurations, and the conformal interval of ln(actual/predicted) by level, each configuration counting once."""
    groups = [row.group for row in rows_]
    count = {group: groups.count(group) for group in set(groups)}
    weight = np.array([1 / count[group] for group in groups])
    order = np.argsort(-error)
    value, total = -error[order], np.cumsum(weight[order])
    found = {}
    for level in INTERVALS:
        tail = (1 - level) / 2
        low = np.searchsorted(total, tail * (total[-1] + 1) - 1e-9)
        high = np.searchsorted(total, (1 - tail) * (total[-1] + 1) - 1e-9)
        found[level] = (float(value[min(low, len(value) - 1)]), float(value[min(high, len(value) - 1)]))
    return len(count), found


def residual_classes(
    data: Data, known: Array, unseen: Array
) -> dict[str, tuple[int, dict[float, tuple[float, float]]]]:
    """Intervals by class: of known sites, of sites with many configurations, and of what was never seen."""
    found = {}
    published = np.array([row.source != "vtrain-single" for row in data.rows])
    for name, error in (("known", known), ("unseen", unseen)):
        for kind in ("dense", "moe"):
            of_kind = np.array([row.moe == (kind == "moe") for row in data.rows]) & published
            found[f"{name}/{kind}"] = _class(data, error, of_kind)
    for site in sorted({row.source for row in data.rows}):
        own = np.array([row.source == site for row in data.rows])
        if len({row.group for row in data.rows if row.source == site}) >= OWN:
            found[f"site/{site}"] = _class(data, known, own)
    return found


def _class(data: Data, error: Array, mask: NDArray[np.bool_]) -> tuple[int, dict[float, tuple[float, float]]]:
    return quantiles(error[mask], [row for row, kept in zip(data.rows, mask, strict=True) if kept])


def coverage(data: Data, error: Array, fold: Ints, level: float = 0.80) -> Array:
    """Whether each row lies in the interval made from the other folds' residuals of its class."""
    inside = np.zeros(len(error), dtype=bool)
    for k in np.unique(fold):
        rest, here = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        classes = residual_classes(data.take(rest), error[rest], error[rest])
        for index in here.tolist():
            row = data.rows[index]
            kind = f"known/{'moe' if row.moe else 'dense'}"
            low, high = classes.get(f"site/{row.source}", classes[kind])[1][level]
            inside[index] = low <= -error[index] <= high
    return inside


def write(model: Model, classes: Mapping[str, Any], data: Data, path: Path) -> None:
    """The coefficient file."""
    sources = len({row.source for row in data.rows})
    lines = [
        "# Constants of the step model, fitted to published runs by scripts/fit_expected.py: do not edit.",
        "[sources.runs]",
        'title = "Published training runs, each with its page and commit in the table"',
        f'where = "{" and ".join(TABLES)}: {len(data.rows)} rows of {sources} sources with plan and step time"',
        "read_on = 2026-11-29",
        "",
        "[data]",
    ]
    for table in TABLES:
        digest = hashlib.sha256((DATA / "plan" / table).read_bytes()).hexdigest()
        lines.append(f'{table.partition(".")[0]}_sha256 = "{digest}"')
    lines += ['licence = "figures only: numbers that the sources publish, no table is redistributed"', ""]
    for name, (unit, _, _) in PRIORS.items():
        raw = model.values[model.places["", name, ""]]
        value = 1 / (1 + np.exp(-raw)) if name in SHARES else np.exp(raw)
        lines += [f"[constants.{name}]", f'label = "{TITLES[name]}"', f"value = {value:.4g}", f'unit = "{unit}"']
        lines += ['kind = "measured"', 'source = "runs"', ""]
    lines += ["# Framework -> family that shares its constants.", "[families]"]
    lines += [f'{name} = "{family}"' for name, family in FAMILIES.items()] + [""]
    lines += ["# Factors on the constants by class; of a share, on its odds. What is not listed is 1."]
    lines += _factors(model)
    lines += ["# ln(actual/predicted) of held-out configurations: lower and upper end of the 80% and the 95% interval."]
    for name, (groups, ends) in classes.items():
        lines += [f'[residuals."{name}"]', f"groups = {groups}"]
        lines += [f"q{level * 100:.0f} = [{low:.4f}, {high:.4f}]" for level, (low, high) in ends.items()] + [""]
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _factors(model: Model) -> list[str]:
    found: dict[tuple[str, str], list[str]] = {}
    for (level, name, key), place in model.places.items():
        if level:
            entry = found.setdefault((level, key), [])
            if abs(model.values[place]) >= LEAST:
                entry.append(f"{name} = {np.exp(model.values[place]):.4g}")
    return [line for (level, key), entry in found.items() for line in (f'[factors.{level}."{key}"]', *entry, "")]


def report(data: Data, error: Array, title: str) -> list[str]:
    """A Markdown table of absolute errors by source."""
    miss = np.abs(np.expm1(error))
    source = np.array([row.source for row in data.rows])
    published = source != "vtrain-single"
    lines = [f"| {title} | rows | median | mean | bias of the logarithm |", "|---|---|---|---|---|"]
    lines.append(_line("all but vtrain-single", miss[published], error[published]))
    names = sorted(set(source.tolist()))
    return lines + [_line(name, miss[source == name], error[source == name]) for name in names]


def _line(name: str, miss: Array, error: Array) -> str:
    return f"| {name} | {len(miss)} | {np.median(miss):.1%} | {np.mean(miss):.1%} | {np.median(error):+.3f} |"


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--no-write", action="store_true", help="only print the held-out errors")
    chosen = parser.parse_args()
    data = Data.of(rows())
    known, fold = cross_validated(data)
    unseen = one_source_out(data)
    for title, error in (("grouped cross-validation", known), ("leave one source out", unseen)):
        print("\n".join(report(data, error, title)), "\n")
    inside = coverage(data, known, fold)
    published = np.array([row.source != "vtrain-single" for row in data.rows])
    print(f"80% intervals cover {inside[published].mean():.1%} of published rows, {inside.mean():.1%} of all rows")
    if not chosen.no_write:
        write(Model(data.classes).fit(data), residual_classes(data, known, unseen), data, HOME / "expected.toml")


if __name__ == "__main__":
    main()
