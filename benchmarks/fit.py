"""How long the global fit of a ladder and its bootstrap take, and what it finds, against two peers.

Run: python benchmarks/fit.py POINTS.csv [--peer PYTHON] [--others FOLDER]

POINTS.csv has columns N, D, loss and optionally excluded_in_paper. PYTHON is an interpreter whose environment has the
package ``chinchilla``; where it is absent that row is left out. FOLDER holds further sets as the page names them. The
page is beside this file.
"""

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import scipy
from scipy.optimize import minimize

from ridgeline.forecast.fitting.bootstrap import bootstrap
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import HUBER
from ridgeline.forecast.form import Array, Form
from ridgeline.forecast.laws import chinchilla, coupled
from ridgeline.forecast.points import Points

ROUNDS = 7
RESAMPLES = 4000
STARTS = tuple(
    product(range(0, 26, 5), range(0, 26, 5), np.arange(-1, 1.5, 0.5), np.arange(0, 2.5, 0.5), np.arange(0, 2.5, 0.5))
)
SAMPLE_STARTS, SAMPLE_RESAMPLES, REFERENCE_STARTS = 60, 40, 16
PEER = """
import json, logging, sys, tempfile, time
import numpy as np
from chinchilla import Chinchilla
from chinchilla._metrics import log_huber
n, d, loss = np.array(json.load(sys.stdin))
grid = {"e": np.linspace(-1, 1, 5), "a": np.linspace(0, 25, 5), "b": np.linspace(0, 25, 5),
        "alpha": np.linspace(0.1, 1, 5), "beta": np.linspace(0.1, 1, 5)}
found = {}
for name, options in (("default loss", {}), ("Huber", {"loss_fn": lambda y, f: log_huber(y, f, 1e-3)})):
    three = {k: v[::2] for k, v in grid.items()}
    cc = Chinchilla(tempfile.mkdtemp(), param_grid=three, log_level=logging.ERROR, **options)
    for one in zip(n, d, loss):
        cc.append(N=one[0], D=one[1], loss=one[2], C=6 * one[0] * one[1])
    cc.visualizer.optim = lambda *a, **k: None  # no pictures inside the timing
    wall, cpu = time.perf_counter(), time.process_time()
    cc.fit(parallel=False)
    constants = [float(v) for v in (cc.A, cc.B, cc.E, cc.alpha, cc.beta)]
    found[name] = [time.perf_counter() - wall, time.process_time() - cpu, *constants]
print(json.dumps(found))
"""


def read(path: Path, keep: Callable[[dict[str, str]], bool] = lambda row: True, loss: str = "loss") -> Points:
    """The runs of a CSV file that have all three columns."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if keep(row) and row[loss]]
    names = {"N": "N", "D": "D", "loss": loss}
    return Points({name: np.array([float(row[column]) for row in rows]) for name, column in names.items()})


def timed(work: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """Median wall and CPU seconds after one warm-up."""
    work()
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def whole(points: Points, form: Form) -> object:
    """The global fit and its bootstrap."""
    return bootstrap(fit(points, form), count=RESAMPLES)


def value_of(form: Form, points: Points, weights: Array) -> Callable[[Array], float]:
    """The Huber objective of one parameter vector."""
    log_y, columns = np.log(points["loss"]), {name: points[name] for name in form.inputs}

    def value(theta: Array) -> float:
        with np.errstate(all="ignore"):
            found = float(HUBER.total(log_y, form.log_loss(theta, columns), weights))
        return found if np.isfinite(found) else 1e10

    return value


def plain(points: Points) -> None:
    """A sample of the usual procedure: L-BFGS-B with numeric gradients from a grid, BFGS for every resample."""
    form, ones = chinchilla.FORM, np.ones(len(points))
    value, best = value_of(form, points, ones), fit(points, form)
    rng = np.random.default_rng(0)
    wall, cpu = time.perf_counter(), time.process_time()
    sample = rng.permutation(np.array(STARTS))[:SAMPLE_STARTS]
    ends = [minimize(value, start, method="L-BFGS-B").fun for start in sample]
    each = (time.process_time() - cpu) / SAMPLE_STARTS
    near = np.mean(np.array(ends) < best.value * 1.01)
    took = time.perf_counter() - wall
    print(f"{len(STARTS):,} starts: {each:.3f} CPU s each in a sample of {SAMPLE_STARTS} ({took:.0f} s of wall)")
    print(f"  extrapolated {each * len(STARTS):,.0f} CPU s; within 1% of the optimum: {100 * near:.0f}%")
    resamples = [rng.multinomial(len(points), ones / len(points)).astype(float) for _ in range(SAMPLE_RESAMPLES)]
    cpu = time.process_time()
    theirs = [minimize(value_of(form, points, weights), best.theta, method="BFGS").fun for weights in resamples]
    each = (time.process_time() - cpu) / SAMPLE_RESAMPLES
    worse = [fit(points, form, weights=weights).value - end for weights, end in zip(resamples, theirs, strict=True)]
    print(f"resamples by BFGS: {each:.4f} CPU s each, extrapolated {each * RESAMPLES:,.0f} CPU s for {RESAMPLES:,}")
    print(f"  ours less theirs over {SAMPLE_RESAMPLES} resamples: {min(worse):.1e} to {max(worse):.1e}")


def peer(points: Points, python: str | None) -> None:
    """The package chinchilla, in its own environment."""
    if (
        python is None
        or subprocess.run([python, "-c", "import chinchilla"], check=False, capture_output=True).returncode
    ):
        print("peer: left out, the package chinchilla is not in the environment given by --peer")
        return
    data = json.dumps([points[name].tolist() for name in ("N", "D", "loss")])
    done = subprocess.run([python, "-c", PEER], input=data, capture_output=True, text=True, check=True)
    value = value_of(chinchilla.FORM, points, np.ones(len(points)))
    for name, (wall, cpu, *found) in json.loads(done.stdout.splitlines()[-1]).items():
        constants = dict(zip(("A", "B", "E", "alpha", "beta"), found, strict=True))
        there = value(chinchilla.FORM.internal(constants))
        shown = ", ".join(f"{symbol} {v:.5g}" for symbol, v in constants.items())
        print(f"peer, {name}, 243 starts: {wall:.1f} s wall, {cpu:.1f} CPU s; Huber objective {there:.7f}; {shown}")


def reference(form: Form, points: Points, optimum: Array) -> float:
    """The lowest Huber objective of L-BFGS-B from a sample of the grid and from around our own optimum."""
    low, high = form.box
    rng = np.random.default_rng(1)
    grid = rng.permutation(np.array(STARTS))[:REFERENCE_STARTS]
    if form is coupled.FORM:
        grid = np.column_stack([grid, rng.uniform(0.2, 1.5, len(grid))])
    around = optimum + 0.02 * rng.standard_normal((REFERENCE_STARTS // 4, len(optimum)))
    value, bounds = value_of(form, points, np.ones(len(points))), list(zip(low, high, strict=True))
    starts = np.clip(np.vstack([grid, around]), low, high)
    return min(float(minimize(value, start, method="L-BFGS-B", bounds=bounds).fun) for start in starts)


def others(folder: Path) -> None:
    """Our optimum against the reference's, over more sets and both forms."""
    sets = {
        "Llama 3": read(folder / "llama3_isoflop/llama_3__exp_loss.csv"),
        "Gemstones, cooldown": read(folder / "gemstones/cool_end.csv"),
        "OLMo ladder": read(folder / "olmo_ladder/ladder_final.csv"),
        "Farseer": read(folder / "scalebench/farseer_scaling_law_train.csv"),
    }
    table = folder / "loss_to_loss/runs.csv"
    with table.open() as file:
        recipes = sorted({row["data"] for row in csv.DictReader(file)})
    for recipe in recipes:
        sets[f"loss-to-loss, {recipe}"] = read(table, lambda row, recipe=recipe: row["data"] == recipe)  # type: ignore[misc]
    for name, points in sets.items():
        for form in (chinchilla.FORM, coupled.FORM):
            found = fit(points, form)
            best = reference(form, points, found.theta)
            bound = ", ".join(found.at_bound) or "none"
            row = f"{name} | {form.slug} | {len(points)} | {found.value:.9f} | {best:.9f}"
            print(f"| {row} | {found.value / best - 1:+.1e} | {bound} |", flush=True)


def main() -> None:
    """Print one row a measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("points", type=Path)
    parser.add_argument("--peer")
    parser.add_argument("--others", type=Path)
    chosen = parser.parse_args()
    points = read(chosen.points, lambda row: row.get("excluded_in_paper") != "True")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}; load {os.getloadavg()[0]:.1f} at the start")
    for form in (chinchilla.FORM, coupled.FORM):
        found = fit(points, form)
        rows: dict[str, Callable[[], object]] = {
            "global fit": partial(fit, points, form),
            "fit + bootstrap": partial(whole, points, form),
        }
        for name, work in rows.items():
            wall, cpu = timed(work)
            print(f"{form.slug}, {name}: {wall:.3f} s wall, {cpu:.3f} CPU s; objective {found.value:.10f}")
    if chosen.others:
        others(chosen.others)
    peer(points, chosen.peer)
    plain(points)


if __name__ == "__main__":
    main()
