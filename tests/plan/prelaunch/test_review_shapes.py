"""Matmuls as one rank runs them."""

import pytest
from tests.plan.reviews import facts, incident

from ridgeline.plan.prelaunch.review_shapes import matmul_rows


def test_sides_after_tensor_parallelism() -> None:
    rows = {row.name: row for row in matmul_rows(facts({"tp": 4}))}
    assert (rows["gate_proj"].m, rows["gate_proj"].k, rows["gate_proj"].n) == (4096, 4096, 2 * 14336 // 4)
    assert (rows["down_proj"].k, rows["down_proj"].n) == (14336 // 4, 4096)
    assert rows["head"].n == 131072 // 4


def test_weights_are_shares_and_rates_below_the_peak() -> None:
    rows = matmul_rows(facts())
    assert sum(row.weight for row in rows) == pytest.approx(1)
    assert all(0 < row.rate < 1 and 0 <= row.wave < 1 and row.low < 1 < row.high for row in rows)
    assert all(row.measured for row in rows)


def test_a_device_without_a_surface_is_not_measured() -> None:
    assert not any(row.measured for row in matmul_rows(incident()))


def test_fewer_rows_run_slower() -> None:
    slow, fast = ({r.name: r.rate for r in matmul_rows(facts(seq=seq, sequences=1024))} for seq in (512, 8192))
    assert all(slow[name] < fast[name] for name in ("gate_proj", "down_proj", "o_proj"))
