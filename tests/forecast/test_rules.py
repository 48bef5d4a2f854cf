"""F101 to F117: each rule seen passing, firing and not knowing."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.forecast.ladders import five_sizes, law_h, noisy, sweep

from ridgeline.core.finding import Finding, RuleConfig, run_rules
from ridgeline.core.plugins import rules
from ridgeline.core.quantity import Quantity
from ridgeline.forecast.facts import Facts
from ridgeline.forecast.fitting.bootstrap import Draws, bootstrap
from ridgeline.forecast.fitting.fit import Fit, fit
from ridgeline.forecast.forecast import Study, study
from ridgeline.forecast.isoflop import isoflop
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.points import Points
from ridgeline.forecast.reading.read_points import ReadOptions, from_columns, read_points

CODES = [code for code in rules() if code.startswith("F")]
SIZES = [1e8, 3e8, 1e9, 3e9, 1e10, 3e10]


def finding(facts: Facts, code: str, threshold: float | None = None) -> Finding:
    """The one finding of a rule."""
    config = RuleConfig(select=(code,), thresholds={} if threshold is None else {code: threshold})
    (found,) = run_rules(rules().values(), facts, config, family="F")
    named = {quantity.name for quantity in found.quantities}
    braces = {piece.split("}")[0].split("|")[0] for piece in found.sentence.split("{")[1:]}
    assert braces <= named, "a sentence cites only what the finding carries"
    return found


def said(found: Finding) -> tuple[str, str]:
    return str(found.verdict), found.sentence


def number(quantity: Quantity | None) -> float:
    assert quantity is not None
    return float(quantity.value)


def with_columns(points: Points, **columns: object) -> Points:
    """The same runs with further columns, read again."""
    kept = {name: points[name] for name in ("N", "D", "C", "loss")} | {k: list(v) for k, v in points.labels.items()}
    return from_columns({**kept, **columns})


@cache
def fitted() -> Fit:
    return fit(noisy(), FORM)


@cache
def studied() -> Study:
    return study(noisy())


@cache
def resampled() -> Draws:
    return bootstrap(fitted(), count=100)


@pytest.mark.parametrize("code", CODES)
def test_every_rule_takes_a_ladder_alone(code: str) -> None:
    points = from_columns({"N": [1e8, 2e8], "D": [1e9, 4e9], "loss": [3.0, 2.9]})
    found = finding(Facts(points), code)
    if code in {"F101", "F117"}:
        assert str(found.verdict) != "unknown"
    else:
        assert str(found.verdict) == "unknown"
        assert found.fix


def test_a_clean_ladder_passes() -> None:
    facts = Facts(noisy(run=[f"r{i}" for i in range(30)]), fitted(), resampled())
    verdicts = {code: str(finding(facts, code).verdict) for code in CODES}
    passes = {code for code, verdict in verdicts.items() if verdict == "pass"}
    assert passes == {"F101", "F109", "F110", "F112", "F113", "F114", "F116", "F117"}
    assert set(verdicts.values()) == {"pass", "unknown"}


# F101: the two axes


@pytest.mark.parametrize(
    ("n", "d", "verdict", "why"),
    [
        (np.geomspace(1e8, 1e10, 8), np.full(8, 1e11), "fail", "the data exponent is not identified"),
        (np.full(8, 1e9), np.geomspace(1e9, 1e11, 8), "fail", "the capacity exponent is not identified"),
        (np.geomspace(1e8, 1e10, 8), 20 * np.geomspace(1e8, 1e10, 8), "fail", "cannot be told apart"),
        (np.geomspace(1e8, 1e10, 8), 1e20 / np.geomspace(1e8, 1e10, 8), "fail", "irreducible loss is not identified"),
        (np.full(8, 1e9), np.full(8, 1e10) * np.linspace(1, 1.0001, 8), "fail", "capacity exponent"),
        (np.geomspace(1e8, 1e10, 8), np.tile([1e10, 2e10], 4), "warn", "0"),
    ],
)  # fmt: skip
def test_f101(n: np.ndarray, d: np.ndarray, verdict: str, why: str) -> None:
    found = finding(Facts(from_columns({"N": n, "D": d, "loss": law_h(n, d) + 1e-6 * np.arange(8)})), "F101")
    assert said(found)[0] == verdict
    assert why == "0" or why in found.sentence


def test_f101_value_and_threshold() -> None:
    n, d = (grid.ravel() for grid in np.meshgrid([1e8, 1e9, 1e10], [1e10, 1e11]))
    facts = Facts(from_columns({"N": n, "D": d, "loss": law_h(n, d)}))
    assert number(finding(facts, "F101").value) == pytest.approx(1.0)
    assert said(finding(facts, "F101"))[0] == "pass"
    assert said(finding(facts, "F101", 1.5))[0] == "warn"
    assert said(finding(Facts(from_columns({"N": [1e8], "D": [1e9], "loss": [3]})), "F101"))[0] == "fail"


# F102, F103, F115: IsoFLOP


def test_f102() -> None:
    points = five_sizes()
    assert said(finding(Facts(points, isoflop=isoflop(points, count=20)), "F102"))[0] == "pass"
    cut = sweep([1e19, 1e20, 1e21], [[1e9, 2e9, 4e9], SIZES, SIZES])
    found = finding(Facts(cut, isoflop=isoflop(cut, count=20)), "F102")
    assert said(found)[0] == "fail"
    assert "1e+19: the minimum is below the smallest N of 1e+09" in found.sentence
    assert number(found.value) == pytest.approx(100 / 3)
    assert said(finding(Facts(cut, isoflop=isoflop(cut, count=20)), "F102", 40))[0] == "warn"
    rng = np.random.default_rng(0)
    n, d = 10 ** rng.uniform(7, 10, 60), 10 ** rng.uniform(9, 12, 60)
    cloud = from_columns({"N": n, "D": d, "loss": law_h(n, d)})
    found = finding(Facts(cloud, isoflop=isoflop(cloud, count=20)), "F102")
    assert said(found)[0] == "unknown"
    assert "no IsoFLOP ladder" in found.sentence


def test_f103() -> None:
    points = five_sizes()
    found = finding(Facts(points, isoflop=isoflop(points, count=50)), "F103")
    assert said(found)[0] == "pass"
    assert number(found.value) < 1e-9
    drifting = with_columns(points, C=points["C"] * (points["C"] / 1e19) ** 0.03)
    found = finding(Facts(drifting, isoflop=isoflop(drifting, count=50)), "F103")
    assert said(found)[0] == "warn"
    assert "C is not 6ND" in found.sentence
    assert number(found.value) == pytest.approx(0.03 / 1.03, rel=1e-3)
    assert said(finding(Facts(drifting, isoflop=isoflop(drifting, count=50)), "F103", 0.05))[0] == "pass"


def test_f115() -> None:
    points = five_sizes()
    assert said(finding(Facts(points, isoflop=isoflop(points, count=50)), "F115"))[0] == "pass"
    drifting = sweep([1e19, 1e20, 1e21, 1e22], [[k * 1e9 for k in (0.1, 0.3, 1, 3, 9)]] * 4)
    found = finding(Facts(drifting, isoflop=isoflop(drifting, count=50)), "F115")
    assert said(found)[0] == "warn"
    assert "larger sizes" in found.sentence


# F104, F106, F116, F117: the file


def test_f104() -> None:
    points = five_sizes()
    assert said(finding(Facts(points), "F104"))[0] == "pass"
    constant = with_columns(points, C=1.3 * points["C"])
    assert said(finding(Facts(constant), "F104"))[0] == "pass"
    drifting = with_columns(points, C=points["C"] * (points["C"] / 1e19) ** 0.03)
    found = finding(Facts(drifting), "F104")
    assert said(found)[0] == "warn"
    assert number(found.value) == pytest.approx(100 * (10**0.09 - 1))
    assert "nothing to compare" in finding(Facts(noisy()), "F104").sentence


def shaped(vocab: int = 50257, params: str = "non-embedding") -> Points:
    d_model, layers = np.array([256, 512, 1024]), np.array([4, 8, 16])
    return from_columns(
        {"N": 12 * layers * d_model**2, "D": [1e9, 2e9, 4e9], "loss": [3.9, 3.4, 3.0], "d_model": d_model,
         "layers": layers, "vocab": [vocab] * 3, "seq": [1024] * 3},
        ReadOptions(params=params),
    )  # fmt: skip


def test_f104_against_the_exact_flops() -> None:
    found = finding(Facts(shaped()), "F104")
    assert said(found)[0] == "warn"
    assert "the exact FLOPs" in found.sentence


@pytest.mark.parametrize(
    ("points", "verdict", "share"),
    [
        (shaped(), "warn", 12 * 4 * 256**2 / (12 * 4 * 256**2 + 256 * 50257)),
        (shaped(vocab=2048), "pass", 12 * 4 * 256 / (12 * 4 * 256 + 2048)),
        (shaped(vocab=2048, params="total"), "pass", 1 - 2048 / (12 * 4 * 256)),
        (shaped(vocab=50257, params="total"), "warn", 0),
    ],
)  # fmt: skip
def test_f106_from_shapes(points: Points, verdict: str, share: float) -> None:
    found = finding(Facts(points), "F106")
    assert said(found)[0] == verdict
    assert number(found.value) == pytest.approx(100 * share)


def test_f106_from_two_counts() -> None:
    points = from_columns(
        {"total_params": [1e8, 2e8], "non_embedding_params": [4e7, 1.5e8], "D": [1e9, 2e9], "loss": [3.5, 3.1]},
        ReadOptions(params="total"),
    )
    found = finding(Facts(points), "F106")
    assert said(found)[0] == "warn"
    assert "line 1" in found.sentence
    assert number(found.value) == pytest.approx(40)
    assert said(finding(Facts(points), "F106", 30))[0] == "pass"


def test_f117() -> None:
    rows = {"N": [1e8, 2e8, 4e8], "D": [1e9, 2e9, 4e9], "loss": [3.0, float("nan"), 2.8]}
    found = finding(Facts(from_columns(rows)), "F117")
    assert said(found)[0] == "warn"
    assert "row 2: the loss is nan" in found.sentence
    assert said(finding(Facts(from_columns(rows)), "F117", 50))[0] == "pass"
    assert number(found.value) == pytest.approx(100 / 3)


# F105, F110: schedules and checkpoints


def test_f105_by_the_horizon() -> None:
    points = noisy(horizon=np.full(30, 3e11))
    found = finding(Facts(points), "F105")
    assert said(found)[0] == "fail"
    assert "25 of 30 losses" in found.sentence
    assert number(found.value) == pytest.approx(100 * 1e9 / 3e11)
    ended = with_columns(points, horizon=points["D"])
    assert said(finding(Facts(ended), "F105"))[0] == "pass"
    constant = with_columns(points, horizon=np.full(30, 3e11), schedule=["const"] * 30)
    assert said(finding(Facts(constant), "F105"))[0] == "pass"
    mixed = with_columns(points, horizon=np.full(30, 3e11), schedule=["const", "cosine"] * 15)
    assert (
        "15 of 30" in finding(Facts(mixed), "F105").sentence or "of 30 losses" in finding(Facts(mixed), "F105").sentence
    )


def test_f105_by_the_run() -> None:
    points = noisy()
    series = with_columns(points, run=[f"{n:.3g}" for n in points["N"]])
    found = finding(Facts(series), "F105")
    assert said(found)[0] == "warn"
    assert "25 of 30 losses were read in runs that went on" in found.sentence
    constant = with_columns(series, schedule=["wsd"] * 30)
    assert said(finding(Facts(constant), "F105"))[0] == "pass"


def test_f110() -> None:
    points = noisy()
    series = with_columns(points, run=[f"{n:.3g}" for n in points["N"]])
    found = finding(Facts(series), "F110")
    assert said(found)[0] == "warn"
    assert number(found.value) == 6
    assert "5 independent runs" in found.sentence
    single = with_columns(points, run=[f"run {i}" for i in range(30)])
    assert said(finding(Facts(single), "F110"))[0] == "pass"
    assert said(finding(Facts(points), "F110"))[0] == "unknown"


def test_f110_sees_equal_steps() -> None:
    n, d = (grid.ravel() for grid in np.meshgrid([1e8, 1e9, 1e10], np.arange(1, 9) * 1e10))
    found = finding(Facts(from_columns({"N": n, "D": d, "loss": law_h(n, d)})), "F110")
    assert said(found)[0] == "warn"
    assert "equal steps" in found.sentence
    assert number(found.value) == 8


# F107, F108, F109, F114: the fit


def test_f107() -> None:
    points = noisy()
    groups = np.array(["a", "b"] * 15)
    even = with_columns(points, recipe=groups)
    assert said(finding(Facts(even, fit(even, FORM)), "F107"))[0] == "pass"
    moved = with_columns(points, recipe=groups, loss=points["loss"] * np.where(groups == "b", 1.04, 1.0))
    found = finding(Facts(moved, fit(moved, FORM)), "F107")
    assert said(found)[0] == "fail"
    assert 1 < abs(number(found.cites[0])) < 3
    assert number(found.value) > 3.5
    slightly = with_columns(points, recipe=groups, loss=points["loss"] * np.where(groups == "b", 1.012, 1.0))
    assert said(finding(Facts(slightly, fit(slightly, FORM)), "F107"))[0] == "warn"
    one = with_columns(points, recipe=["a"] * 30)
    assert said(finding(Facts(one), "F107"))[0] == "pass"
    assert said(finding(Facts(even), "F107"))[0] == "unknown"
    single = with_columns(points, recipe=[f"r{i}" for i in range(30)])
    assert "too few runs" in finding(Facts(single, fitted()), "F107").sentence


def test_f108() -> None:
    points = noisy()
    n, d = np.repeat(points["N"], 2), np.repeat(points["D"], 2)
    rng = np.random.default_rng(1)
    loss = law_h(n, d) * np.exp(0.004 * rng.standard_normal(60))
    repeated = from_columns({"N": n, "D": d, "loss": loss, "seed": np.arange(60)})
    found = finding(Facts(repeated, fit(repeated, FORM)), "F108")
    assert said(found)[0] == "pass"
    assert 0.3 < number(found.value) < 0.5
    assert "30 replicates" in found.sentence
    tuned = from_columns({"N": n, "D": d, "loss": loss, "lr": 1e-3 * (1 + np.arange(60) % 2)})
    assert said(finding(Facts(tuned), "F108"))[0] == "unknown"
    bent = from_columns({"N": n, "D": d, "loss": loss * (1 + 0.05 * np.sin(3 * np.log(n))), "seed": np.arange(60)})
    found = finding(Facts(bent, fit(bent, FORM)), "F108")
    assert said(found)[0] == "warn"
    assert "does not fit to the noise" in found.sentence
    few = repeated.take(np.array([0, 1, 2, 4, 6]))
    assert said(finding(Facts(few), "F108"))[0] == "warn"


def test_f109() -> None:
    assert said(finding(Facts(noisy(), fitted()), "F109"))[0] == "pass"
    points = noisy()
    low = with_columns(points, loss=np.where(np.arange(30) == 7, 1.2, points["loss"]))
    found = finding(Facts(low, fit(low, FORM)), "F109")
    assert said(found)[0] == "fail"
    assert "1 of 30 losses" in found.sentence
    assert "line 8" in found.sentence
    assert number(found.value) < 0


def test_f114() -> None:
    points = noisy()
    assert said(finding(Facts(points, fitted()), "F114"))[0] == "pass"
    x = np.log(points["C"])
    bent = with_columns(
        points, loss=points["loss"] * np.exp(0.05 * np.sin(2 * np.pi * (x - x.min()) / np.ptp(x) * 1.5))
    )
    found = finding(Facts(bent, fit(bent, FORM)), "F114")
    assert said(found)[0] == "warn"
    assert number(found.value) > 3
    few = points.take(np.arange(0, 30, 3))
    assert "too few" in finding(Facts(few, fit(few, FORM)), "F114").sentence


# F111: the reach


@pytest.mark.parametrize(
    ("compute", "verdict", "decades"),
    [(1e21, "pass", 0), (1e22, "pass", 0.268), (1e23, "warn", 1.268), (1e25, "warn", 3.268)],
)
def test_f111(compute: float, verdict: str, decades: float) -> None:
    found = finding(Facts(noisy(), fitted(), forecast=studied().at(compute)), "F111")
    assert said(found)[0] == verdict
    assert number(found.value) == pytest.approx(decades, abs=1e-3)


def test_f111_threshold() -> None:
    assert said(finding(Facts(noisy(), forecast=studied().at(1e23)), "F111", 1.5))[0] == "pass"


# F112, F113: the search


def test_f112() -> None:
    found = finding(Facts(noisy(), fitted(), resampled()), "F112")
    assert said(found)[0] == "pass"
    assert number(found.value) <= 5
    n, d = (grid.ravel() for grid in np.meshgrid(np.geomspace(3e7, 3e9, 5), np.geomspace(1e9, 3e11, 6)))
    floorless = from_columns({"N": n, "D": d, "loss": law_h(n, d, E=-0.2) * np.exp(0.01 * np.sin(np.arange(30)))})
    best = fit(floorless, FORM)
    found = finding(Facts(floorless, best, bootstrap(best, count=50)), "F112")
    assert said(found)[0] == "fail"
    assert "E on its bound" in found.sentence


def test_f113() -> None:
    assert said(finding(Facts(noisy(), fitted()), "F113"))[0] == "pass"
    n, d = (grid.ravel() for grid in np.meshgrid(np.geomspace(3e7, 3e9, 5), np.geomspace(1e9, 3e11, 6)))
    negative = from_columns({"N": n, "D": d, "loss": law_h(n, d, E=-0.3)})
    best = fit(negative, FORM)
    found = finding(Facts(negative, best), "F113")
    assert said(found)[0] == "warn"
    assert "E sits on its bound" in found.sentence
    unsettled = replace(fitted(), basins=(replace(fitted().basins[0], converged=False),))
    assert said(finding(Facts(noisy(), unsettled), "F113"))[0] == "fail"


# the public ladders


@pytest.mark.data
def test_gemstones_are_checkpoints(data_dir: Path) -> None:
    points = read_points(data_dir / "scaling" / "gemstones" / "hot.csv")
    assert "independent runs" in finding(Facts(points), "F110").sentence
    assert said(finding(Facts(points), "F105"))[0] == "warn"


@pytest.mark.data
def test_six_corpora_are_six_laws(data_dir: Path) -> None:
    path = data_dir / "scaling" / "loss_to_loss" / "runs.csv"
    several = read_points(path, ReadOptions(where={"data": ["smollm-corpus", "starcoder"]}))
    assert said(finding(Facts(several, fit(several, FORM)), "F107"))[0] == "fail"
    sweep_only = read_points(path, ReadOptions(where={"data": "starcoder", "split": "sweep"}))
    assert said(finding(Facts(sweep_only, fit(sweep_only, FORM)), "F107"))[0] == "pass"


@pytest.mark.data
def test_a_mismatched_schedule_has_no_floor(data_dir: Path) -> None:
    where = {"file": "summary_df", "param_count": "kaplan"}
    points = read_points(data_dir / "scaling" / "porian" / "isoflop_points.csv", ReadOptions(where=where))
    lower = points.take(points["C"] < 0.11 * points["C"].max())
    best = fit(lower, FORM)
    assert said(finding(Facts(lower, best, bootstrap(best, count=100)), "F112"))[0] == "fail"
