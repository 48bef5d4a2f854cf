"""Hold-outs: the user's own ladder, and public ones."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ridgeline.core.errors import NotEnoughDataError
from ridgeline.forecast.forecast import Options
from ridgeline.forecast.holdout import calibrate, hold_out
from ridgeline.forecast.points import Points
from ridgeline.forecast.rollout import compute
from ridgeline.forecast.synthetic import simulate

QUICK = Options(draws=60)


def read(path: Path, keep: pl.Expr, **labels: str) -> Points:
    """N, D, C and loss of some rows."""
    table = pl.read_csv(path, infer_schema_length=None).filter(keep)
    columns = {name: table[name].cast(pl.Float64).to_numpy() for name in ("N", "D", "C", "loss")}
    return Points(columns, {name: table[column].to_numpy().astype(np.str_) for name, column in labels.items()})


def test_a_hold_out_trains_below_and_asks_above() -> None:
    points = simulate("epoch", "gaussian", 0).points
    row = hold_out(points, 1.0, QUICK)
    place = compute(points)
    assert row.trained == int((place <= place.max() - 1).sum())
    assert set(row.tested) == set(np.flatnonzero(place > place.max() - 1))
    assert row.coverage == 1
    assert row.median < 0.01
    assert row.form == "chinchilla"
    assert np.array_equal(row.errors, row.plain)


def test_the_losses_held_out_are_not_seen() -> None:
    points = simulate("isoflop", "gaussian", 0).points
    moved = points["loss"] * np.where(compute(points) > compute(points).max() - 1, 2.0, 1.0)
    other = Points({**points.columns, "loss": moved})
    one, two = (hold_out(p, 1.0, QUICK) for p in (points, other))
    assert np.allclose(two.errors, one.errors - np.log(2))
    assert two.coverage == 0


def test_calibrate_names_what_was_not_possible() -> None:
    found = calibrate(simulate("isoflop", "gaussian", 1).points, QUICK, (1.0, 3.0))
    assert [row.decades for row in found.rows] == [1.0]
    assert found.skipped[0].startswith("3 decades")
    assert 0 <= found.coverage <= 1


def test_too_few_runs_below() -> None:
    with pytest.raises(NotEnoughDataError, match="3 decades"):
        hold_out(simulate("isoflop", "gaussian", 1).points, 3.0, QUICK)


@pytest.mark.data
def test_a_mismatched_schedule_is_refused_without_its_label(data_dir: Path) -> None:
    chosen = {"dataset": "rw", "hparams": "base", "warmup": "long", "decay": "kaplan", "param_count": "standard"}
    keep = pl.all_horizontal(pl.col(name) == value for name, value in chosen.items())
    row = hold_out(read(data_dir / "scaling/porian/isoflop_points.csv", keep), 1.0, QUICK)
    assert row.verdict.word == "refuse"
    assert "floor" in " ".join(row.verdict.because)


@pytest.mark.data
def test_a_change_of_recipe_is_refused_by_its_label(data_dir: Path) -> None:
    points = read(data_dir / "scaling/loss_to_loss/runs.csv", pl.col("data") == "starcoder", recipe="split")
    row = hold_out(points, 1.0, QUICK)
    assert row.verdict.word == "refuse"
    assert "extrapolation_1e21" in row.verdict.because[0]


@pytest.mark.data
def test_the_coupled_form_is_used_where_it_has_a_record(data_dir: Path) -> None:
    row = hold_out(read(data_dir / "scaling/llama3_isoflop/llama_3__raw_loss.csv", pl.col("loss") > 0), 1.0, QUICK)
    assert row.form.startswith("coupled")
    assert row.median < 0.5 * row.plain_median
    assert row.coverage == 1
    assert row.width < 0.12
