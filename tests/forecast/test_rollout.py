"""Rollouts: what is cut, what is asked, and how errors become growth."""

from dataclasses import replace

import numpy as np
import pytest

from ridgeline.forecast.fitting.fit import fit
from ridgeline.forecast.fitting.objective import HUBER
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.points import Points
from ridgeline.forecast.rollout import (
    CUTS,
    Rollout,
    candidates,
    compute,
    fit_all,
    groupings,
    growth,
    rollouts,
    sandwich,
)
from ridgeline.forecast.synthetic import simulate

FORMS = candidates()
PRIOR, WEIGHT = 0.015, 4.0  # as shipped in core/data/forecast.toml


def made(cut: float, errors: list[float], decades: list[float], explained: float = 0.0) -> Rollout:
    """A rollout of one form."""
    return Rollout(
        cut, np.ones(3, bool), np.arange(len(errors)), np.array(decades), np.array([errors]),
        np.full((1, len(errors)), explained), (np.zeros(5),),
    )  # fmt: skip


def test_candidates_are_chinchilla_and_the_coupled_form() -> None:
    assert FORMS[0] is CHINCHILLA
    assert len({form.slug for form in FORMS}) == len(FORMS)
    assert [form.fixed.get("gamma") for form in FORMS[1:-1]] == [0.8, 0.65, 0.5, 0.4, 0.3]
    assert FORMS[-1].parameters[-1].high == 1.0


def test_every_cut_leaves_out_the_runs_above_it() -> None:
    points = simulate("isoflop", "gaussian", 0).points
    found, _ = rollouts(points, FORMS)
    place = compute(points)
    assert found
    for one in found:
        assert one.cut in CUTS
        assert place[one.kept].max() <= place.max() - one.cut + 1e-9
        assert set(one.tested) == set(np.flatnonzero(~one.kept))
        assert np.allclose(one.decades, place[one.tested] - place[one.kept].max())
        assert one.errors.shape == one.explained.shape == (len(FORMS), len(one.tested))


def test_an_error_is_that_of_a_fit_to_the_runs_kept() -> None:
    points = simulate("isoflop", "gaussian", 1).points
    one = rollouts(points, FORMS[:1])[0][0]
    alone = fit(points.take(one.kept), CHINCHILLA, HUBER)
    rest = points.take(one.tested)
    expected = np.log(alone.predict({"N": rest["N"], "D": rest["D"]})) - np.log(rest["loss"])
    assert np.allclose(one.errors[0], expected, atol=1e-5)


def test_no_rollouts_of_a_ladder_too_small() -> None:
    points = simulate("ladder", "gaussian", 0).points
    found, thetas = rollouts(points.take(np.arange(8)), FORMS[:1])
    assert found == ()
    assert [theta.shape for theta in thetas] == [(5,)]


def test_a_coupled_fit_is_never_worse_than_chinchilla_which_it_contains() -> None:
    points = simulate("epoch", "heavy", 3).points
    columns, log_y = {name: points[name] for name in ("N", "D")}, np.log(points["loss"])
    _, values = fit_all(FORMS, columns, log_y, np.ones((1, len(log_y))), HUBER)
    assert values[-1, 0] <= values[0, 0] * (1 + 1e-6)


def test_growth_without_rollouts_is_the_assumed_one() -> None:
    found = growth((), 0, 0.01)
    assert (found.per_decade, found.freedom, found.cuts) == (PRIOR, WEIGHT, 0)


def test_growth_weighs_two_cuts_against_the_assumption() -> None:
    far = [made(cut, [0.1, -0.1], [1.0, 1.0]) for cut in (0.8, 1.0, 1.2)]
    found = growth(far, 0, 0.0)
    assert found.measured == pytest.approx(0.1)
    assert found.freedom == WEIGHT + 2
    assert found.per_decade == pytest.approx(np.sqrt((4 * PRIOR**2 + 2 * 0.1**2) / 6))


def test_growth_leaves_out_what_noise_and_constants_explain() -> None:
    assert growth([made(0.8, [0.1, -0.1], [1.0, 1.0])], 0, 0.1).measured == 0
    assert growth([made(0.8, [0.1, -0.1], [1.0, 1.0], explained=0.01)], 0, 0.0).measured == pytest.approx(0, abs=1e-6)


def test_runs_just_above_a_cut_show_noise_and_not_growth() -> None:
    found = growth([made(0.4, [0.03, -0.03, 0.03, 0.03], [0.1, 0.1, 0.2, 0.4])], 0, 0.0)
    assert found.near == pytest.approx(0.03)
    assert found.measured == 0


def test_groups_are_budgets_and_sizes() -> None:
    labels = groupings(simulate("ladder", "gaussian", 0).points)
    assert len(np.unique(labels["size"])) == 4
    flat = Points({"N": np.full(3, 1e8), "D": np.full(3, 1e9), "loss": np.full(3, 3.0)})
    assert groupings(flat) == {}


def test_shared_errors_widen_the_sandwich() -> None:
    points = simulate("epoch", "grouped", 5).points
    columns, log_y = {name: points[name] for name in ("N", "D")}, np.log(points["loss"])
    theta = fit(points, CHINCHILLA).theta
    cut = np.ones(len(log_y), bool), np.arange(5)
    alone = sandwich(CHINCHILLA, theta, (columns, log_y), cut, {})
    grouped = sandwich(CHINCHILLA, theta, (columns, log_y), cut, groupings(points))
    assert np.all(grouped >= alone)
    assert np.max(grouped / alone) > 1.5


def test_growth_reads_the_form_that_it_is_asked_about() -> None:
    one = made(0.8, [0.1], [1.0])
    two = replace(one, errors=np.array([[0.1], [0.0]]), explained=np.zeros((2, 1)))
    assert growth([two], 1, 0.0).measured == 0
