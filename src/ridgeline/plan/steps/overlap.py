"""What runs beside what: the part of a transfer that is left exposed, and two things of which the longer counts."""

import numpy as np

from ridgeline.plan.steps.machine import Array

_SHARP = 4  # of the soft maximum: 19% above the larger where both are equal, 1.5% where one is half


def exposed(wire_s: Array, window_s: Array, share: Array | float) -> Array:
    """Seconds of a transfer that stick out when it runs beside work of ``window_s``, of which ``share`` can hide it."""
    return np.asarray(wire_s - np.minimum(wire_s, window_s * share))


def longer(one_s: Array, other_s: Array) -> Array:
    """A soft maximum: launches and kernels, each waiting for the other now and then. At least the larger."""
    high, low = np.maximum(one_s, other_s), np.minimum(one_s, other_s)
    ratio = low / np.maximum(high, np.finfo(float).tiny)
    return np.asarray(high * (1 + ratio**_SHARP) ** (1 / _SHARP))
