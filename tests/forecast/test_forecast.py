"""The forecast as a whole."""

import time
from pathlib import Path

import numpy as np
import pytest

from ridgeline.core.errors import InputError, NotEnoughDataError
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.forecast import Options, Study, forecast, study
from ridgeline.forecast.forms import form
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.points import Points
from ridgeline.forecast.reading.read_points import ReadOptions, read_points
from ridgeline.forecast.synthetic import simulate

MADE = simulate("epoch", "gaussian", 2)
TARGET = float(MADE.points["C"].max() * 10)


@pytest.fixture(scope="module")
def found() -> Study:
    """One ladder, studied."""
    return study(MADE.points, Options(draws=60))


def test_on_chinchilla_data_it_is_plain_chinchilla(found: Study) -> None:
    told = found.at(TARGET)
    plain = fit(MADE.points, CHINCHILLA)
    n, d = CHINCHILLA.optimum(plain.theta, np.array(TARGET))
    assert told.loss == pytest.approx(float(plain.predict({"N": n[None], "D": d[None]})[0]))
    assert told.n == pytest.approx(float(n))
    assert told.d == pytest.approx(float(d))
    assert told.decades == pytest.approx(1)
    assert told.low < told.loss < told.high
    assert told.verdict.word != "refuse"
    assert told.because == told.verdict.because
    assert [member.chosen for member in told.members].index(True) == 0
    assert sum(member.weight for member in told.members) == pytest.approx(1)
    assert told.gain > 0
    assert told.worth > 1


def test_given_n_and_d(found: Study) -> None:
    told = found.at(n=1e11, d=2e12)
    assert told.compute == pytest.approx(6 * 1e11 * 2e12, rel=1e-6)
    assert told.loss == pytest.approx(float(found.predict({"N": np.array([1e11]), "D": np.array([2e12])})[0]))


def test_the_same_seed_gives_the_same_forecast() -> None:
    options = Options(draws=40, seed=3)
    one, two = (forecast(MADE.points, TARGET, options) for _ in range(2))
    assert (one.loss, one.low, one.high) == (two.loss, two.low, two.high)


def test_a_coupled_truth_is_found_out_by_rollouts() -> None:
    n, d = (a.ravel() for a in np.meshgrid(np.geomspace(1e8, 6e9, 10), np.geomspace(2e9, 4e11, 12)))
    loss = (0.3 + (4.0e3 / n**0.4 + 2.0e4 / d**0.43) ** 0.45) * np.exp(np.random.default_rng(0).normal(0, 1e-3, len(n)))
    told = forecast(Points({"N": n, "D": d, "loss": loss}), 1e24, Options(draws=40))
    truth = 0.3 + (4.0e3 / told.n**0.4 + 2.0e4 / told.d**0.43) ** 0.45
    assert told.fit.form.kind == "coupled"
    assert "of that of Chinchilla" in told.choice.because
    assert told.low < truth < told.high
    assert abs(told.loss - truth) < abs(told.members[0].loss - truth)


@pytest.mark.parametrize("target", [{}, {"n": 1e9}, {"compute": 1e23, "n": 1e9}, {"n": 1e9, "d": -1.0}])
def test_bad_targets(found: Study, target: dict[str, float]) -> None:
    with pytest.raises(InputError):
        found.at(**target)


def test_a_form_that_reads_more_is_refused() -> None:
    with pytest.raises(InputError, match="a law of N and D"):
        study(MADE.points, Options(forms=(form("data-constrained"),)))


def test_two_runs_are_too_few() -> None:
    with pytest.raises(InputError, match="at least 5"):
        study(MADE.points.take(np.arange(2)))


@pytest.mark.data
def test_the_forecast_of_240_runs_is_quick(data_dir: Path) -> None:
    points = read_points(data_dir / "scaling/chinchilla_epoch/points.csv", ReadOptions())
    begun = time.process_time()
    told = forecast(points, 1e25)
    assert time.process_time() - begun < 4
    assert told.fit.form is CHINCHILLA
    assert told.decades == pytest.approx(2.9, abs=0.1)
    assert told.verdict.word != "decide"


def test_a_target_below_the_ladder_is_refused(found: Study) -> None:
    with pytest.raises(InputError, match="the smallest run"):
        found.at(float(MADE.points["C"].min()) / 3)
    with pytest.raises(InputError, match="the smallest run"):
        found.at(n=1e6, d=1e6)


def test_losses_that_never_differ_are_refused() -> None:
    same = Points({**MADE.points.columns, "loss": np.full(len(MADE.points), 3.0)})
    with pytest.raises(InputError, match="losses that differ"):
        study(same)


def test_an_interval_without_end_is_no_forecast(found: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Study, "interval", lambda *_: (np.array([0.0]), np.array([np.inf])))
    with pytest.raises(NotEnoughDataError, match="bound the loss"):
        found.at(TARGET)
