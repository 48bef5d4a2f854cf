"""``scripts/fit_surfaces.py``: the fit finds what made the data, and the stored files are what it makes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scripts.fit_surfaces import (
    SYSTEMS,
    Rows,
    check,
    fit,
    gemm_tables,
    nccl_table,
    one_system,
    spread,
    without_fallbacks,
)

from ridgeline.core import surfaces

NODES = ((256.0, 1024.0, 4096.0), (256.0, 4096.0), (256.0, 4096.0))


def rows(count: int, noise: float, seed: int = 0) -> Rows:
    """Rows whose ln(time/reference) is linear in logarithms, with one term of weight 0.7, and a tenth far off."""
    draw = np.random.default_rng(seed)
    m, n, k = (np.exp(draw.uniform(np.log(256), np.log(4096), count)) for _ in range(3))
    term = draw.random(count)
    y = 0.1 * np.log(m) - 0.05 * np.log(n) + 0.7 * term + noise * draw.standard_normal(count)
    y[: count // 10] += 2.0
    column = draw.integers(0, 40, count)
    return Rows((m, n, k), term[:, None], y, 2 * m * n * k, column, np.full(count, 0.5), 1e-6)


def test_the_fit_finds_the_law_despite_outliers() -> None:
    model = fit(NODES, rows(4000, 0.02))
    clean = rows(500, 0.0, seed=1)
    off = model.predict(clean) - clean.y
    assert np.median(np.abs(off)) < 0.01
    assert model.values[-1] == pytest.approx(0.7, abs=0.03)


def test_a_node_without_rows_follows_its_neighbours() -> None:
    held = rows(4000, 0.0)
    few = held[held.coordinates[0] < 1000]
    value = fit(NODES, few).values[:-1].reshape(3, 2, 2)
    step = np.diff(value, axis=0)
    assert step[1] == pytest.approx(step[0], abs=0.05)


def test_a_window_costs_no_less_a_pair_than_none() -> None:
    draw = np.random.default_rng(0)
    seq, blocks, seen = (
        np.exp(draw.uniform(np.log(low), np.log(high), 2000)) for low, high in ((4096, 8192), (64, 1024), (0.1, 1))
    )
    made = Rows((seq, blocks, seen), np.zeros((2000, 1)), np.log(seen), seq, seq.astype(np.int64), seen, 1e-6)
    value = fit(((4096.0, 8192.0), (64.0, 1024.0), (0.1, 0.4, 1.0)), made).values[:-1].reshape(-1, 3)
    assert np.all(value >= value[:, -1:])
    assert value == pytest.approx(0.0, abs=0.05)


def test_the_interval_holds_four_fifths_of_what_was_held_out() -> None:
    made = check(NODES, rows(4000, 0.05))
    stored = spread(made)
    band = np.searchsorted(stored["edges_flops"], made.flops)
    inside = (made.residuals >= np.array(stored["low"])[band]) & (made.residuals <= np.array(stored["high"])[band])
    assert 0.77 < inside.mean() < 0.83
    assert set(made.errors) == {"random", "columns", "largest"}


def test_a_head_dim_far_below_its_neighbours_is_left_out() -> None:
    shares = {"64": 0.4, "128": 0.6, "192": 0.1, "256": 0.6}
    by_dim: dict[str, dict[str, Any]] = {dim: {"ceiling": [share, 0.0, 1.0]} for dim, share in shares.items()}
    assert list(without_fallbacks(by_dim)) == ["64", "128", "256"]


@pytest.mark.data
@pytest.mark.slow
def test_a_stored_file_is_what_the_script_makes(data_dir: Path) -> None:
    attention = pl.read_csv(data_dir / "plan" / "attention_fwd_measured.csv.gz", infer_schema_length=None)
    made = one_system("a100_sxm", SYSTEMS["a100_sxm"], gemm_tables(data_dir), attention, nccl_table(data_dir), {})
    stored = json.loads((surfaces.FOLDER / "a100_sxm.json").read_text(encoding="utf-8"))
    again = json.loads(json.dumps(made))
    for kernel in ("gemm", "attention"):
        for key, item in stored[kernel].items():
            other = again[kernel].pop(key)
            assert np.asarray(other.pop("log_ratio")) == pytest.approx(np.asarray(item.pop("log_ratio")), abs=2)
            assert other["rows"] == item["rows"]
            assert other["held_out"] == {
                name: pytest.approx(pair, abs=0.002) for name, pair in item["held_out"].items()
            }
    assert again["collectives"] == stored["collectives"]
    assert again["source"] == stored["source"]
