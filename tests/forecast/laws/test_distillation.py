"""Distillation: its limits, the gap in capacity, and its own constants back."""

import numpy as np
import pytest
from tests.forecast.laws import ladders

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.laws import coupled
from ridgeline.forecast.laws.distillation import FORM

PUBLISHED = ladders.constants("busbridge-2025-distillation")
SUPERVISED = coupled.FORM.internal(ladders.constants("busbridge-2025"))


def ladder() -> dict[str, np.ndarray]:
    columns = ladders.mesh(
        N=np.geomspace(1e8, 5e9, 5), D=np.geomspace(4e9, 2e11, 5), teacher_loss=np.linspace(1.8, 2.9, 6)
    )
    return {**columns, "supervised_loss": np.exp(coupled.FORM.log_loss(SUPERVISED, columns))}


def test_formula_and_derivatives() -> None:
    ladders.assert_formula_and_slopes(FORM, ladder(), PUBLISHED)


def test_a_student_never_beats_its_teacher_and_meets_it_in_the_limit() -> None:
    theta, columns = FORM.internal(PUBLISHED), ladder()
    assert np.all(np.exp(FORM.log_loss(theta, columns)) / columns["teacher_loss"] > 1 - 1e-14)
    large = {"N": np.array([1e16]), "D": np.array([1e18]), "teacher_loss": np.array([2.0])}
    large["supervised_loss"] = np.exp(coupled.FORM.log_loss(SUPERVISED, large))
    assert np.exp(FORM.log_loss(theta, large))[0] == pytest.approx(2.0, rel=1e-3)


def test_a_teacher_can_be_too_strong() -> None:
    theta = FORM.internal(PUBLISHED)
    student = {"N": np.array([3e8]), "D": np.array([3e10])}
    alone = float(np.exp(coupled.FORM.log_loss(SUPERVISED, student))[0])
    teacher, loss = FORM.best_teacher(theta, 3e8, 3e10, alone)
    assert teacher < loss < alone + 0.2
    for other in (teacher - 0.3, teacher + 0.3):
        columns = {**student, "teacher_loss": np.array([other]), "supervised_loss": np.array([alone])}
        assert np.exp(FORM.log_loss(theta, columns))[0] > loss


def test_recovers_its_own_constants() -> None:
    found = fit(ladders.observed(FORM, ladder(), PUBLISHED), FORM)
    assert found.converged
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-4)


def test_a_ladder_of_students_below_their_teachers_still_starts() -> None:
    points = ladders.observed(FORM, ladder(), PUBLISHED)
    below = {**points.columns, "loss": points["teacher_loss"] * 0.99}
    found = FORM.starts(below, np.log(below["loss"]), np.ones(len(points)))
    assert np.all(np.isfinite(found))
