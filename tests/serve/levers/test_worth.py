"""Worked numbers I: prefix caching and paged attention."""

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, given
from ridgeline.serve.levers.acceptance import expected_length
from ridgeline.serve.levers.worth import pages_gain, prefix_saving, speculative_length


def share(value: float) -> Quantity:
    return given("share", value, "%")


def test_saving_is_hit_rate_times_discount() -> None:
    assert float(prefix_saving(share(40), share(90)).value) == pytest.approx(36)
    assert float(prefix_saving(share(0), share(90)).value) == 0  # a timestamp at the top


@pytest.mark.parametrize(("lost", "gain"), [(60, 2.4), (80, 4.8)])
def test_pages(lost: float, gain: float) -> None:
    """60-80% of the cache lost becomes 4%."""
    assert float(pages_gain(share(lost), share(4)).value) == pytest.approx(gain)


@pytest.mark.parametrize("value", [-1.0, 101.0])
def test_shares_outside_are_refused(value: float) -> None:
    with pytest.raises(InputError):
        prefix_saving(share(value), share(50))
    with pytest.raises(InputError):
        pages_gain(share(value), share(4))


def test_nothing_fits_where_all_is_lost() -> None:
    with pytest.raises(InputError):
        pages_gain(share(100), share(4))


@pytest.mark.parametrize(("chance", "drafted", "length"), [(0.8, 3, 2.952), (0.0, 5, 1.0), (0.5, 1, 1.5)])
def test_tokens_a_step(chance: float, drafted: int, length: float) -> None:
    found = speculative_length(given("a", chance, "1"), given("k", drafted, "1"))
    assert float(found.value) == pytest.approx(length)
    assert float(found.value) == pytest.approx(expected_length(chance, drafted))


def test_certain_acceptance_is_refused() -> None:
    with pytest.raises(InputError):
        speculative_length(given("a", 1.0, "1"), given("k", 3, "1"))
