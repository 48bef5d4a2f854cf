"""The ladder that this repository trained, against the runs that were kept back from it."""

import csv
from pathlib import Path

import numpy as np
import pytest

from ridgeline.forecast.forecast import Study, study
from ridgeline.forecast.points import Points
from ridgeline.forecast.reading.read_points import ReadOptions, read_points

TOTAL = ReadOptions(params="total")


@pytest.fixture(scope="module")
def folder(repo: Path) -> Path:
    return repo / "examples" / "ladder"


@pytest.fixture(scope="module")
def held_back(folder: Path) -> Points:
    return read_points(folder / "held_back.csv", TOTAL)


@pytest.fixture(scope="module")
def studied(folder: Path) -> Study:
    return study(read_points(folder / "points.csv", TOTAL))


def test_the_files_are_read_whole(folder: Path) -> None:
    for name, runs in (("points", 25), ("candidate", 15), ("held_back", 4)):
        points = read_points(folder / f"{name}.csv", TOTAL)
        assert (len(points), points.lost) == (runs, ())


def test_the_flops_are_the_exact_count(folder: Path) -> None:
    for name in ("points", "candidate", "held_back"):
        points = read_points(folder / f"{name}.csv", TOTAL)
        assert points["C"] == pytest.approx(points["C_exact"], rel=1e-9)


def test_runs_of_a_budget_have_one_compute(folder: Path) -> None:
    points = read_points(folder / "points.csv", TOTAL)
    for budget in np.unique(points.labels["budget"]):
        assert np.ptp(points["C"][points.labels["budget"] == budget]) < 0.005 * float(budget)


def test_the_interval_holds_the_runs_that_were_kept_back(studied: Study, held_back: Points) -> None:
    assert held_back["C"].min() > 3 * studied.points["C"].max()
    columns = {name: held_back[name] for name in ("N", "D")}
    low, high = studied.interval(columns, np.log10(held_back["C"]) - studied.top)
    assert ((low < held_back["loss"]) & (held_back["loss"] < high)).all()
    assert np.all(high / low < 1.15)  # and says something


def test_half_a_decade_up_it_decides(studied: Study) -> None:
    found = studied.at(1e12)
    assert found.verdict.word == "decide"
    assert found.low < 2.00999 < found.high  # the best of the runs kept back at that compute


def test_the_readme_shows_what_was_measured(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    with (folder / "held_back.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert f"{int(row['params_total']):,} parameters" in text
            assert f"{float(row['loss']):.4f} |" in text
