"""The strip chart: exactness on planted stalls, no alarms without one, causes, trends, and the sum of its parts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trace.logs import Floats, noise, step_log

from ridgeline.trace.levels import periodic
from ridgeline.trace.levels.l3 import Cause, StripChart, cause_of, quantities, strip_chart, strip_charts, warm_up
from ridgeline.trace.levels.periodic import baseline, combs, log_binomial_tail
from ridgeline.trace.logs import StepLog, read_log

WITHOUT = ("normal", "lognormal", "student", "pareto", "outliers", "rounded", "spells", "drifting")


def steady(n: int = 400, seed: int = 1, sigma: float = 0.01) -> Floats:
    return 1 + sigma * np.random.default_rng(seed).standard_normal(n)


def adds_up(chart: StripChart) -> bool:
    parts = chart.typical_s + chart.stalls_s + chart.outliers_s + chart.rest_s
    return abs(parts - chart.mean_s) < 1e-9


def test_false_alarms_on_500_logs_without_a_period() -> None:
    random = np.random.default_rng(11)
    alarms = dict.fromkeys(WITHOUT, 0)
    for i in range(500):
        kind = WITHOUT[i % len(WITHOUT)]
        found, _ = combs(noise(kind, int(random.integers(50, 2000)), random), least_excess=0.0)
        alarms[kind] += bool(found)
    assert sum(alarms.values()) <= 5, alarms


def test_planted_stalls_are_found_exactly() -> None:
    random = np.random.default_rng(12)
    exact = within = 0
    for i in range(600):
        period, periods = int(random.integers(5, 201)), int(random.integers(8, 20))
        phase = int(random.integers(period))
        n = period * periods + int(random.integers(period))
        share = random.uniform(0.05, 0.3)
        each = share / (1 - share) * period
        x = noise(("normal", "student", "outliers")[i % 3], n, random)
        x[phase::period] += each
        found, _ = combs(x)
        hit = bool(found) and (found[0].period, found[0].phase) == (period, phase)
        exact += hit
        within += hit and abs(found[0].excess_s / each - 1) < 0.05
    assert exact >= 594
    assert within >= 594


def test_stalls_of_two_periods_and_of_one_period_twice() -> None:
    x = steady(1000)
    x[3::20] += 2
    x[7::20] += 1.5
    x[50::125] += 12
    chart = strip_chart(step_log(x))
    found = sorted((stall.period, stall.first, round(stall.each_s, 1)) for stall in chart.stalls)
    assert found == [(20, 3, 2.0), (20, 7, 1.5), (125, 50, 12.0)]
    assert adds_up(chart)


def test_a_multiple_is_not_taken_for_its_divisor() -> None:
    random = np.random.default_rng(5)
    x = 1 + 0.01 * random.standard_normal(1400) + (random.random(1400) < 0.01) * random.exponential(5, 1400)
    x[40::96] += 6
    assert [(comb.period, comb.phase) for comb in combs(x)[0]] == [(96, 40)]


def test_the_stall_of_the_worked_incident() -> None:
    """Every 20th step 12 s + 9 s: 21/20 = 1.05 s in the limit, 99 of them in 2,000 steps are 1.04 s a step."""
    x = 13.95 + 0.05 * np.random.default_rng(2).standard_normal(2000)
    input_s, save_s = np.zeros(2000), np.zeros(2000)
    input_s[20::20], save_s[20::20] = 12, 9
    x += input_s + save_s
    chart = strip_chart(step_log(x, phases={"data": input_s, "checkpoint": save_s}))
    (stall,) = chart.stalls
    assert (stall.period, stall.occurrences) == (20, 99)
    assert stall.per_step_s == pytest.approx(1.04, abs=0.005)
    assert stall.each_s / stall.period == pytest.approx(1.05, abs=0.005)
    assert {name: round(part) for name, part in stall.parts.items()} == {"data": 12, "checkpoint": 9}
    assert (stall.cause, stall.certain) == ("input", True)
    assert adds_up(chart)


def test_a_stall_that_alternates() -> None:
    x = steady(200)
    x[1::2] += np.abs(np.random.default_rng(3).normal(0.3, 0.15, 100))
    (stall,) = strip_chart(step_log(x)).stalls
    assert stall.period == 2
    assert (stall.cause, stall.certain) == ("input", False)
    assert stall.per_step_s == pytest.approx(0.15, abs=0.02)


def test_a_stall_that_drifts_is_collection() -> None:
    random = np.random.default_rng(4)
    x = steady(1500)
    at = np.cumsum(np.round(random.normal(37.4, 1.0, 60)).astype(int))
    x[at[at < 1500]] += 0.8
    (stall,) = strip_chart(step_log(x)).stalls
    assert not stall.period_exact
    assert stall.period == pytest.approx(37.4, abs=0.5)
    assert stall.each_s == pytest.approx(0.8, rel=0.05)
    assert stall.cause == "garbage collection"


@pytest.mark.parametrize(
    ("phase", "cause"),
    [("gc_collect", "garbage collection"), ("save_checkpoint", "checkpoint"), ("validation", "evaluation"),
     ("next_batch", "input"), ("batch-generator", "input"), ("optimizer", "unknown")],
)  # fmt: skip
def test_a_phase_names_the_cause(phase: str, cause: Cause) -> None:
    assert cause_of(phase) == cause
    x, part = steady(300), np.zeros(300)
    part[5::10] = 0.5
    (stall,) = strip_chart(step_log(x + part, phases={phase: part, "forward": x})).stalls
    assert (stall.cause, stall.certain) == (cause, True)
    assert phase in stall.evidence


def test_a_phase_is_not_blamed_for_the_stall_of_another() -> None:
    x, saving = steady(520), np.zeros(520)
    saving[19::20] = 9
    x[6::13] += 0.2
    causes = {stall.period: stall.cause for stall in strip_chart(step_log(x + saving, phases={"save": saving})).stalls}
    assert causes == {20: "checkpoint", 13: "unknown"}


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_mark_beside_the_step_names_the_cause(shift: int) -> None:
    x = steady(600)
    x[50::100] += 9
    marks = [int(s) + shift for s in np.arange(50, 600, 100)]
    (stall,) = strip_chart(step_log(x, marks={"evaluation": marks})).stalls
    assert (stall.cause, stall.certain) == ("evaluation", True)


def test_without_phases_a_long_rare_stall_is_likely_a_checkpoint() -> None:
    x = steady(1000)
    x[99::100] += 20
    (stall,) = strip_chart(step_log(x)).stalls
    assert (stall.cause, stall.certain) == ("checkpoint", False)


def test_work_of_even_length_is_not_called_input() -> None:
    x = steady(400, sigma=0.005)
    x[::4] += 0.2
    (stall,) = strip_chart(step_log(x)).stalls
    assert (stall.period, stall.cause) == (4, "unknown")


def test_rounding_of_the_log_is_no_period() -> None:
    exact = np.arange(1001) * 61.05
    x = np.diff(np.round(exact)) * 1e-3
    assert strip_chart(step_log(x, resolution_ns=10**6)).stalls == ()
    assert strip_chart(step_log(x)).stalls != ()


def test_warm_up_is_left_out_and_said() -> None:
    x = steady(200)
    x[:3] = 60, 5, 4
    chart = strip_chart(step_log(x))
    assert chart.warm_up == 3
    assert chart.mean_s == pytest.approx(1, abs=0.01)
    assert chart.warm_up_s == pytest.approx(66, abs=0.2)
    assert "3 warm-up steps, up to step 2, are left out" in chart.notes


def test_warm_up_is_bounded_and_absent_without_one() -> None:
    assert warm_up(steady(200)) == 0
    assert warm_up(np.r_[np.full(100, 9.0), steady(900)]) == 50
    assert warm_up(np.ones(5)) == 0


def test_outliers_are_counted_not_called_a_period() -> None:
    x = steady(500)
    x[[31, 122, 299, 410]] += 3
    chart = strip_chart(step_log(x))
    assert chart.stalls == ()
    assert chart.outlier_steps == (31, 122, 299, 410)
    assert chart.outliers_s == pytest.approx(12 / 500, rel=0.02)
    assert adds_up(chart)


def test_slowing_down_by_and_by_and_at_a_step() -> None:
    slow = strip_chart(step_log(steady(800) + np.linspace(0, 0.4, 800))).trend
    assert slow is not None
    assert slow.step is None
    assert slow.per_step_s == pytest.approx(0.2, abs=0.03)
    x = steady(800)
    x[500:] += 0.3
    jump = strip_chart(step_log(x)).trend
    assert jump is not None
    assert jump.step == pytest.approx(500, abs=25)
    assert [jump.before_s, jump.after_s] == pytest.approx([1.0, 1.3], abs=0.01)


@pytest.mark.parametrize("border", [300, 500, 512, 660, 675])
def test_a_jump_is_found_at_its_row(border: int) -> None:
    """Also one so late that the order of all blocks says little."""
    x = steady(800)
    x[border:] += 0.3
    trend = strip_chart(step_log(x)).trend
    assert trend is not None
    assert trend.step == border
    assert [trend.before_s, trend.after_s] == pytest.approx([1.0, 1.3], abs=0.01)
    assert trend.per_step_s == pytest.approx(0.3 * (800 - border) / 800, abs=0.005)


def test_no_trend_in_noise() -> None:
    random = np.random.default_rng(6)
    found = [
        strip_chart(step_log(noise(kind, 600, random))).trend
        for kind in ("normal", "student", "pareto", "lognormal")
        for _ in range(25)
    ]
    assert sum(trend is not None for trend in found) <= 1


def test_rows_of_several_steps() -> None:
    x = steady(200)
    x[4::10] += 0.2
    chart = strip_chart(step_log(x, count=10))
    (stall,) = chart.stalls
    assert (stall.period, stall.first) == (100, 40)
    assert stall.each_s == pytest.approx(2, rel=0.05)
    assert stall.per_step_s == pytest.approx(0.02, rel=0.05)
    assert any("a row covers 10 steps" in note for note in chart.notes)


@pytest.mark.parametrize("n", [1, 2, 5, 15])
def test_short_logs_are_taken_apart_without_a_search(n: int) -> None:
    chart = strip_chart(step_log(np.ones(n)))
    assert not chart.searched
    assert chart.stalls == ()
    assert chart.mean_s == 1
    assert adds_up(chart)


def test_quantities_and_order_of_ranks() -> None:
    x = steady(200)
    x[::10] += 0.5
    slow, fast = step_log(x, rank=1), step_log(steady(200), rank=0)
    charts = strip_charts([fast, slow])
    assert [chart.label for chart in charts] == ["rank1", "rank0"]
    found = quantities(charts[0])
    assert found["stall.0"].name == "rank1.steps.stall.0"
    assert float(found["stall.0"].value) == charts[0].stalls[0].per_step_s
    assert found["mean"].unit == "s"


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=120))
def test_any_log_adds_up(seconds: list[float]) -> None:
    assert adds_up(strip_chart(step_log(np.array(seconds))))


@given(st.integers(2, 60), st.data())
def test_the_tail_bound_is_never_below_the_exact_tail(n: int, data: st.DataObject) -> None:
    from math import comb, log

    marked, drawn = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    hits = data.draw(st.integers(max(0, marked + drawn - n), min(marked, drawn)))
    exact = sum(comb(marked, k) * comb(n - marked, drawn - k) for k in range(hits, min(marked, drawn) + 1)) / comb(
        n, drawn
    )
    bound = periodic.log_tail(n, np.array([marked]), np.array([drawn]), np.array([hits]))[0]
    assert bound >= log(exact) - 1e-9


def test_binomial_tail() -> None:
    assert np.exp(log_binomial_tail(3, 3, 0.5)) == pytest.approx(1 / 8)
    assert np.exp(log_binomial_tail(0, 10, 0.3)) == pytest.approx(1)


def test_the_baseline_follows_a_jump_and_keeps_constants() -> None:
    assert (baseline(np.ones(300)) == 1).all()
    x = np.r_[np.ones(300), np.full(300, 3.0)]
    assert (baseline(x)[[0, 200, 400, 599]] == [1, 1, 3, 3]).all()


@pytest.mark.data
def test_real_logs_alternate(data_dir: Path) -> None:
    """Every second step of these runs is longer: both logs show it, evenly, and nothing else comes back."""
    for name, each_s in (("modded_0", 0.0022), ("modded_3", 0.135)):
        (log,) = read_log(data_dir / "trace" / "steplogs" / f"{name}.txt")
        assert isinstance(log, StepLog)
        chart = strip_chart(log)
        assert [stall.period for stall in chart.stalls] == [2]
        assert chart.stalls[0].each_s == pytest.approx(each_s, rel=0.1)
        assert chart.stalls[0].cause == "unknown"
        assert adds_up(chart)
