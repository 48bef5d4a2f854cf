"""Learning-rate and batch laws: what each sets, how far apart they are, and the sweep behind Step Law."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ridgeline.core import catalog
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, given
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import LOGLS
from ridgeline.forecast.laws import hyperparameters as hyper
from ridgeline.forecast.laws.hyperparameters import PowerLaw, advise, near_best
from ridgeline.forecast.points import Points

FORMS = [item for item in vars(hyper).values() if isinstance(item, PowerLaw)]


def sizes(params: float, tokens: float) -> tuple[Quantity, Quantity]:
    return given("params", params, "param"), given("tokens", tokens, "token")


def test_every_law_by_hand() -> None:
    found = advise(*sizes(1e9, 2e10))
    c = 6 * 1e9 * 2e10
    lr = {"step-law-lr": 1.79 * 1e9**-0.713 * 2e10**0.307, "deepseek-lr": 0.3118 * c**-0.125,
          "skaling-lr": 0.0709 * 6e9**-0.4303 * 2e10**0.2785}  # fmt: skip
    batch = {"step-law-batch": 0.58 * 2e10**0.571, "deepseek-batch": 0.292 * c**0.3271,
             "skaling-batch": 896.07 * 6e9**0.231}  # fmt: skip
    assert {slug: item.value for slug, item in found.lr.items()} == pytest.approx(lr)
    assert {slug: item.value for slug, item in found.batch.items()} == pytest.approx(batch)
    assert {item.unit for item in found.batch.values()} == {"token"}
    assert found.lr_spread.value == pytest.approx(max(lr.values()) / min(lr.values()))
    assert found.batch_spread.value == pytest.approx(max(batch.values()) / min(batch.values()))


def test_the_laws_disagree_more_at_a_flagship_and_say_that_it_is_outside() -> None:
    small, large = advise(*sizes(1e9, 2e10)), advise(*sizes(70e9, 15e12))
    assert 3 < small.lr_spread.value < 4
    assert large.lr_spread.value > 10
    assert large.batch_spread.value > 50
    assert small.outside == {}
    assert large.outside["step-law-lr"] == "params 2.15e+08 to 1.07e+09, tokens 4e+09 to 1e+11"
    assert set(large.unread) == {"deepseek-lr", "deepseek-batch", "skaling-lr", "skaling-batch"}
    # twice the tokens: up by Step Law, down by DeepSeek
    more = advise(*sizes(1e9, 4e10))
    assert more.lr["step-law-lr"].value > small.lr["step-law-lr"].value
    assert more.lr["deepseek-lr"].value < small.lr["deepseek-lr"].value


def test_candidates_go_through_the_same_formula() -> None:
    params = given("params", np.array([1e9, 7e9]), "param")
    found = advise(params, given("tokens", 2e10, "token"))
    assert found.lr["step-law-lr"].value == pytest.approx(
        [advise(*sizes(n, 2e10)).lr["step-law-lr"].value for n in (1e9, 7e9)]
    )
    assert list(found.outside) == ["step-law-batch", "step-law-lr"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.slug)
def test_a_form_and_its_published_law_agree_and_a_fit_finds_it(form: PowerLaw) -> None:
    law = catalog.law(form.slug)
    assert law.predicts == form.predicts
    constants = {symbol: float(item.value) for symbol, item in law.constants.items()}
    assert {symbol: constants[symbol] for symbol in form.fixed} == dict(form.fixed)
    rng = np.random.default_rng(1)
    columns = {"N": rng.uniform(1e8, 1e10, 30), "D": rng.uniform(1e9, 1e11, 30)}
    columns["C"] = 6 * columns["N"] * columns["D"]
    values = np.exp(form.log_loss(form.internal(constants), columns))
    expected = constants["coefficient"] * np.prod(
        [columns[name] ** constants[symbol] for name, symbol in (("N", "params"), ("D", "tokens"), ("C", "compute"))],
        axis=0,
    )
    assert values == pytest.approx(expected)
    found = fit(Points({**columns, form.predicts: values}), form, LOGLS)
    assert found.constants == pytest.approx({symbol: constants[symbol] for symbol in form.symbols}, rel=1e-6)


def test_near_best() -> None:
    points = Points(
        {"N": np.array([1e9, 1e9, 1e9, 2e9]), "D": np.full(4, 1e10), "loss": np.array([2.0, 2.004, 2.1, 3.0])},
        rows=np.arange(2, 6),
    )
    assert near_best(points).rows.tolist() == [2, 3, 5]
    assert near_best(points, 0).rows.tolist() == [2, 5]
    with pytest.raises(InputError, match="Expected a share of the loss"):
        near_best(points, -0.1)
    with pytest.raises(InputError, match="a column loss"):
        near_best(Points({"N": np.ones(2), "D": np.ones(2)}))
    with pytest.raises(InputError):
        advise(*sizes(0.0, 1e9))


@pytest.mark.data
def test_the_released_sweep_does_not_give_step_law(data_dir: Path) -> None:
    table = pl.read_csv(data_dir / "scaling" / "step_law" / "dense_lr_bs_loss.csv")
    columns = {"N": "N", "D": "D", "lr": "lr", "batch": "bs", "loss": "smooth loss"}
    points = Points({name: table[column].cast(pl.Float64).to_numpy() for name, column in columns.items()})
    points = Points({**points.columns, "batch": points["batch"] * 2048})  # sequences of 2,048 tokens
    medians = (1.782, -0.7122, 0.307)  # of the authors' bootstrap fits, which the published constants are near
    published = catalog.law("step-law-lr").constants
    assert [float(published[s].value) for s in ("coefficient", "params", "tokens")] == pytest.approx(medians, rel=5e-3)
    for within, count, lr, batch in [
        (0.0025, 129, (77.69, -0.7662, 0.1970), (0.2085, 0.6125)),  # the authors' script
        (0.0, 17, (30.10, -0.8235, 0.2882), (3.415, 0.4983)),  # the best run of each (N, D)
    ]:
        near = near_best(points, within)
        assert len(near) == count
        assert list(fit(near, hyper.STEP_LAW_LR, LOGLS).constants.values()) == pytest.approx(lr, rel=1e-3)
        assert list(fit(near, hyper.STEP_LAW_BATCH, LOGLS).constants.values()) == pytest.approx(batch, rel=1e-3)


@pytest.mark.data
def test_a_bootstrap_of_the_released_sweep_does_not_reach_the_published_exponents_either(data_dir: Path) -> None:
    table = pl.read_csv(data_dir / "scaling" / "step_law" / "dense_lr_bs_loss.csv")
    columns = {"N": "N", "D": "D", "lr": "lr", "loss": "smooth loss"}
    near = near_best(Points({name: table[column].cast(pl.Float64).to_numpy() for name, column in columns.items()}))
    design = np.column_stack([np.ones(len(near)), np.log(near["N"]), np.log(near["D"])])
    rng, y = np.random.default_rng(0), np.log(near["lr"])
    picks = rng.integers(0, len(near), (1000, len(near)))
    drawn = np.array([np.linalg.lstsq(design[pick], y[pick], rcond=None)[0] for pick in picks])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    assert np.median(drawn, axis=0)[1:] == pytest.approx([-0.766, 0.197], abs=0.01)
    assert low[1] < -0.713 < high[1]  # of N: inside
    assert high[2] < 0.307  # of D: outside
