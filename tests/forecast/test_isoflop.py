"""IsoFLOP minima and power laws: worked numbers, published exponents, refusals, and the a + b check."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forecast.ladders import LAW_H, five_sizes, law_h, sweep

from ridgeline.core.errors import InputError
from ridgeline.forecast.accounting import Place, against_6nd, against_exact, cause
from ridgeline.forecast.isoflop import budgets_of, isoflop
from ridgeline.forecast.reading.read_points import ReadOptions, from_columns, read_points
from ridgeline.forecast.vertices import minimum

SIZES = [1e8, 3e8, 1e9, 3e9, 1e10, 3e10]


# the worked numbers of section D


def test_the_vertex_of_six_losses() -> None:
    points = sweep([1e21], [SIZES])
    assert np.round(points["loss"], 4).tolist() == [2.6198, 2.4344, 2.3400, 2.3363, 2.4160, 2.5687]
    (budget,) = isoflop(points).budgets
    assert (f"{budget.n:.3e}", f"{budget.d:.3e}", f"{budget.d / budget.n:.1f}") == ("1.951e+09", "8.542e+10", "43.8")


def test_the_exponents_of_five_sizes() -> None:
    found = isoflop(five_sizes(), count=200)
    assert found.n is not None
    assert found.d is not None
    assert (f"{found.n.exponent:.3f}", f"{found.d.exponent:.3f}", f"{found.total:.3f}") == ("0.454", "0.546", "1.000")
    assert found.why == ""
    assert found.failed < 10  # the resamples that drew one budget four times
    closed = LAW_H["beta"] / (LAW_H["alpha"] + LAW_H["beta"])
    assert found.n.low <= found.n.exponent <= found.n.high
    assert found.n.exponent == pytest.approx(closed, abs=0.005)
    assert found.n.at(1e20) * found.d.at(1e20) * 6 == pytest.approx(1e20, rel=1e-9)


# published numbers


@pytest.mark.data
@pytest.mark.parametrize("scale", ["raw", "exp"])
def test_llama_3(scale: str, data_dir: Path) -> None:
    path = data_dir / "scaling" / "llama3_isoflop" / f"llama_3__{scale}_loss.csv"
    found = isoflop(read_points(path, ReadOptions(keep_excluded=True)))
    assert len(found.used) == len(found.budgets) == 10
    assert found.n is not None
    assert found.d is not None
    assert round(found.d.exponent, 3) == 0.537
    assert round(found.n.exponent, 3) == 0.463
    assert found.d.coefficient == pytest.approx(0.299, abs=0.002)
    assert found.total == pytest.approx(1, abs=1e-6)
    assert found.d.low < 0.537 < found.d.high


@pytest.mark.data
def test_the_fifteen_exponents_of_porian(data_dir: Path) -> None:
    folder = data_dir / "scaling" / "porian"
    keys = ("file", "hparams", "warmup", "decay", "param_count")
    inside = 0
    with (folder / "fits.csv").open(newline="") as file:
        fits = [row for row in csv.DictReader(file) if row["kind"] == "bs_median_weighted"]
    for row in fits:
        points = read_points(folder / "isoflop_points.csv", ReadOptions(where={key: row[key] for key in keys}))
        found = isoflop(points, "akima", count=200)
        assert found.n is not None
        inside += float(row["n_exp_lo"]) <= found.n.exponent <= float(row["n_exp_hi"])
        assert found.n.low < float(row["n_exponent"]) < found.n.high
    assert (inside, len(fits)) == (15, 15)


# what is refused


@pytest.mark.parametrize(
    ("n", "loss", "why"),
    [
        ([1e8, 3e8], [3.0, 2.9], "2 different N, where a parabola needs 3"),
        ([1e8, 1e8, 3e8], [3.0, 3.1, 2.9], "2 different N, where a parabola needs 3"),
        ([1e8, 3e8, 9e8], [3.0, 3.1, 3.0], "the parabola in log N opens downward"),
        ([1e8, 3e8, 9e8], [3.0, 2.9, 2.8], "the parabola in log N has no curvature"),
        ([1e8, 3e8, 9e8], [3.0, 3.0, 3.0], "the parabola in log N has no curvature"),
        ([1e8, 3e8, 9e8], [3.0, 2.9, 2.85], "the minimum is above the largest N of 9e+08"),
        ([1e8, 3e8, 9e8], [2.85, 2.9, 3.0], "the minimum is below the smallest N of 1e+08"),
    ],
)
def test_no_minimum(n: list[float], loss: list[float], why: str) -> None:
    found = minimum(np.log(n), np.array(loss))
    assert found.refused == why
    assert math.isnan(found.x)


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ([3.0, 2.9, 2.8, 2.7], "the minimum is at the largest N"),
        ([2.7, 2.8, 2.9, 3.0], "the minimum is at the smallest N"),
        ([3.0, 2.9, 3.0], "3 different N, where an Akima curve needs 4"),
    ],
)
def test_no_minimum_of_an_akima_curve(loss: list[float], why: str) -> None:
    assert minimum(np.log(np.geomspace(1e8, 1e9, len(loss))), np.array(loss), "akima").refused == why


def test_refused_budgets_leave_the_others() -> None:
    points = sweep([1e19, 1e20, 1e21], [[1e8, 2e8, 4e8], SIZES, SIZES])
    found = isoflop(points, count=50)
    assert found.refused == {}
    cut = sweep([1e19, 1e20, 1e21], [[1e9, 2e9, 4e9], SIZES, SIZES])
    found = isoflop(cut, count=50)
    assert list(found.refused.values()) == ["the minimum is below the smallest N of 1e+09"]
    assert found.n is not None
    one = isoflop(sweep([1e20], [SIZES]))
    assert (one.n, one.d, one.count) == (None, None, 0)


@pytest.mark.parametrize(("options", "match"), [({"method": "spline"}, "parabola or akima"), ({"level": 1.0}, "level")])
def test_options_that_do_not_fit(options: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        isoflop(five_sizes(), **options)  # type: ignore[arg-type]


# budgets


def test_budgets_by_gap_and_by_label() -> None:
    assert [len(runs) for runs in budgets_of(five_sizes()).values()] == [5, 5, 5, 5]
    rng = np.random.default_rng(0)
    n = np.geomspace(1e8, 1e10, 5)
    columns = {"N": np.tile(n, 2), "C": np.repeat([1e20, 1e21], 5) * np.exp(0.03 * rng.standard_normal(10)),
               "loss": np.full(10, 3.0)}  # fmt: skip
    assert [len(runs) for runs in budgets_of(from_columns(columns)).values()] == [5, 5]
    labelled = from_columns({**columns, "budget": ["b", "a"] * 5})
    assert {name: len(runs) for name, runs in budgets_of(labelled).items()} == {"a": 5, "b": 5}
    assert all("no single budget" in budget.refused for budget in isoflop(labelled).budgets)
    assert isoflop(labelled).sweeps == ()


def test_a_cloud_is_no_isoflop_design() -> None:
    rng = np.random.default_rng(0)
    n, d = 10 ** rng.uniform(7, 10, 200), 10 ** rng.uniform(9, 12, 200)
    found = isoflop(from_columns({"N": n, "D": d, "loss": law_h(n, d)}))
    assert sum(len(budget.runs) for budget in found.sweeps) < 100


# intervals


def test_the_interval_covers_the_exponent_of_the_same_windows() -> None:
    sizes = [list(np.geomspace(0.2, 5, 7) * 2e8 * s) for s in (1, 2.85, 8.1, 23)]
    exact = isoflop(sweep([1e19, 1e20, 1e21, 1e22], sizes), count=20).n
    assert exact is not None
    covered, widths = 0, []
    for seed in range(60):
        points = sweep([1e19, 1e20, 1e21, 1e22], sizes)
        noise = np.exp(0.002 * np.random.default_rng(seed).standard_normal(len(points)))
        noisy = from_columns(
            {name: points[name] * (noise if name == "loss" else 1) for name in ("N", "D", "C", "loss")}
        )
        law = isoflop(noisy, count=300, seed=seed).n
        assert law is not None
        covered += law.low <= exact.exponent <= law.high
        widths.append(law.high - law.low)
    assert covered >= 51  # 85% of 60; the two levels make it conservative
    assert np.median(widths) < 0.15


def test_the_same_seed_gives_the_same_interval() -> None:
    points = five_sizes()
    first, second = (isoflop(points, count=50, seed=3).n for _ in range(2))
    assert first == second


# a + b, and its cause


def test_compute_that_counts_other_parameters() -> None:
    points = five_sizes()
    inner = points["N"]
    total = inner + 2e7 * (inner / 1e8) ** (1 / 3) * 4  # a table that weighs most in the small models
    columns = {"N": total, "D": points["D"], "C": points["C"], "loss": points["loss"], "non_embedding_params": inner}
    found = isoflop(from_columns(columns), count=200)
    assert found.total < 0.99
    assert found.why == "C counts non-embedding parameters, and N others"
    del columns["non_embedding_params"]
    found = isoflop(from_columns(columns), count=200)
    assert "C is not 6ND: at the minima C/(6ND) goes from 0.7" in found.why
    assert "embeddings counted in N and not in C" in found.why
    assert found.total_low < found.total < found.total_high


def test_accounting() -> None:
    points = five_sizes()
    plain = against_6nd(points)
    assert plain is not None
    assert (round(plain.low, 9), round(plain.high, 9), round(plain.slope, 9)) == (1, 1, 0)
    assert against_exact(points) is None
    drift = from_columns({"N": points["N"], "D": points["D"], "loss": points["loss"], "C": points["C"] ** 0.97 * 5.0})
    found = against_6nd(drift)
    assert found is not None
    assert found.slope == pytest.approx(-0.03 / 0.97, rel=1e-6)
    assert found.spread == pytest.approx(10**0.09 - 1, rel=1e-6)
    places = [Place(runs, float(np.log(points["N"][runs]).mean())) for runs in budgets_of(points).values()]
    assert "counted in C and not in N" in cause(1 - found.slope, drift, places, 0.01)
    assert cause(1.0, drift, places, 0.01) == ""
    assert "does not explain it" in cause(0.9, points, places, 0.01)


# the bias of windows


def test_windows_off_centre_are_named() -> None:
    scales = (1, 2.85, 8.1, 23)
    centred = isoflop(sweep([1e19, 1e20, 1e21, 1e22], [[k * s * 2.2e8 for k in (0.25, 0.5, 1, 2, 4)] for s in scales]))
    assert centred.biases == ()
    drifting = isoflop(sweep([1e19, 1e20, 1e21, 1e22], [[k * 1e9 for k in (0.1, 0.3, 1, 3, 9)]] * 4))
    assert any("moves towards the larger sizes" in said for said in drifting.biases)
    off = isoflop(sweep([1e19, 1e20, 1e21], [[k * s * 2e8 for k in (0.8, 1, 3, 9, 27)] for s in (1, 2.85, 8.1)]))
    assert any("outer half" in said for said in off.biases)


def test_recipes_that_share_budgets_are_named() -> None:
    points = five_sizes()
    columns = {name: points[name] for name in ("N", "D", "C", "loss")}
    mixed = from_columns({**columns, "recipe": ["a", "b"] * 10})
    assert isoflop(mixed, count=20).biases[0] == "2 recipes or schedules share the budgets"


@given(
    centre=st.floats(18, 24), width=st.floats(0.5, 3), depth=st.floats(0.01, 1), floor=st.floats(0.5, 5),
    at=st.floats(-0.9, 0.9), count=st.integers(3, 9),
)  # fmt: skip
def test_an_exact_parabola_is_recovered(
    centre: float, width: float, depth: float, floor: float, at: float, count: int
) -> None:
    x = np.linspace(centre - width, centre + width, count)
    found = minimum(x, floor + depth * (x - centre - at * width) ** 2)
    assert found.refused == ""
    assert found.x == pytest.approx(centre + at * width, abs=1e-6)
    assert found.loss == pytest.approx(floor, rel=1e-9)
    assert found.curvature == pytest.approx(2 * depth, rel=1e-6)
    assert found.offset == pytest.approx(at, abs=1e-6)
    if count > 4:
        assert found.shift == pytest.approx(0, abs=1e-5)
