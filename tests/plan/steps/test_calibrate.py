"""A user's own steps become one factor, by as much as their number allows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.steps.calibrate import Run, calibrate, read_run
from ridgeline.plan.steps.expected import expect, known, residuals

FILE: dict[str, Any] = {
    "model": {"layers": 32, "d_model": 4096, "d_ff": 14336, "heads": 32, "kv_heads": 8, "vocab": 128256},
    "cluster": "64xH100", "sequences": 256, "seq": 8192, "plan": {"tp": 2, "zero": 1}, "step_s": [5.0, 5.2, 9.0],
}  # fmt: skip


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(FILE | changes), encoding="utf-8")
    return path


def times(run: Run, factor: float) -> Run:
    predicted = expect(run.spec, run.cluster, run.batch, run.layout, run.software).steps.step_s[0]
    return Run(run.spec, run.cluster, run.batch, run.layout, run.software, (predicted * factor,))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(written(tmp_path_factory.mktemp("run")))


def test_a_run_file(run: Run) -> None:
    assert (run.layout.row(0)["dp"], run.cluster.chips, run.step_s) == (32, 64, (5.0, 5.2, 9.0))


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
def test_one_run_moves_the_prediction_part_of_the_way(run: Run, factor: float) -> None:
    found = calibrate([times(run, factor)])
    assert min(1, factor) <= found.factor <= max(1, factor)
    assert found.shrink < 1
    assert abs(np.log(found.factor)) < abs(np.log(factor)) or factor == 1


@given(st.integers(1, 12))
def test_more_runs_are_believed_more_and_leave_the_width_of_one_configuration(run: Run, count: int) -> None:
    few, many = (calibrate([times(run, 1.2)] * n) for n in (count, count + 1))
    assert few.factor < many.factor < 1.2
    assert few.shrink > many.shrink > known(run.spec).spread / residuals(run.spec).spread


def test_a_stall_counts_little(run: Run) -> None:
    steps = Run(run.spec, run.cluster, run.batch, run.layout, run.software, (5.0, 5.0, 50.0))
    calm = Run(run.spec, run.cluster, run.batch, run.layout, run.software, (5.0,))
    assert calibrate([steps]) == calibrate([calm])


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"step_s": -1.0}, "$.step_s"), ({"step_s": []}, "$.step_s"), ({"step_s": "5 s"}, "$.step_s"),
        ({"seq": 0}, "$.seq"), ({"cluster": "64 chips"}, "cluster"), ({"plan": {"tp": 3}}, "$.plan"),
        ({"plan": {"speed": 2}}, "plan"), ({"colour": "blue"}, "$"),
    ],
)  # fmt: skip
def test_bad_files_name_the_place(tmp_path: Path, changes: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        read_run(written(tmp_path, **changes))
    assert where in caught.value.where
    assert "run.json" in caught.value.where


def test_a_plan_that_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError, match="heads over tp"):
        read_run(written(tmp_path, plan={"tp": 64}))


def test_no_runs() -> None:
    with pytest.raises(InputError, match="at least one measured run"):
        calibrate([])
