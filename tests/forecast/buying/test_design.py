"""Sequential design: what runs are worth, and whether buying them helps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.buying.basins import Basin, Options, covariance, find, optima, predict, prior_precision
from ridgeline.forecast.buying.design import Candidates, Plan, State, choose, first_runs, sequential
from ridgeline.forecast.buying.discrepancy import Discrepancy, Prior, coupling, estimate
from ridgeline.forecast.form import Array, Columns
from ridgeline.forecast.laws import chinchilla, coupled, data_constrained

FORM = chinchilla.FORM
TRUTH = FORM.internal({"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28})
FAR: Columns = {"N": np.array([7e9]), "D": np.array([1.4e11])}
QUICK = Options(resamples=1, keep=2)


def pool(sizes: int = 6, noise: float = 0.002, seed: int = 0) -> tuple[Candidates, Array]:
    """A grid of sizes and tokens per parameter with losses of a known law."""
    n, ratio = (a.ravel() for a in np.meshgrid(np.geomspace(2e7, 1e9, sizes), [5.0, 10, 20, 40, 80], indexing="ij"))
    columns = {"N": n, "D": n * ratio}
    draw = np.random.default_rng(seed)
    return Candidates(columns, 6 * n * n * ratio), np.exp(
        FORM.log_loss(TRUTH, columns) + noise * draw.normal(size=len(n))
    )


def basin(rows: list[int], found: Discrepancy) -> tuple[Basin, Candidates]:
    """A basin at the truth after some runs of the pool, its discrepancy given."""
    candidates, losses = pool()
    seen = {name: values[rows] for name, values in candidates.columns.items()}
    value, slopes = FORM.gradient(TRUTH, seen)
    inverse = np.asarray(np.linalg.inv(found.seen(seen, np.ones(len(rows)))), float)
    spread = covariance(slopes, inverse, prior_precision(FORM))
    return Basin(FORM, TRUTH, 1.0, spread, found, seen, np.log(losses[rows]) - value, slopes, inverse), candidates


@pytest.mark.parametrize("size", [0.0, 0.01])
def test_adding_a_run_is_the_refit_without_its_loss(size: float) -> None:
    rows, pick = [0, 3, 7, 11, 14, 18, 22], 29
    found = Discrepancy(0.003, size, 1.0)
    before, candidates = basin(rows, found)
    state = State([before], candidates.columns, FAR)
    gain = state.gains()[0][pick]
    error = state.error
    state.add(pick)
    after = predict([basin([*rows, pick], found)[0]], FAR)[1][0]
    assert state.error == pytest.approx(after, rel=1e-5)
    assert error - state.error == pytest.approx(gain, rel=1e-9)


@pytest.mark.parametrize("size", [0.0, 0.01])
def test_what_a_run_pins_is_a_share_of_what_is_left(size: float) -> None:
    rows = [0, 3, 7, 11, 14, 18, 22]
    found = Discrepancy(0.003, size, 1.0)
    one, candidates = basin(rows, found)
    state = State([one], candidates.columns, FAR)
    for pick in (29, 28, 24, 27, 4):
        assert all(0 <= state.pinned(row)[1] <= 1 for row in range(len(candidates)))
        place, share = state.pinned(pick)
        before = state.constants[place, place]
        state.add(pick)
        rows = [*rows, pick]
        assert state.constants[place, place] == pytest.approx((1 - share) * before, rel=1e-6)
        refitted = basin(rows, found)[0].covariance
        assert np.diag(state.constants) == pytest.approx(np.diag(refitted), rel=1e-4)


def test_without_an_error_of_the_form_a_run_speaks_through_constants() -> None:
    one, candidates = basin([0, 3, 7, 11, 14, 18, 22], Discrepancy(0.003, 0.0, 1.0))
    assert State([one], candidates.columns, FAR).by_constants(29) == pytest.approx(1)
    rough, _ = basin([0, 3, 7, 11, 14, 18, 22], Discrepancy(0.003, 0.05, 1.0))
    near = {name: values[[29]] for name, values in candidates.columns.items()}
    assert State([rough], candidates.columns, near).by_constants(29) < State(
        [rough], candidates.columns, FAR
    ).by_constants(0)


def test_a_run_where_two_basins_agree_tells_nothing_apart() -> None:
    one, candidates = basin([0, 3, 7, 11, 14, 18, 22], Discrepancy(0.003, 0.0, 1.0))
    other = replace(one, theta=TRUTH + np.array([0.0, 0.0, 0.0, 0.0, 2e-4]), weight=0.5)
    first = replace(one, weight=0.5)
    same = State([first, first], candidates.columns, FAR)
    assert np.max(same.gains()[1]) == 0
    apart = State([first, other], candidates.columns, FAR)
    gains = apart.gains()[1]
    assert np.min(gains) > 0
    assert np.max(gains) <= np.sum(apart.pairs)
    assert apart.told(int(np.argmax(gains))) == (0, 1)
    before, pick = apart.error, int(np.argmax(gains))
    expected = sum(float(part[pick]) for part in apart.gains())
    apart.add(pick)
    assert before - apart.error == pytest.approx(expected, rel=1e-9)


def test_set_beats_random_sets_of_its_budget() -> None:
    one, candidates = basin([0, 1, 2, 5, 6, 7, 10], Discrepancy(0.003, 0.0, 1.0))
    budget = 0.2 * float(np.sum(candidates.cost))
    chosen = choose([one], candidates, FAR, budget)
    assert 0 < chosen.cost <= budget
    assert np.all(np.diff(chosen.left) <= 0)
    assert chosen.left[0] <= chosen.before
    draw, best = np.random.default_rng(1), np.inf
    for _ in range(100):
        state, spent = State([one], candidates.columns, FAR), 0.0
        for pick in draw.permutation(len(candidates)):
            if spent + candidates.cost[pick] <= budget:
                state.add(int(pick))
                spent += float(candidates.cost[pick])
        best = min(best, state.error)
    assert chosen.after <= best * 1.02
    assert len(choose([one], candidates, FAR, budget, most=2).picks) == 2
    assert len(choose([one], candidates, FAR, 0.5 * float(np.min(candidates.cost))).picks) == 0


def test_first_runs_spread_over_what_is_cheap() -> None:
    candidates, _ = pool()
    budget = 0.1 * float(np.sum(candidates.cost))
    picks = first_runs(candidates, budget, 8, seed=3)
    assert len(set(picks.tolist())) == 8
    assert np.all(candidates.cost[picks] <= budget / 8)
    assert picks.tolist() == first_runs(candidates, budget, 8, seed=3).tolist()
    ratios = candidates.columns["D"] / candidates.columns["N"]
    assert np.ptp(np.log(ratios[picks])) > np.log(10)
    poor = first_runs(candidates, 2.5 * float(np.min(candidates.cost)), 8)
    assert 0 < len(poor) < 8
    assert np.sum(candidates.cost[poor]) <= 2.5 * np.min(candidates.cost)


def test_sequential_forecasts_a_decade_and_more_ahead() -> None:
    candidates, losses = pool()
    budget, plan = 0.2 * float(np.sum(candidates.cost)), Plan((FORM,), 3, QUICK)
    bought = sequential(candidates, lambda i: float(losses[i]), FAR, budget, plan)
    loss, error = bought.predict(FAR)
    truth = np.exp(FORM.log_loss(TRUTH, FAR))
    assert bought.cost <= budget
    assert len(set(bought.picks.tolist())) == len(bought.picks)
    assert abs(np.log(loss / truth)[0]) < 3 * error[0]
    assert abs(loss[0] / truth[0] - 1) < 0.03
    again = sequential(candidates, lambda i: float(losses[i]), FAR, budget, plan)
    assert again.picks.tolist() == bought.picks.tolist()


def test_no_budget_for_a_first_run() -> None:
    candidates, losses = pool()
    with pytest.raises(InputError, match="one run or more"):
        sequential(candidates, lambda i: float(losses[i]), FAR, 1.0, Plan((FORM,)))


def test_candidates_refuse_bad_costs() -> None:
    with pytest.raises(InputError, match="one length"):
        Candidates({"N": np.ones(3)}, np.ones(2))
    with pytest.raises(InputError, match="positive finite costs"):
        Candidates({"N": np.ones(2)}, np.array([1.0, 0.0]))


def test_weights_follow_the_evidence() -> None:
    candidates, losses = pool(noise=0.001)
    basins = find(candidates.columns, losses, (FORM, coupled.FORM), FAR, QUICK)
    assert sum(b.weight for b in basins) == pytest.approx(1)
    assert [b.weight for b in basins] == sorted((b.weight for b in basins), reverse=True)
    bent = np.exp(np.log(losses) + 0.05 * np.log(candidates.columns["N"] / 1e8) ** 2)  # no law of the two is that
    strained = find(candidates.columns, bent, (FORM,), FAR, QUICK)
    assert strained[0].discrepancy.size > basins[0].discrepancy.size
    with pytest.raises(InputError, match="runs and forms"):
        find(candidates.columns, losses, (), FAR, QUICK)


def test_coupling_whitens_the_discrepancy() -> None:
    candidates, _ = pool(sizes=3)
    found = Discrepancy(0.003, 0.006, 1.0)
    half = coupling(found, candidates.columns)
    exact = found.noise**2 * np.linalg.inv(found.seen(candidates.columns, np.ones(len(candidates))))
    assert np.eye(len(candidates)) - half @ half.T == pytest.approx(exact, abs=2e-3)


def test_estimate_is_the_likeliest_of_its_grid() -> None:
    candidates, _ = pool(sizes=4)
    draw, count, prior = np.random.default_rng(5), len(candidates), Prior(0.003, 2)
    residual, weights = 0.01 * draw.normal(size=count), draw.uniform(0.2, 1.0, count)
    found, likelihood = estimate(residual, candidates.columns, weights, prior, 5)
    ratio = found.size / found.noise
    matrix = Discrepancy(1.0, ratio, found.decades).seen(candidates.columns, weights)
    squares = prior.runs * prior.noise**2 + float(residual @ np.linalg.solve(matrix, residual))
    assert found.noise**2 == pytest.approx(squares / (prior.runs + count - 5))
    logdet = np.linalg.slogdet(matrix)[1] + np.sum(np.log(weights))
    expected = -0.5 * (count + prior.runs) * np.log(squares / (prior.runs + count)) - 0.5 * logdet
    assert likelihood == pytest.approx(expected)


def test_optima_are_fitted_once_for_every_target() -> None:
    candidates, losses = pool(noise=0.001)
    fits = optima(candidates.columns, losses, (FORM, coupled.FORM), QUICK)
    for _, theta, _ in fits.every:
        gaps = np.max(np.abs(theta[:, None] - theta[None]), axis=-1) + np.eye(len(theta))
        assert np.min(gaps) > 1e-6
    found, again = fits.basins(FAR), find(candidates.columns, losses, (FORM, coupled.FORM), FAR, QUICK)
    assert [b.weight for b in found] == [b.weight for b in again]
    assert predict(found, FAR)[0] == pytest.approx(predict(again, FAR)[0])


def test_estimate_finds_a_shared_error_only_where_there_is_one() -> None:
    candidates, _ = pool(sizes=12)
    ones, draw = np.ones(len(candidates)), np.random.default_rng(2)
    noise = 0.004 * draw.normal(size=len(candidates))
    alone, _ = estimate(noise, candidates.columns, ones, Prior(0.003, 2), 0)
    smooth = noise + 0.02 * np.sin(3 * np.log10(candidates.columns["N"]))
    both, _ = estimate(smooth, candidates.columns, ones, Prior(0.003, 2), 0)
    assert alone.size <= 0.5 * alone.noise
    assert both.size > 2 * both.noise
    assert alone.noise == pytest.approx(0.004, rel=0.25)


@pytest.mark.data
def test_repeated_data_at_a_tenth_of_the_budget(data_dir: Path) -> None:
    names = {"params": "N", "tokens": "D", "unique_tokens": "U", "loss": "loss"}
    folder = data_dir / "scaling" / "scalebench"
    train, test = (
        {new: frame[old].to_numpy() for old, new in names.items()}
        for frame in (pl.read_csv(folder / f"data_constrained_scaling_law_{part}.csv") for part in ("train", "test"))
    )
    columns, goal = ({name: table[name] for name in "NDU"} for table in (train, test))
    candidates = Candidates(columns, 6 * train["N"] * train["D"])
    plan = Plan((data_constrained.FORM,), 4, Options(resamples=1, keep=2))
    bought = sequential(candidates, lambda i: float(train["loss"][i]), goal, 0.1 * float(np.sum(candidates.cost)), plan)
    loss, _ = bought.predict(goal)
    assert 1 - np.sum((loss - test["loss"]) ** 2) / np.sum((test["loss"] - np.mean(test["loss"])) ** 2) >= 0.83
