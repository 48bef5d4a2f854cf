"""Examples in groups, rare losses, and sample sizes."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.statistics import catastrophe, clusters, sizes
from ridgeline.gate.statistics.interval import Interval


@pytest.mark.data
def test_four_trials_of_fifty_tasks(data_dir: Path) -> None:
    with gzip.open(data_dir / "gates" / "taubench_gpt4o_airline_rewards.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    rewards = np.array([float(row["reward"]) for row in rows])
    tasks = np.array([int(row["task_id"]) for row in rows])
    found = clusters.clustered_mean(rewards, tasks, 0.025)
    assert (found.estimate, found.n, found.clusters) == (0.42, 200, 50)
    naive = rewards.std(ddof=1) / 200**0.5
    assert (found.estimate - found.low) / 2.0096 / naive == pytest.approx(1.49, abs=0.01)
    assert clusters.design_effect(rewards, tasks) == pytest.approx(1.49**2, rel=0.02)


def test_the_adjusted_variance_is_that_of_the_matrix_form() -> None:
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 9])
    values = rng.normal(size=len(labels))
    n, sizes_ = len(labels), np.array([1, 2, 3, 4, 5, 9])
    kept = np.diag(1 / np.sqrt(1 - sizes_ / n))
    middle = kept @ (np.diag(sizes_) - np.outer(sizes_, sizes_) / n) @ kept
    eigen = np.linalg.eigvalsh(middle)
    groups = clusters.groups_of(values, labels)
    assert clusters._freedom(groups, 1 - groups.sizes / n) == pytest.approx(eigen.sum() ** 2 / (eigen**2).sum())


def test_one_group_is_no_evidence() -> None:
    values, labels = np.array([0.0, 1.0, 0.0]), np.zeros(3, dtype=np.int64)
    for method in (clusters.clustered_mean, clusters.clustered_rate, clusters.clustered_binary):
        assert method(values, labels, 0.05).degenerate == "one group"


def test_unseen_losses_count_as_fully_dependent() -> None:
    labels = np.repeat(np.arange(100), 8)
    found = clusters.clustered_rate(np.zeros(800), labels, 0.05)
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 100), rel=0.02)
    assert found.high > 1 - 0.05 ** (1 / 800)


@pytest.mark.parametrize("correlation", [0.1, 0.3])
def test_rates_in_groups_are_covered(correlation: float) -> None:
    rng, rate, groups, size = np.random.default_rng(5), 0.05, 100, 8
    shape = (1 - correlation) / correlation
    misses = 0
    for _ in range(400):
        each = rng.beta(rate * shape, (1 - rate) * shape, groups)
        events = (rng.random((groups, size)) < each[:, None]).astype(float).ravel()
        misses += clusters.clustered_rate(events, np.repeat(np.arange(groups), size), 0.05).high < rate
    assert misses / 400 <= 0.06


@pytest.mark.parametrize(("rate", "groups"), [(0.05, 30), (0.01, 100)])
def test_losses_in_few_groups_do_not_ship_a_candidate_at_its_margin(rate: float, groups: int) -> None:
    rng, ships = np.random.default_rng(6), 0
    shape = 0.7 / 0.3
    labels = np.repeat(np.arange(groups), 8)
    for _ in range(400):
        each = rng.beta(rate * shape, (1 - rate) * shape, groups)
        lost = -(rng.random(8 * groups) < each[labels]).astype(float)
        ships += clusters.clustered_binary(lost, labels, 0.05).low > -rate
    assert ships / 400 <= 0.06, "10% and more by the design effect as it was seen"


def test_a_mean_needs_fifty_groups() -> None:
    rng = np.random.default_rng(7)
    for groups, why in ((49, "49 of the 50 groups that a mean needs"), (50, "")):
        labels = np.repeat(np.arange(groups), 4)
        assert clusters.clustered_mean(rng.normal(size=len(labels)), labels, 0.05).degenerate == why


def test_a_mean_carried_by_few_groups_has_few_degrees_of_freedom() -> None:
    labels = np.repeat(np.arange(60), 4)
    even, odd = np.tile([-1.0, 1.0], 120) + 0.1 * labels, np.where(labels < 2, -5.0, 0.0)
    freedom = [clusters._freedom(item, 1 - item.sizes / item.n) for item in
               (clusters.groups_of(even, labels), clusters.groups_of(odd, labels))]  # fmt: skip
    assert freedom[0] == pytest.approx(59, rel=0.01)
    assert freedom[1] < 5
    assert "a few of the groups" in clusters.clustered_mean(odd + 0.01 * even, labels, 0.05).degenerate


@pytest.mark.parametrize(("rate", "n"), [(0.01, 598), (0.02, 299)])
def test_fewest_pairs_that_may_miss_half_the_rate(rate: float, n: int) -> None:
    assert catastrophe.fewest(rate, 0.05) == n
    assert (1 - rate / 2) ** n <= 0.05 < (1 - rate / 2) ** (n - 1)


def test_few_groups_bless_but_do_not_condemn() -> None:
    few = Check("overall", "loss", Interval(-0.5, -0.6, -0.4, 40, 0.05, "CR2 t", clusters=10), margin=0.1)
    many = Check("overall", "loss", Interval(-0.5, -0.6, -0.4, 400, 0.05, "CR2 t", clusters=100), margin=0.1)
    good = Check("overall", "loss", Interval(0.0, -0.05, 0.05, 40, 0.05, "CR2 t", clusters=10), margin=0.1)
    assert [c.outcome for c in (few, many, good)] == [Outcome.INCONCLUSIVE, Outcome.NO_SHIP, Outcome.SHIP]


@pytest.mark.parametrize(("n", "bound"), [(100, 0.0295), (1000, 0.0030)])
def test_none_seen_is_not_none_there(n: int, bound: float) -> None:
    found = catastrophe.rare_losses(np.zeros(n), 1.0, 0.05)
    assert -found.low == pytest.approx(bound, abs=5e-5)


@pytest.mark.parametrize(
    ("margin", "discordant", "loss", "n"),
    [
        (0.01, 0.04, 0, 2474),
        (0.01, 0.04, 0.002, 3864),
        (0.02, 0.1, 0, 1546),
        (0.005, 0.02, 0, 4947),
        (0.02, 0.2, 0, 3092),
    ],
)  # fmt: skip
def test_required_n(margin: float, discordant: float, loss: float, n: int) -> None:
    assert sizes.needed(discordant - loss**2, margin, alpha=0.05, loss=loss) == n
    assert sizes.detectable(discordant - loss**2, n, alpha=0.05) == pytest.approx(margin - loss, rel=1e-3)


def test_a_margin_at_the_true_loss_is_refused() -> None:
    with pytest.raises(InputError, match="a margin above the true loss"):
        sizes.needed(0.04, 0.002, alpha=0.05, loss=0.002)


def test_the_variance_is_taken_at_its_upper_bound() -> None:
    difference = np.r_[np.zeros(96), -np.ones(4)]
    assert sizes.variance_bound(difference) > difference.var(ddof=1)
    assert sizes.variance_bound(np.array([1.0])) == np.inf
