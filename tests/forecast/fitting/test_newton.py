"""The minimiser: batches, boxes, held parameters, singular problems, and a reference to compare with."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.forecast.ladders import LAW_H, noisy

from ridgeline.forecast.fitting.newton import Data, Side, minimise, model, solve
from ridgeline.forecast.fitting.objective import HUBER, LAD, LOGLS, LS, Objective
from ridgeline.forecast.form import Form
from ridgeline.forecast.laws import chinchilla, coupled

FORM = chinchilla.FORM
POINTS = noisy(noise=0.004, seed=3)
COLUMNS = {name: POINTS[name] for name in ("N", "D")}
LOG_Y = np.log(POINTS["loss"])
ONES = np.ones(len(POINTS))
TRUTH = FORM.internal(LAW_H)


def problem(weights: np.ndarray = ONES, log_y: np.ndarray = LOG_Y) -> Data:
    return Data(FORM, COLUMNS, log_y, weights)


def test_solve_against_numpy_with_held_and_indefinite_ones() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 4, 4))
    matrix = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(4)
    matrix[5] = -matrix[5]
    right = rng.standard_normal((6, 4))
    held = np.zeros((6, 4), bool)
    held[2, 1] = True
    found, sound = solve(matrix, right, held)
    assert sound.tolist() == [True] * 5 + [False]
    assert found[:2] == pytest.approx(np.linalg.solve(matrix[:2], right[:2, :, None])[..., 0])
    free = np.ix_([0, 2, 3], [0, 2, 3])
    assert found[2, [0, 2, 3]] == pytest.approx(np.linalg.solve(matrix[2][free], right[2, [0, 2, 3]]))
    assert found[2, 1] == 0
    assert np.all(found[5] == 0)


@pytest.mark.parametrize(
    "which", [HUBER, LS, LOGLS, Objective("huber", delta=0.05)], ids=lambda o: f"{o.name}{o.delta}"
)
def test_no_general_optimiser_gets_lower(which: Objective) -> None:
    found = minimise(problem(), FORM.starts(COLUMNS, LOG_Y, ONES), which)
    assert found.converged.all()

    def value(theta: np.ndarray) -> float:
        return float(which.total(LOG_Y, FORM.log_loss(theta, COLUMNS), ONES))

    for seed in range(4):
        start = found.theta[0] + 0.1 * np.random.default_rng(seed).standard_normal(5)
        reference = minimize(
            value, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-10, "fatol": 1e-16}
        )
        assert found.value[0] <= reference.fun * (1 + 1e-9)


def test_gradient_vanishes_at_the_end() -> None:
    found = minimise(problem(), TRUTH[None], HUBER)
    local = model(problem(), found.theta, Side(LOG_Y, ONES), HUBER)
    assert np.abs(local.gradient).max() < 1e-9
    assert np.linalg.eigvalsh(local.hessian[0])[0] > 0


def test_a_batch_is_its_problems_one_by_one() -> None:
    rng = np.random.default_rng(1)
    weights = rng.multinomial(len(POINTS), ONES / len(POINTS), size=700).astype(float)  # several chunks
    batch = minimise(problem(weights), TRUTH[None], HUBER)
    assert batch.converged.all()
    for row in (0, 350, 699):
        alone = minimise(problem(weights[row]), TRUTH[None], HUBER)
        assert batch.value[row] == pytest.approx(alone.value[0], rel=1e-9)
    moved = LOG_Y + 0.001 * rng.standard_normal((3, len(POINTS)))
    several = minimise(problem(log_y=moved), TRUTH[None], LOGLS)
    assert several.theta[2] == pytest.approx(minimise(problem(log_y=moved[2]), TRUTH[None], LOGLS).theta[0], rel=1e-6)


@pytest.mark.parametrize("which", [HUBER, LOGLS, LS, LAD], ids=lambda o: o.name)
def test_repeating_or_weighting_all_data_changes_nothing(which: Objective) -> None:
    once = minimise(problem(), TRUTH[None], which)
    times = 1000.0
    heavy = minimise(problem(ONES * times), TRUTH[None], which)
    light = minimise(problem(ONES / times), TRUTH[None], which)
    twice = Data(FORM, {k: np.tile(v, 2) for k, v in COLUMNS.items()}, np.tile(LOG_Y, 2), np.tile(ONES, 2))
    tiled = minimise(twice, TRUTH[None], which)
    for other, size in ((heavy, times), (light, 1 / times), (tiled, 2.0)):
        assert other.converged.all()
        assert other.value[0] == pytest.approx(size * once.value[0], rel=1e-7)
        assert other.theta[0] == pytest.approx(once.theta[0], rel=1e-3)


def test_far_starts_come_to_the_same_end() -> None:
    starts = np.array([[3.0, 9.0, -3.0, 0.2, 0.6], [12.0, 3.0, 0.2, 0.7, 0.15], TRUTH + 0.5])
    found = minimise(problem(), starts, LOGLS)
    assert found.values[0] == pytest.approx(found.value[0], rel=1e-6)


def test_held_parameters_stay() -> None:
    held = np.array([False, False, True, False, False])
    start = TRUTH.copy()
    start[2] = np.log(1.5)
    found = minimise(Data(FORM, COLUMNS, LOG_Y, ONES, held=held), start[None], LOGLS)
    assert found.theta[0, 2] == start[2]
    assert found.converged.all()
    assert found.value[0] > minimise(problem(), TRUTH[None], LOGLS).value[0]


def test_a_coefficient_that_wants_to_be_zero_ends_on_its_bound() -> None:
    loss = 50.0 / COLUMNS["N"] ** 0.1 + 80.0 / COLUMNS["D"] ** 0.15 - 0.3
    found = minimise(problem(log_y=np.log(loss)), TRUTH[None], LOGLS)
    assert found.converged.all()
    assert found.theta[0, 2] == FORM.box[0][2]


def test_one_token_count_still_converges() -> None:
    columns = {"N": COLUMNS["N"], "D": np.full(len(POINTS), 2e10)}
    log_y = FORM.log_loss(TRUTH, columns) + 0.003 * np.random.default_rng(4).standard_normal(len(POINTS))
    found = minimise(Data(FORM, columns, log_y, ONES), FORM.starts(columns, log_y, ONES), LOGLS)
    assert found.converged.all()
    flat = found.theta[0]  # whatever the split of floor and data term is, their sum is identified
    beside = flat.copy()
    beside[1] += 0.05
    worse = LOGLS.total(log_y, FORM.log_loss(beside, columns), ONES)
    assert worse > found.value[0]


def test_a_tilt_moves_the_target() -> None:
    plain = minimise(problem(), TRUTH[None], LOGLS)
    tilt = np.zeros((2, len(POINTS)))
    tilt[:, 5] = (1e-5, -1e-5)
    found = minimise(Data(FORM, COLUMNS, LOG_Y, ONES, tilt=tilt), plain.theta, LOGLS)
    here, below, above = (FORM.log_loss(t, COLUMNS)[5] for t in (plain.theta[0], *found.theta))
    assert below < here < above


def test_a_shared_error_is_weighed_as_its_covariance_says() -> None:
    group = np.arange(len(POINTS)) % 3
    shared, members = 0.6, np.eye(3)[group]
    coupling = members * np.sqrt(shared / (1 - shared + shared * members.sum(axis=0)))
    found = minimise(Data(FORM, COLUMNS, LOG_Y, ONES, coupling), TRUTH[None], LOGLS)
    assert found.converged.all()
    covariance = (1 - shared) * np.eye(len(POINTS)) + shared * (members @ members.T)
    residual = LOG_Y - FORM.log_loss(found.theta[0], COLUMNS)
    expected = 0.5 * (1 - shared) * residual @ np.linalg.solve(covariance, residual)
    assert found.value[0] == pytest.approx(expected)
    slopes = FORM.gradient(found.theta[0], COLUMNS)[1]
    assert np.abs(slopes.T @ np.linalg.solve(covariance, residual)).max() < 1e-7


def test_a_form_without_derivatives_of_its_own_goes_the_same_way() -> None:
    class Plain(type(coupled.FORM)):  # type: ignore[misc]
        expand = Form.expand
        gradient = Form.gradient
        curvature = Form.curvature

    own = coupled.FORM
    plain = Plain(
        own.slug, own.title, own.kind, own.inputs, own.parameters, own.formula, own.text, own.valid, own.source
    )
    starts = own.starts(COLUMNS, LOG_Y, ONES)[:3]
    one, other = (minimise(Data(form, COLUMNS, LOG_Y, ONES), starts, LOGLS) for form in (own, plain))
    assert other.converged.all()
    assert other.value[0] == pytest.approx(one.value[0], rel=1e-8)
