"""The bound of a rare rate that holds at every look."""

import numpy as np
import pytest

from ridgeline.gate.statistics.catastrophe import rare_losses
from ridgeline.gate.statistics.sequential import rate_sequence


def test_peeking_never_excludes_the_true_rate_too_often() -> None:
    rng, excluded, runs = np.random.default_rng(0), 0, 300
    for _ in range(runs):
        events = np.cumsum(rng.random(3000) < 0.01)
        excluded += any(-rate_sequence(int(events[n - 1]), n, 0.05).low < 0.01 for n in range(100, 3001, 100))
    assert excluded / runs <= 0.05


@pytest.mark.parametrize(("events", "n"), [(0, 300), (3, 1000), (50, 100)])
def test_it_is_wider_than_one_look(events: int, n: int) -> None:
    found = rate_sequence(events, n, 0.05)
    once = rare_losses(np.r_[np.full(events, -2.0), np.zeros(n - events)], 1.0, 0.05)
    assert found.low < once.low
    assert found.high >= once.high
    assert found.estimate == -events / n


def test_ends_of_the_scale() -> None:
    assert rate_sequence(0, 100, 0.05).high == 0
    assert rate_sequence(100, 100, 0.05).low == -1
    assert rate_sequence(0, 1, 0.05).degenerate
