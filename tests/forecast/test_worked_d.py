"""Worked numbers, section D, where they need the forecast room; laws of one line are in tests/arithmetic/test_laws."""

import numpy as np
import pytest
from tests.arithmetic.worked import number, printed, q
from tests.forecast.recipes import RIVAL, H

from ridgeline.arithmetic import laws
from ridgeline.core.catalog import law
from ridgeline.core.quantity import derive
from ridgeline.forecast.deciding.crossover import Window, crossover
from ridgeline.forecast.deciding.mismatch import runs
from ridgeline.forecast.fitting.objective import HUBER, LOGLS, LS
from ridgeline.forecast.isoflop import isoflop
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.verdict import risk

SIX = (1e8, 3e8, 1e9, 3e9, 1e10, 3e10)


def test_six_losses() -> None:
    found = runs(FORM, H, SIX, [1e21 / (6 * size) for size in SIX])["loss"]
    assert found.tolist() == [printed(a) for a in ("2.6198", "2.4344", "2.3400", "2.3363", "2.4160", "2.5687")]


def test_parabola_vertex() -> None:
    (budget,) = isoflop(runs(FORM, H, SIX, [1e21 / (6 * size) for size in SIX])).budgets
    assert budget.n == printed("1.951e9")
    assert budget.d == printed("8.542e10")
    assert budget.d / budget.n == printed("43.8")


def test_ladder_exponents() -> None:
    sizes = np.outer([1, 3, 10, 30], np.array([1, 3, 10, 30, 100]) * 1e7)
    compute = np.repeat([1e19, 1e20, 1e21, 1e22], 5)
    found = isoflop(runs(FORM, H, sizes.ravel().tolist(), (compute / (6 * sizes.ravel())).tolist()))
    assert found.n is not None
    assert found.d is not None
    assert found.n.exponent == printed("0.454")
    assert found.d.exponent == printed("0.546")
    assert found.total == printed("1.000")


@pytest.mark.parametrize(("key", "answer"), [("params", "5.37"), ("tokens", "1.86")])
def test_kaplan_at_ten_times_the_compute(key: str, answer: str) -> None:
    grown = derive("grown", "factor**power", "1", factor=q(10, "1"), power=law("kaplan").constants[key])
    assert number(grown) == printed(answer)


def test_objectives_with_one_diverged_run() -> None:
    columns = {"N": np.array([1e7, 1e8, 1e9, 1e10]), "D": np.array([1e10, 1e11, 1e11, 1e12])}
    predicted = FORM.log_loss(H, columns)
    log_y = np.log(np.exp(predicted) + np.array([0, 0, 0, 1.5]))
    ls, logls, huber = (float(o.total(log_y, predicted, np.ones(4))) for o in (LS, LOGLS, HUBER))
    assert 2 * ls == printed("2.250")  # the objectives carry the half of Huber's loss
    assert 2 * logls == printed("0.305852")
    assert huber == printed("0.000553")


@pytest.mark.parametrize(
    ("decades", "width", "score", "level"), [(3, 0.008, "3.5", "moderate"), (5, 0.040, "9.0", "high")]
)
def test_extrapolation_risk(decades: float, width: float, score: str, level: str) -> None:
    found = risk(decades, width)
    assert (found.score, found.level) == (printed(score), level)


def test_crossover_of_law_h_and_its_rival() -> None:
    found = crossover(FORM, (H, RIVAL), None, Window((1e18, 1e22), 1e22))
    assert found.compute == printed("1.609e14")
    assert (found.ahead, found.place) == ("candidate", "below")


def test_growth_of_the_optimum() -> None:
    ends = [laws.optimum(law("law-h"), q(c, "FLOP", "C"), "best") for c in (1e19, 1e25)]
    grown = np.log10(float(number(ends[1].params)) / float(number(ends[0].params))) / 6
    assert grown == printed("0.4516")
