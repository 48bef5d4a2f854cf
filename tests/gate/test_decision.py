"""Checks, outcomes and what a blocked check does."""

from math import inf

import pytest

from ridgeline.gate.decision import AS_SEEN, EXIT, NO_LOSS, Check, Outcome, blocked, combine, sized
from ridgeline.gate.statistics.interval import Interval


def check(low: float, high: float, margin: float = 0.01, **more: object) -> Check:
    clusters = more.pop("clusters", None)
    assert clusters is None or isinstance(clusters, int)
    degenerate = str(more.pop("degenerate", ""))
    interval = Interval((low + high) / 2, low, high, 100, 0.05, "test", clusters, degenerate)
    return Check("overall", "accuracy", interval, margin, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (-0.005, 0.02, Outcome.SHIP),
        (-0.01, 0.02, Outcome.INCONCLUSIVE),  # on the margin is not above it
        (-0.03, 0.02, Outcome.INCONCLUSIVE),
        (-0.03, -0.01, Outcome.INCONCLUSIVE),
        (-0.03, -0.011, Outcome.NO_SHIP),
        (-inf, inf, Outcome.INCONCLUSIVE),
    ],
)
def test_an_interval_against_its_margin(low: float, high: float, outcome: Outcome) -> None:
    assert check(low, high).outcome is outcome


def test_a_degenerate_interval_is_no_evidence() -> None:
    found = check(0.0, 0.0, degenerate="no variance")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.slack == -inf


def test_few_clusters_bless_and_do_not_condemn() -> None:
    assert check(-0.03, -0.02, clusters=12).outcome is Outcome.INCONCLUSIVE
    assert check(-0.03, -0.02, clusters=30).outcome is Outcome.NO_SHIP
    assert check(-0.005, 0.01, clusters=12).outcome is Outcome.SHIP


def test_slack_is_in_margins() -> None:
    assert check(-0.005, 0.02).slack == pytest.approx(0.5)
    assert check(-0.03, 0.02, margin=0.02).slack == pytest.approx(-0.5)


def test_every_required_check_must_ship() -> None:
    ship, open_, lost = check(-0.005, 0.01), check(-0.03, 0.01), check(-0.05, -0.03)
    assert combine([ship, ship]) is Outcome.SHIP
    assert combine([ship, open_]) is Outcome.INCONCLUSIVE
    assert combine([ship, open_, lost]) is Outcome.NO_SHIP
    assert combine([ship, check(-0.05, -0.03, required=False)]) is Outcome.SHIP


def test_nothing_required_is_no_evidence() -> None:
    assert combine([]) is Outcome.INCONCLUSIVE
    assert combine([check(-0.005, 0.01, required=False)]) is Outcome.INCONCLUSIVE


def test_a_blocked_check_cannot_be_passed_by_data() -> None:
    assert combine([check(-0.005, 0.01), blocked("registration", "a margin was changed")]) is Outcome.INCONCLUSIVE


def test_exit_codes_are_apart() -> None:
    assert EXIT == {Outcome.SHIP: 0, Outcome.NO_SHIP: 1, Outcome.INCONCLUSIVE: 4}


@pytest.mark.parametrize(
    ("low", "high", "variance", "least", "needed", "basis"),
    [
        (-0.005, 0.02, 0.04, 0, None, NO_LOSS),  # decided: nothing more to count
        (-0.05, 0.05, 0.04, 0, 2374, NO_LOSS),  # (1.645 + 0.842)^2 0.04 / 0.01^2 less the hundred that are there
        (-0.05, 0.05, 0.04, 5000, 4900, NO_LOSS),
        (-0.05, 0.02, 0.001, 0, 148, AS_SEEN),  # enough for a difference of nothing, so half a point below the floor
    ],
)
def test_the_pairs_that_would_decide(
    low: float, high: float, variance: float, least: int, needed: int | None, basis: str
) -> None:
    found = sized(check(low, high), variance, 0.8, least)
    assert found.needed == needed
    assert found.basis == basis
    assert found.detectable == pytest.approx((1.6449 + 0.8416) * (variance / 100) ** 0.5, rel=1e-3)


def test_a_degenerate_check_is_told_only_what_no_loss_takes() -> None:
    assert sized(check(0.0, 0.0, degenerate="no variance"), 0.0001, 0.8).needed is None
