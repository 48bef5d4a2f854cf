"""The next run: what is on the shelf, what it would do to the forecast, and when it is not worth its price."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, given
from ridgeline.forecast.buying.basins import Options
from ridgeline.forecast.buying.next_run import NextRuns, Search, next_runs
from ridgeline.forecast.laws import chinchilla, data_constrained
from ridgeline.forecast.points import Points

TRUTH = {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28}
SEARCH = Search(basins=Options(resamples=1, keep=2))
TARGET, BUDGET = 1e23, 3e20


def ladder(sizes: int = 4, most: float = 3e8, noise: float = 0.003) -> Points:
    """Runs of the law of Hoffmann et al. at three tokens-per-parameter ratios."""
    n = np.repeat(np.geomspace(3e7, most, sizes), 3)
    columns = {"N": n, "D": n * np.tile([10.0, 20.0, 40.0], sizes)}
    form = chinchilla.FORM
    draw = np.random.default_rng(0).normal(size=len(n))
    return Points({**columns, "loss": np.exp(form.log_loss(form.internal(TRUTH), columns) + noise * draw)})


@pytest.fixture(scope="module")
def found() -> NextRuns:
    """What to buy after the small ladder."""
    return next_runs(ladder(), TARGET, BUDGET, SEARCH)


def test_forecast_covers_and_narrows(found: NextRuns) -> None:
    truth = 1.69 + 406.4 * found.target["N"] ** -0.34 + 410.7 * found.target["D"] ** -0.28
    assert found.low < truth < found.high
    assert 6 * found.target["N"] * found.target["D"] == pytest.approx(TARGET)
    assert found.helps
    assert found.after < 0.9 * found.before
    assert f"{len(found.best)} runs" in found.says


def test_every_candidate_is_within_the_budget(found: NextRuns) -> None:
    for run in found.ranked:
        assert run.c == pytest.approx(6 * run.n * run.d)
        assert run.c <= BUDGET
        assert run.share == pytest.approx(run.c / BUDGET)
        assert run.after <= found.before
        assert found.low <= run.low < found.loss < run.high <= found.high
        assert run.why
    assert sum(run.c for run in found.best) <= BUDGET
    assert len(found.best) <= SEARCH.most
    assert np.all(np.diff([run.after for run in found.best]) <= 0)
    assert found.best[-1].after == pytest.approx(found.after)
    assert found.after <= min(run.after for run in found.ranked)


def test_ranked_by_variance_per_cost_among_what_helps(found: NextRuns) -> None:
    helps = [run.after <= (1 - SEARCH.material) * found.before for run in found.ranked]
    assert helps == sorted(helps, reverse=True)
    scores = [
        run.per_cost * run.share ** (1 - SEARCH.gamma) for run, good in zip(found.ranked, helps, strict=True) if good
    ]
    assert scores == sorted(scores, reverse=True)
    per_cost = (found.before**2 - found.ranked[0].after ** 2) / found.ranked[0].share
    assert found.ranked[0].per_cost == pytest.approx(per_cost)


def test_buying_it_narrows_the_forecast_as_said(found: NextRuns) -> None:
    form, runs = chinchilla.FORM, found.best
    n, d = np.array([run.n for run in runs]), np.array([run.d for run in runs])
    losses = np.exp(form.log_loss(form.internal(TRUTH), {"N": n, "D": d}))
    before = ladder()
    grown = {k: np.concatenate([before[k], v]) for k, v in {"N": n, "D": d, "loss": losses}.items()}
    again = next_runs(Points(grown), found.target, BUDGET, SEARCH)
    assert found.after / 2 < again.before < found.after * 2


def test_a_budget_of_the_cheapest_run_does_not_help() -> None:
    points = ladder(sizes=8, most=3e9, noise=0.0005)
    cheapest = float(np.min(6 * points["N"] * points["D"]))
    found = next_runs(points, {"N": 3e9, "D": 6e10}, 1.01 * cheapest, SEARCH)
    assert not found.helps
    assert found.says.startswith("No run in the budget helps materially")


def test_every_reason_makes_sense(found: NextRuns) -> None:
    shares = []
    for run in (*found.best, *found.ranked):
        assert re.match(r"(pins \w+ \(.*\): its variance falls by|tells .* (apart|from .*)$|shows how far)", run.why)
        shares += [int(said) for said in re.findall(r"(-?\d+)%", run.why)]
    assert shares
    assert all(1 <= share <= 100 for share in shares)


def test_where_the_law_is_off_a_run_shows_by_how_much() -> None:
    straight = ladder(sizes=10)
    loss = straight["loss"] * np.exp(0.03 * np.sin(3 * np.log(straight["N"])))  # no constant of the law makes that
    search = replace(SEARCH, forms=(chinchilla.FORM,))
    bent = next_runs(Points({**straight.columns, "loss": loss}), {"N": 5e8, "D": 1e10}, 1.5e20, search)
    assert bent.best[0].why == "shows how far Chinchilla is off on the way to the target"
    clean = next_runs(straight, {"N": 5e8, "D": 1e10}, 1.5e20, search)
    assert clean.best[0].why.startswith("pins ")


def test_dollars_need_a_price(found: NextRuns) -> None:
    assert all(run.cost is None for run in found.ranked)
    price: Quantity = given("price", 2.0, "USD/(1e18*FLOP)")
    priced = next_runs(ladder(), TARGET, BUDGET, SEARCH, price)
    run = priced.ranked[0]
    assert run.cost is not None
    assert run.cost.value == pytest.approx(2 * run.c / 1e18)


@pytest.mark.parametrize(
    ("target", "budget", "says"),
    [
        (float("nan"), BUDGET, "compute above zero"),
        (0.0, BUDGET, "compute above zero"),
        (1e10, BUDGET, "the smallest run"),
        (TARGET, -1.0, "budget in FLOP"),
        (TARGET, float("inf"), "budget in FLOP"),
        (TARGET, 1e15, "cheapest run"),
        ({"N": 1e9}, BUDGET, "positive values of D, N"),
        ({"N": 1e9, "D": -1.0}, BUDGET, "positive values of D, N"),
    ],
)
def test_bad_input(target: float | dict[str, float], budget: float, says: str) -> None:
    with pytest.raises(InputError, match=says):
        next_runs(ladder(), target, budget, SEARCH)


def test_columns_beyond_size_and_tokens_are_fixed() -> None:
    points = ladder()
    with_unique = Points({**points.columns, "U": points["D"] / 2})
    forms = (data_constrained.FORM,)
    with pytest.raises(InputError, match="a value of U"):
        next_runs(with_unique, {"N": 1e9, "D": 2e10, "U": 2e10}, BUDGET, Search(forms=forms, basins=SEARCH.basins))
    search = Search(forms=forms, basins=SEARCH.basins, fixed={"U": 1e10})
    assert next_runs(with_unique, {"N": 1e9, "D": 2e10, "U": 1e10}, BUDGET, search).ranked
