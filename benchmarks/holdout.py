"""Hold-out decades over public ladders: what the forecasts and intervals would have been; prints the page of it.

Run: python benchmarks/holdout.py DATA [DRAWS]   (DATA: the folder that holds chinchilla_epoch, farseer, ...)
"""

import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from ridgeline.core.catalog import constant, constants
from ridgeline.forecast.forecast import Options, study
from ridgeline.forecast.holdout import DECADES, Row, calibrate
from ridgeline.forecast.points import Points
from ridgeline.forecast.rollout import compute

GRID = np.arange(0.0025, 0.0301, 0.0025)  # of the assumed growth, for the leave-one-family-out table


@dataclass(frozen=True)
class Ladder:
    """A ladder with its family: sets of one family share runs, authors or code, and are left out together."""

    name: str
    family: str
    points: Points
    stress: bool = False  # known not to be one law: mismatched schedules, constant learning rate


def read(path: Path, keep: pl.Expr | None = None) -> pl.DataFrame:
    """A table, its rows filtered."""
    table = pl.read_csv(path, infer_schema_length=None)
    return table if keep is None else table.filter(keep)


def points(table: pl.DataFrame, *, budget: bool = True, **labels: str) -> Points:
    """Columns N, D, C and loss of a table, C = 6ND where the table has no budget, and ``labels`` by their column."""
    take = {name: table[name].cast(pl.Float64).to_numpy() for name in ("N", "D", "loss")}
    take["C"] = table["C"].cast(pl.Float64).to_numpy() if budget and "C" in table.columns else 6 * take["N"] * take["D"]
    texts = {name: table[column].to_numpy().astype(np.str_) for name, column in labels.items()}
    keep = np.isfinite(take["loss"]) & (take["loss"] > 0)
    return Points(take, texts).take(keep)


def ladders(data: Path) -> Iterator[Ladder]:
    """Every ladder in the folder whose rows are runs of a model with N, D and a loss."""
    table = read(data / "chinchilla_epoch/points.csv", ~pl.col("excluded_in_paper").cast(pl.Boolean))
    yield Ladder("chinchilla 240", "chinchilla", points(table))
    snapped = read(data / "chinchilla_epoch/epochai_chinchilla__massivetext__chinchilla.csv")
    yield Ladder("chinchilla isoFLOP", "chinchilla", points(snapped))
    yield Ladder("chinchilla kyotakano", "chinchilla", points(read(data / "chinchilla_kyotakano/df.csv")))
    yield Ladder("llama 3 isoFLOP", "llama3", points(read(data / "llama3_isoflop/llama_3__raw_loss.csv")))
    runs = read(data / "loss_to_loss/runs.csv")
    for name in sorted(runs["data"].unique()):
        yield Ladder(
            f"loss-to-loss {name}", "loss_to_loss", points(runs.filter(pl.col("data") == name), recipe="split")
        )
    parts = [read(data / f"scalebench/farseer_scaling_law_{part}.csv") for part in ("train", "test")]
    yield Ladder("farseer", "farseer", points(pl.concat(parts)))
    for name in ("cool_end", "hot", "hot_100b+", "slim_chinchilla"):
        yield Ladder(f"gemstones {name}", "gemstones", points(read(data / f"gemstones/{name}.csv")))
    yield Ladder("olmo ladder", "olmo", points(read(data / "olmo_ladder/ladder_final.csv")))
    once = read(data / "datablations/points182.csv", pl.col("epochs") <= 1 + 1e-4)
    yield Ladder("datablations, one epoch", "datablations", points(once))
    best = read(data / "step_law/dense_lr_bs_loss.csv").group_by("N", "D", maintain_order=True)
    yield Ladder(
        "step law, best", "step_law", points(best.agg(pl.col("smooth loss").min().alias("loss")), budget=False)
    )
    porian = read(data / "porian/isoflop_points.csv")
    keys = ["dataset", "hparams", "warmup", "decay", "param_count"]
    for values in sorted(porian.select(keys).unique().rows()):
        rows = porian.filter(pl.all_horizontal(pl.col(k) == v for k, v in zip(keys, values, strict=True)))
        yield Ladder(
            "porian " + "/".join(values), "porian", points(rows, schedule="decay"), stress=values[3] != "chinchilla"
        )


def held_out(job: tuple[Ladder, int]) -> tuple[Ladder, tuple[Row, ...], tuple[str, ...]]:
    """The rows of one ladder."""
    ladder, draws = job
    found = calibrate(ladder.points, Options(draws=draws))
    return ladder, found.rows, found.skipped


def line(values: list[object]) -> str:
    """A row of a table."""
    return "| " + " | ".join(str(value) for value in values) + " |"


def pooled(rows: list[Row], keep: Callable[[Row], bool]) -> str:
    """Coverage, width and median error over the runs of some rows."""
    used = [row for row in rows if keep(row)]
    if not used:
        return "none"
    covered, widths, errors = (
        np.concatenate([getattr(row, name) for row in used]) for name in ("covered", "widths", "errors")
    )
    by_set, median = np.mean([row.width for row in used]), np.median(np.abs(errors))
    share, wide = covered.mean(), widths.mean()
    return (
        f"{len(used)} sets, {len(covered)} runs: {100 * share:.1f}% covered, width {100 * wide:.1f}% "
        f"(mean of sets {100 * by_set:.1f}%), median error {100 * median:.2f}%"
    )


def print_sets(found: list[tuple[Ladder, tuple[Row, ...], tuple[str, ...]]]) -> None:
    """A line per ladder and distance."""
    print(
        line(["set", "d", "train/test", "form", "median, plain", "median", "best run", "covered", "width", "verdict"])
    )
    print("|" + "---|" * 10)
    for ladder, rows, _ in found:
        for row in rows:
            print(line([ladder.name, f"{row.decades:g}", f"{row.trained}/{len(row.tested)}", row.form,
                        f"{100 * row.plain_median:.2f}%", f"{100 * row.median:.2f}%", f"{100 * row.best:+.1f}%",
                        f"{100 * row.coverage:.0f}%", f"{100 * row.width:.1f}%", row.verdict.word]))  # fmt: skip


def left_out(found: list[tuple[Ladder, tuple[Row, ...], tuple[str, ...]]]) -> None:
    """The assumed growth that the other families ask for, and the coverage of the family left out."""
    table: Mapping[float, Mapping[str, list[float]]] = {
        k: regrown([f for f in found if not f[0].stress], float(k)) for k in GRID
    }
    families = sorted(table[GRID[0]])

    def cover(k: float, names: list[str]) -> float:
        return float(np.mean([np.mean(table[k][name]) for name in names]))

    print(line(["left out", "growth that covers 95% of the others", "covered of the one left out"]) + "\n|---|---|---|")
    for name in families:
        others = [other for other in families if other != name]
        chosen = next((k for k in GRID if cover(k, others) >= 0.95), GRID[-1])
        print(line([name, f"{100 * chosen:.2f}% a decade", f"{100 * cover(chosen, [name]):.1f}%"]))


def regrown(found: list[tuple[Ladder, tuple[Row, ...], tuple[str, ...]]], assumed: float) -> dict[str, list[float]]:
    """Coverage per family and row were the assumed growth another, refused rows included."""
    stored = constants("forecast")
    name = "forecast.growth"
    before = stored[name]
    stored[name] = (replace(before[0], value=assumed), before[1])
    try:
        result: dict[str, list[float]] = {}
        for ladder, rows, _ in found:
            for row in rows:
                result.setdefault(ladder.family, []).append(recovered(ladder, row))
        return result
    finally:
        stored[name] = before


_STUDIES: dict[tuple[str, float], object] = {}


def recovered(ladder: Ladder, row: Row) -> float:
    """The coverage of a row under the assumption in force; the study is made once."""
    key = (ladder.name, row.decades)
    place = compute(ladder.points)
    kept = np.ones(len(place), bool)
    kept[row.tested] = False
    if key not in _STUDIES:
        _STUDIES[key] = study(ladder.points.take(kept), Options(draws=100))
    made = _STUDIES[key]
    fresh = replace(made, evidence=replace(made.evidence))  # type: ignore[attr-defined,type-var]
    fresh.evidence.__dict__["draws"] = made.evidence.draws  # type: ignore[attr-defined]
    rest = ladder.points.take(row.tested)
    low, high = fresh.interval({"N": rest["N"], "D": rest["D"]}, place[row.tested] - fresh.top)  # type: ignore[attr-defined]
    return float(np.mean((low <= rest["loss"]) & (rest["loss"] <= high)))


def main(data: str, draws: int = 400) -> None:
    """Print the page."""
    begun = time.perf_counter()
    jobs = [(ladder, draws) for ladder in ladders(Path(data))]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(held_out, jobs))
    took = time.perf_counter() - begun
    print("# Hold-out decades over public ladders\n")
    count = sum(len(rows) for _, rows, _ in found)
    python, when = platform.python_version(), datetime.now(UTC).date()
    print(f"`python benchmarks/holdout.py DATA {draws}`, {when}, Python {python}: "
          f"{took:.0f} s for {count} hold-outs of {len(found)} ladders.\n")  # fmt: skip
    print("Train on C <= Cmax/10^d, forecast every run above; the 95% interval is for one observed run.\n")
    print(line(["d", "which", "result"]) + "\n|---|---|---|")
    for distance in DECADES:
        rows = [row for _, rows, _ in found for row in rows if row.decades == distance]
        plain = [row for ladder, rows, _ in found for row in rows if row.decades == distance and not ladder.stress]
        print(line([f"{distance:g}", "not refused", pooled(rows, lambda row: row.verdict.word != "refuse")]))
        print(line([f"{distance:g}", "refused", pooled(rows, lambda row: row.verdict.word == "refuse")]))
        print(line([f"{distance:g}", "matched ladders, refused or not", pooled(plain, lambda row: True)]))
        print(line([f"{distance:g}", "all", pooled(rows, lambda row: True)]))
    worse = [f"{ladder.name} at {row.decades:g}: {100 * row.plain_median:.2f}% to {100 * row.median:.2f}%"
             for ladder, rows, _ in found for row in rows if row.median > row.plain_median * (1 + 1e-6)]  # fmt: skip
    better = [row for _, rows, _ in found for row in rows if row.median < row.plain_median * (1 - 1e-6)]
    print(f"\nMedian error against plain Huber-Chinchilla: smaller in {len(better)} hold-outs, larger in {len(worse)}"
          + (": " + "; ".join(worse) if worse else "") + ", the same in the others.\n")  # fmt: skip
    print_sets(found)
    misses = [f"{ladder.name}, {row.decades:g} decades: {int((~row.covered).sum())} of {len(row.covered)}"
              + (" (refused)" if row.verdict.word == "refuse" else "")
              for ladder, rows, _ in found for row in rows if not row.covered.all()]  # fmt: skip
    print("\nMisses: " + "; ".join(misses) + ".")
    skipped = [f"{ladder.name}: {text.splitlines()[0]}" for ladder, _, texts in found for text in texts]
    print("\nNot possible: " + "; ".join(skipped) + ".\n")
    print(f"## The assumed growth, {100 * float(constant('forecast.growth').base):g}% a decade\n")
    left_out(found)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
