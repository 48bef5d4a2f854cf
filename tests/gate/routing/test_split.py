"""The split depends on ids and the seed, not on order or company."""

import numpy as np
import pytest
from tests.gate.runs import texts

from ridgeline.core.errors import InputError
from ridgeline.gate.routing.split import choosing

KEYS = texts([f"q{i}" for i in range(4000)])


def test_it_is_a_half_by_id() -> None:
    found = choosing(KEYS)
    assert 0.47 < found.mean() < 0.53
    order = np.random.default_rng(0).permutation(len(KEYS))
    assert np.array_equal(choosing(KEYS[order]), found[order])
    assert np.array_equal(choosing(KEYS[:100]), found[:100])


def test_another_seed_is_another_half() -> None:
    agreement = (choosing(KEYS) == choosing(KEYS, 1)).mean()
    assert 0.45 < agreement < 0.55


def test_too_few_for_two_halves() -> None:
    with pytest.raises(InputError, match="two halves"):
        choosing(KEYS[:2])
