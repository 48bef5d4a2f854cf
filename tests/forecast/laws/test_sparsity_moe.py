"""Sparsity of mixtures of experts: formula, its own constants, and the far corner of the benchmark."""

from pathlib import Path

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws.sparsity_moe import FORM
from ridgeline.forecast.points import Points

PUBLISHED = ladders.constants("abnar-2025")
LADDER = ladders.mesh(N=np.geomspace(1e8, 1e10, 5), D=np.geomspace(1e9, 1e11, 4), sparsity=[0, 0.5, 0.75, 0.9, 0.95])


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, LADDER, PUBLISHED)


def test_its_own_losses_come_back_and_the_terms_that_trade_do_not_claim_success() -> None:
    found = fit(ladders.observed(FORM, LADDER, PUBLISHED), FORM)
    assert np.abs(found.residuals).max() < 2e-5
    assert found.constants["beta"] == pytest.approx(PUBLISHED["beta"], rel=1e-3)
    assert found.value < 1e-8


def corner(folder: Path, part: str) -> dict[str, np.ndarray]:
    """Total parameters, the tokens of both stages, and the inactive share of the parameters."""
    names = {"ratio": "P", "active": "N_active", "first": "D1", "second": "D2", "loss": "loss"}
    read = ladders.table(folder / f"sparsity_scaling_law_{part}.csv", **names)
    return {
        "N": read["ratio"] * read["active"] * 1e9,
        "D": (read["first"] + read["second"]) * 1e9,
        "sparsity": 1 - 1 / read["ratio"],
        "loss": read["loss"],
    }


@pytest.mark.data
def test_far_corner_of_the_benchmark(data_dir: Path) -> None:
    train, test = (corner(data_dir / "scaling/scalebench", part) for part in ("train", "test"))
    median, largest, explained = ladders.errors(fit(Points(train), FORM).predict(test), test["loss"])
    assert explained > 0.37  # what the benchmark's own law reaches on all data
    assert median < 0.02
    assert largest < 0.035
