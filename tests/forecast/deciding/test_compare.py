"""Two recipes at a target: verdicts on known truths, shared resamples, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.forecast.recipes import EARLY, H, ladder, scaled

from ridgeline.arithmetic import laws
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.forecast.deciding.compare import (
    Backtest,
    Comparison,
    How,
    Interval,
    compare,
    equivalent,
    judge,
    resample,
)
from ridgeline.forecast.deciding.crossover import frontier
from ridgeline.forecast.deciding.pairing import share
from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.form import Array
from ridgeline.forecast.laws.chinchilla import FORM
from ridgeline.forecast.laws.data_constrained import FORM as REPEATS
from ridgeline.forecast.reading.read_points import ReadOptions, read_points

HOW = How(draws=200)
TARGET = 1e22


def against(theta: Array, noise: float = 0.001, seed: int = 0, how: How = HOW) -> Comparison:
    return compare(ladder(H, noise, 2 * seed + 1), ladder(theta, noise, 2 * seed + 2), TARGET, how)


@pytest.fixture(scope="module")
def better() -> Comparison:
    return against(scaled(H, 0.98))


def test_the_same_recipe_twice_is_not_enough_evidence() -> None:
    found = against(H)
    assert found.verdict == "not enough evidence"
    assert found.delta.straddles
    assert "holds zero" in found.because[-1]


def test_a_better_recipe_wins_by_what_it_is_better(better: Comparison) -> None:
    assert better.verdict == "candidate"
    truth = -0.02 * float(frontier(FORM, H, np.array([TARGET]))[0])
    assert better.delta.value == pytest.approx(truth, abs=0.01)
    assert better.delta.low is not None
    assert better.delta.high is not None
    assert better.delta.low < truth < better.delta.high < 0
    assert better.equal.value == pytest.approx(truth, abs=0.01)


def test_roles_swapped_swap_the_verdict() -> None:
    one, two = ladder(H, seed=1), ladder(scaled(H, 0.98), seed=2)
    there, back = compare(one, two, TARGET, HOW), compare(two, one, TARGET, HOW)
    assert (there.verdict, back.verdict) == ("candidate", "baseline")
    assert there.delta.value is not None
    assert back.delta.value == pytest.approx(-there.delta.value)


def test_a_recipe_ahead_in_the_data_and_behind_at_the_target() -> None:
    base, other = ladder(H, seed=1), ladder(EARLY, seed=2)
    now = compare(base, other, 1e23, HOW)
    at = np.array([1e23])
    truth = float(frontier(FORM, EARLY, at)[0] - frontier(FORM, H, at)[0])
    assert now.delta.value == pytest.approx(truth, abs=0.02)
    assert now.verdict == "baseline"
    assert now.worth.value is not None
    assert now.worth.value < 1


def test_worth_is_the_compute_at_which_the_baseline_gets_there(better: Comparison) -> None:
    assert better.worth.value is not None
    assert better.worth.value > 1
    flops = np.array([TARGET * better.worth.value])
    loss = float(frontier(FORM, better.baseline.fit.theta, flops)[0])
    assert loss == pytest.approx(better.candidate.loss.value, rel=1e-9)


def test_worth_agrees_with_the_closed_form() -> None:
    law = fit(ladder(H, 0.0), FORM).law("baseline")
    other = scaled(H, 0.99)
    at = np.array([TARGET])
    best, wanted = (given(n, float(frontier(FORM, t, at)[0]), "nat") for n, t in (("best", H), ("other", other)))
    share_of = laws.equivalent_compute(law, best, wanted, "worth")
    assert equivalent(FORM, H[None], other[None], TARGET)[0] == pytest.approx(float(share_of.to("1")), rel=1e-6)


def test_a_candidate_below_the_baselines_floor_is_worth_no_finite_compute() -> None:
    assert np.isinf(equivalent(FORM, H[None], scaled(H, 0.8)[None], 1e25)).all()


def test_one_resample_serves_both_where_runs_pair() -> None:
    base = ladder(H, 0.003, seed=1)
    other = replace(base, columns={**base.columns, "loss": base["loss"] * 0.99})  # the same noise, run by run
    found = compare(base, other, 1e24, HOW)
    assert found.delta.value is not None
    assert found.delta.low is not None
    assert found.delta.high is not None
    alone = found.candidate.loss
    assert alone.low is not None
    assert alone.high is not None
    assert found.delta.high - found.delta.low < 0.1 * (alone.high - alone.low)
    assert found.verdict == "candidate"


def test_the_same_seed_gives_the_same_draws() -> None:
    one, two = against(H), against(H)
    assert one.delta == two.delta
    assert against(H, how=How(draws=200, seed=1)).delta != one.delta


def test_the_interval_grows_with_the_distance() -> None:
    base, other = ladder(H, seed=1), ladder(scaled(H, 0.98), seed=2)
    widths = []
    for target in (1e21, 1e23, 1e25):
        found = compare(base, other, target, HOW)
        assert found.delta.low is not None
        assert found.delta.high is not None
        widths.append(found.delta.high - found.delta.low)
    assert widths == sorted(widths)


def test_a_backtest_sees_a_difference_that_bends() -> None:
    base, other = ladder(H, 0.0005, seed=1), ladder(H, 0.0005, seed=2)
    late = np.where(other["C"] > 1e20, 1.01, 1.0)  # the candidate breaks in the last decade
    broken = replace(other, columns={**other.columns, "loss": other["loss"] * late})
    plain, bent = (compare(base, o, TARGET, HOW).backtest for o in (other, broken))
    assert plain.growth is not None
    assert bent.growth is not None
    assert bent.growth > 3 * plain.growth
    assert bent.runs > 0


def test_ladders_too_short_for_a_backtest_say_so() -> None:
    short = (1e20, 1.5e20, 2e20)
    found = compare(ladder(H, seed=1, budgets=short), ladder(H, seed=2, budgets=short), 1e21, HOW)
    assert found.backtest == Backtest(None, 0, ())
    assert any("too short to hold runs out" in text for text in found.because)


def test_different_designs_are_compared_over_their_shared_range() -> None:
    other = ladder(scaled(H, 0.95), seed=2, budgets=(2e18, 1e19, 6e19, 3e20))
    near, far = (compare(ladder(H, seed=1), other, target, HOW) for target in (1e21, 1e24))
    assert near.shared.kind == far.shared.kind == "range"
    assert near.verdict == "candidate"
    assert far.verdict == "not enough evidence"  # the shared range is too short to hold runs out
    assert "none could be held out" in far.because[-1]


def test_failed_resamples_forbid_a_verdict(better: Comparison) -> None:
    evidence = (better.shared, better.backtest, 1.0)
    verdict, because = judge(Interval(-0.02, -0.03, -0.01), evidence, (70, 30), HOW)
    assert verdict == "not enough evidence"
    assert "30 of 100 resamples" in because[-1]
    assert judge(Interval(-0.02, -0.03, -0.01), evidence, (95, 5), HOW)[0] == "candidate"


def test_an_open_interval_straddles() -> None:
    assert Interval(-0.1, None, -0.05).straddles
    assert not Interval(-0.1, -0.2, -0.05).straddles


def test_draws_come_in_pairs() -> None:
    base = ladder(H, seed=1)
    shared = share(base, base, 6)
    law = fit(base, FORM)
    (one, two), failed = resample(shared, (law, law), HOW)
    np.testing.assert_array_equal(one, two)
    assert len(one) + failed == HOW.draws


@pytest.mark.parametrize("target", [0.0, -1.0, float("nan"), float("inf")])
def test_a_target_that_cannot_be_is_refused(target: float) -> None:
    with pytest.raises(InputError, match="Expected a target compute above zero"):
        compare(ladder(H), ladder(H), target, HOW)


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(InputError, match="at least 100 draws"):
        compare(ladder(H), ladder(H), TARGET, How(draws=10))


def test_a_law_without_a_closed_form_optimum_is_refused() -> None:
    with pytest.raises(InputError, match="closed-form optimum"):
        compare(ladder(H), ladder(H), TARGET, How(form=REPEATS))


@pytest.mark.slow
def test_verdicts_over_many_ladders() -> None:
    """A wrong winner at 5% nominal stays rare; a 3% better recipe is found."""
    same = [against(H, 0.002, seed).verdict for seed in range(30)]
    gain = [against(scaled(H, 0.97), 0.002, seed).verdict for seed in range(10)]
    assert sum(v != "not enough evidence" for v in same) <= 4
    assert gain.count("candidate") >= 9
    assert "baseline" not in gain


CORPORA = ("fineweb-100b", "fineweb-edu-100b", "proof-pile-2", "smollm-corpus", "starcoder")


@pytest.mark.data
@pytest.mark.parametrize("other", CORPORA)
def test_two_corpora_and_the_decade_that_was_held_out(other: str, data_dir: Path) -> None:
    """Measured ladders on one evaluation set: a verdict a decade below never names the corpus that loses."""
    file = data_dir / "scaling" / "loss_to_loss" / "runs.csv"
    base, rival = (
        read_points(
            file, ReadOptions(columns={"loss": "c4_val"}, where={"data": name, "split": "sweep"}, params="total")
        )
        for name in ("slimpajama-chunk1", other)
    )
    top = float(base["C"].max())
    below = [ladder.take(ladder["C"] <= top / 10) for ladder in (base, rival)]
    found = compare(below[0], below[1], top, HOW)
    best = [float(ladder["loss"][ladder["C"] > top / 1.1].min()) for ladder in (base, rival)]
    assert found.shared.kind == "paired"
    assert found.backtest.growth is not None
    winner = "candidate" if best[1] < best[0] else "baseline"
    assert found.verdict in (winner, "not enough evidence")
    assert found.verdict == winner or abs(best[1] - best[0]) < 0.1
