"""Where a ladder may be asked: at its smallest run and above. Below it, nothing measured says what a law does."""

import math

from ridgeline.core.errors import InputError
from ridgeline.forecast.points import Points

_ROUNDING = 0.99  # a budget that is typed as 1e18 and was trained as 1.003e18 is that budget


def require_reach(points: Points, compute_flops: float, *, where: str = "--target") -> None:
    """Raise `InputError` for a target (FLOP) below every run of the ladder, or one that is no compute.

    An interval grows with the decades above the ladder. Below it there is no such record, and a power law rises
    without end there.
    """
    if not (math.isfinite(compute_flops) and compute_flops > 0):
        raise InputError.expected("a target compute above zero", compute_flops, where=where)
    smallest_flops = float(points.compute.min())
    if compute_flops < _ROUNDING * smallest_flops:
        expected = f"a target of at least {_e(smallest_flops)} FLOP, the smallest run of {points.path}"
        got = f"{_e(compute_flops)} FLOP"
        hint = "a law says nothing below its runs: check the exponent, or train one there"
        raise InputError(f"Expected {expected}, got {got},", where=where, hint=hint)


def _e(value: float) -> str:
    return f"{value:.3g}".replace("e+", "e")
