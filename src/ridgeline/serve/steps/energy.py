"""Power of a serving chip, and joules a token.

A chip draws a share of its rated power that grows with its busier side: ``idle + slope*max(MBU, MFU)``. A server's
meter reads more, hosts and fans included: times ``1 + host``. The three constants are fitted by
``scripts/fit_serving.py`` to metered MLPerf runs (whole servers) and to chips measured by themselves; their spread on
held-out systems is kept beside them in ``core/data/serving.json``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ridgeline.core.errors import InputError
from ridgeline.serve.steps.expected import FILE
from ridgeline.serve.steps.load import Loaded, step_model
from ridgeline.serve.steps.quantities import known_bandwidth, known_peak


@dataclass(frozen=True)
class Power:
    """Shares of rated power: ``idle`` and ``slope`` of a chip, ``host`` on top; ``error`` is the held-out median."""

    idle: float
    slope: float
    host: float
    error: float = 0.0

    @classmethod
    def of(cls, data: Mapping[str, float]) -> "Power":
        """From the document."""
        return cls(data["idle"], data["slope"], data["host"], data.get("error", 0.0))

    def share(self, busy: float, *, server: bool) -> float:
        """The share of rated power at ``busy`` (0 to 1), of a chip or of the server around it."""
        own = self.idle + self.slope * min(max(busy, 0.0), 1.0)
        return own * (1 + self.host) if server else own


@lru_cache(maxsize=1)
def power() -> Power:
    """The fitted constants."""
    return Power.of(json.loads(FILE.read_text(encoding="utf-8"))["power"])


def utilisation(load: Loaded, tpot_s: float) -> tuple[float, float]:
    """MBU and MFU of the replica at that time a token, prompts of new requests included in the FLOPs.

    Raises `InputError` for a device without a known bandwidth or peak.
    """
    laid = load.row.deployment
    model = step_model(laid)
    across = laid.chips * tpot_s
    return (
        load.bytes / (across * float(known_bandwidth(model).base)),
        load.flops / (across * float(known_peak(model).base)),
    )


def watts(load: Loaded, tpot_s: float, *, server: bool = True, constants: Power | None = None) -> float:
    """W a chip. Raises `InputError` for a device without a rated power."""
    device = load.row.deployment.device
    if device.power is None:
        raise InputError.expected("a device whose rated power is known", device.name, where="the device")
    busy = max(utilisation(load, tpot_s))
    return float(device.power.base) * (constants or power()).share(busy, server=server)
