"""Exposed transfers and the soft maximum."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ridgeline.plan.steps.overlap import exposed, longer

times = st.floats(0, 1e3)


@given(times, times, st.floats(0, 1))
def test_exposed_is_between_nothing_and_the_wire(wire: float, window: float, share: float) -> None:
    left = float(exposed(np.array(wire), np.array(window), share))
    assert 0 <= left <= wire
    assert left == wire if share == 0 else left >= wire - window


def test_the_worked_exposure() -> None:
    """Worked numbers H: 1.30 s of wire with 0.85 s exposed hides 0.45 s under 6.10 s of backward."""
    assert np.isclose(exposed(np.array(1.30), np.array(6.10), 0.45 / 6.10), 0.85)


@given(times, times)
def test_longer_is_a_maximum_with_rounded_corner(one: float, other: float) -> None:
    found = float(longer(np.array(one), np.array(other)))
    assert max(one, other) <= found * (1 + 1e-12)
    assert found <= max(one, other) * 2**0.25 * (1 + 1e-12)
