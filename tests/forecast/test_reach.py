"""Where a ladder may be asked."""

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.points import Points
from ridgeline.forecast.reach import require_reach

N, D = np.array([1e8, 1e9]), np.array([2e9, 2e10])
LADDER = Points({"N": N, "D": D, "loss": np.array([3.2, 2.7])})
SMALLEST = 6 * 1e8 * 2e9


@pytest.mark.parametrize("target", [SMALLEST, 0.995 * SMALLEST, 1e21, 1e25])
def test_from_the_smallest_run_up(target: float) -> None:
    require_reach(LADDER, target)


@pytest.mark.parametrize("target", [0.9 * SMALLEST, 1e10, 1.0])
def test_below_every_run_the_target_names_the_smallest(target: float) -> None:
    with pytest.raises(InputError, match=r"at least 1\.2e18 FLOP, the smallest run of .* at --target"):
        require_reach(LADDER, target)


@pytest.mark.parametrize("target", [0.0, -1e21, float("nan"), float("inf")])
def test_what_is_no_compute_is_refused(target: float) -> None:
    with pytest.raises(InputError, match="above zero"):
        require_reach(LADDER, target)
