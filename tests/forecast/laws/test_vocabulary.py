"""The vocabulary law: its derivatives, what it recovers, and the authors' runs."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import HUBER, LOGLS
from ridgeline.forecast.form import Form
from ridgeline.forecast.laws.vocabulary import FORM, tokens
from ridgeline.forecast.points import Points

PUBLISHED = {symbol: float(law("tao-vocabulary").constants[symbol].value) for symbol in FORM.symbols}
WIDTHS = {33222784: 512, 84834176: 768, 150834176: 768, 316445568: 1024, 631668352: 1536, 1129891136: 2048}


def ladder(count: int = 200) -> Points:
    rng = np.random.default_rng(0)
    columns = {"N_nv": 10 ** rng.uniform(7.5, 9.5, count), "N_v": 10 ** rng.uniform(5.5, 9, count)}
    columns["D"] = 10 ** rng.uniform(8.5, 11.5, count)
    return Points({**columns, "ratio": np.exp(FORM.log_loss(FORM.internal(PUBLISHED), columns))})


def test_by_hand() -> None:
    columns = {"N_nv": np.array([302e6]), "N_v": np.array([32.8e6]), "D": np.array([30e9])}
    by_hand = -5.533 + 1.831 / 302**0.447 + 0.196 / 32.8**0.671 + 2.124 / 30**0.447
    assert FORM.log_loss(FORM.internal(PUBLISHED), columns)[0] == pytest.approx(by_hand)
    assert PUBLISHED["alpha1"] == PUBLISHED["beta"]  # tied by the authors


def test_derivatives_are_those_of_the_form() -> None:
    points = ladder(40)
    theta = np.stack([FORM.internal(PUBLISHED), FORM.internal(PUBLISHED) * 1.1])
    value, slopes = FORM.gradient(theta, points.columns)
    assert value == pytest.approx(FORM.log_loss(theta, points.columns))
    assert slopes == pytest.approx(Form.gradient(FORM, theta, points.columns)[1], abs=1e-12)
    weights = np.random.default_rng(1).random((2, 40))
    expected = Form.curvature(FORM, theta, points.columns, weights)
    assert FORM.curvature(theta, points.columns, weights) == pytest.approx(expected, abs=1e-4)


def test_a_fit_finds_what_made_the_points() -> None:
    found = fit(ladder(), FORM, LOGLS)
    assert found.converged
    assert found.at_bound == ()
    assert found.constants == pytest.approx(PUBLISHED, rel=1e-4)


def test_tokens_of_a_vocabulary() -> None:
    share = tokens(np.full(2, 1e9), np.array([4096.0, 96256.0])) / 1e9
    v = np.log(np.array([4.096, 96.256]))
    assert share == pytest.approx(1.20470122 - 0.15811069 * v + 0.00639222 * v**2)
    with pytest.raises(InputError, match=r"Expected vocabularies of 1 or more, got 0\.5"):
        tokens(np.ones(1), np.array([0.5]))


def runs(data_dir: Path, part: str) -> tuple[Points, np.ndarray, np.ndarray]:
    table = pl.read_csv(data_dir / "scaling" / "scalebench" / f"vocab_scaling_law_{part}.csv")
    size, entries = table["non_vocab_parameters"].to_numpy(), table["vocab_size"].to_numpy()
    characters = table["num_characters"].to_numpy()
    width = np.array([WIDTHS[int(n)] for n in size], float)
    columns = {"N_nv": size, "N_v": entries * width, "D": tokens(characters, entries)}
    return Points({**columns, "ratio": np.exp(table["unigram_normalized_loss"].to_numpy())}), characters, entries


def explained(points: Points, log_ratio: np.ndarray) -> float:
    """R2 of L_u."""
    y = np.log(points["ratio"])
    return float(1 - np.sum((y - log_ratio) ** 2) / np.sum((y - y.mean()) ** 2))


@pytest.mark.data
def test_the_published_constants_hold_for_the_vocabulary_in_thousands_alone(data_dir: Path) -> None:
    points, characters, entries = runs(data_dir, "train")
    theta = FORM.internal(PUBLISHED)
    assert explained(points, FORM.log_loss(theta, points.columns)) == pytest.approx(0.982, abs=1e-3)
    as_stated = {**points.columns, "D": tokens(characters, entries * 1e3)}  # v = V in the paper's curve
    assert explained(points, FORM.log_loss(theta, as_stated)) < 0.2
    off = FORM.log_loss(theta, as_stated) - np.log(points["ratio"])
    assert float(off.mean()) == pytest.approx(0.59, abs=0.01)
    in_characters = {**points.columns, "D": characters}
    assert explained(points, FORM.log_loss(theta, in_characters)) == pytest.approx(0.954, abs=1e-3)


@pytest.mark.data
@pytest.mark.parametrize(("objective", "least"), [(HUBER, 0.97), (LOGLS, 0.98)])
def test_a_fit_forecasts_the_largest_vocabulary(data_dir: Path, objective: object, least: float) -> None:
    train, test = runs(data_dir, "train")[0], runs(data_dir, "test")[0]
    found = fit(train, FORM, objective)  # type: ignore[arg-type]
    assert found.converged
    assert "alpha2" in found.at_bound  # four doublings of the vocabulary do not show where it ends
    assert explained(test, np.log(found.predict(test.columns))) > least
