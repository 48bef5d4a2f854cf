"""What operations lose."""

import pytest
from tests.trace.calls import Step
from tests.trace.rules.test_t2 import H100, matmul, mm_ns

from ridgeline.trace.levels.l2 import Operations, operations
from ridgeline.trace.levels.l2_losses import unaligned

ODD_NS, BOUND_NS = mm_ns(8192, 8192, 50257, 0.2), mm_ns(8192, 8192, 50257, 1.0)


def with_odd(*aligned: tuple[float, int]) -> Operations:
    """A matmul of an odd vocabulary at a fifth of the peak beside aligned ones (share of the peak, n)."""
    step = Step()
    matmul(step, 0.2, n=50257)
    for reach, n in aligned:
        matmul(step, reach, n=n, kernel=f"sm90_gemm_{n}_")
    return operations(step.build(), H100)


def test_without_aligned_matmuls_there_is_no_yardstick() -> None:
    assert unaligned(with_odd()).rows == ()


def test_the_yardstick_is_what_aligned_matmuls_reach_together() -> None:
    ops = with_odd((0.8, 8192), (0.4, 8192 * 2))
    bounds = [mm_ns(8192, 8192, n, 1.0) for n in (8192, 8192 * 2)]
    reach = sum(bounds) / (bounds[0] / 0.8 + bounds[1] / 0.4)
    assert unaligned(ops).ns == pytest.approx(ODD_NS - BOUND_NS / reach, rel=1e-3)


def test_matmuls_that_memory_limits_are_no_yardstick_beside_others() -> None:
    """A matmul of 16 columns reaches little of the peak whatever its alignment."""
    ops = with_odd((0.8, 8192), (0.005, 16))
    assert {row.limit for row in ops.rows} == {"compute bound", "memory bound"}
    assert unaligned(ops).ns == pytest.approx(ODD_NS - BOUND_NS / 0.8, rel=1e-3)
