"""Energy: what a training run draws from the grid, and what a decoded token costs in memory traffic.

Power, PUE and the energy of moving a bit come in as quantities with their sources; nothing is assumed here.
"""

from ridgeline.arithmetic.inputs import require_at_least, require_fraction, require_positive, under
from ridgeline.core.quantity import Quantity, derive


def training_energy(
    chips: Quantity,
    power: Quantity,
    time: Quantity,
    pue: Quantity | None = None,
    load: Quantity | None = None,
    prefix: str = "",
) -> Quantity:
    """``energy.training`` (kWh): chips * TDP * time, times ``pue`` and the ``load`` as a share of TDP when given.

    ``power`` in W/chip. Without ``load`` an upper bound on the chips; hosts and network are outside it. Raises
    `InputError` for a PUE below 1 or a load above 100%.
    """
    require_positive(chips, power, time)
    text, inputs = "chips*power*time", {"chips": chips, "power": power, "time": time}
    if pue is not None:
        require_at_least(pue, 1)
        text, inputs = f"{text}*pue", {**inputs, "pue": pue}
    if load is not None:
        require_fraction(load)
        text, inputs = f"{text}*load", {**inputs, "load": load}
    return derive(under(prefix, "energy.training"), text, "kWh", **inputs).titled("Training energy")


def decode_energy(params: Quantity, width: Quantity, per_bit: Quantity, prefix: str = "") -> Quantity:
    """``energy.decode_token`` (J/token): every weight moved once per token, at ``per_bit`` (pJ/bit).

    ``width`` in bit/param. Batch 1, weights only: a batch of b shares one sweep among b tokens, the cache adds its own
    traffic, and arithmetic is left out (a memory read costs orders of magnitude more than an 8-bit add).
    """
    require_positive(params, width, per_bit)
    name, text = under(prefix, "energy.decode_token"), "N*width*per_bit"
    return derive(name, text, "J/token", N=params, width=width, per_bit=per_bit).titled("Decode energy per token")


def decode_power(per_token: Quantity, rate: Quantity, prefix: str = "") -> Quantity:
    """``energy.decode_power`` (kWh/day): energy per token times the ``rate`` of tokens (token/day)."""
    require_positive(per_token, rate)
    name = under(prefix, "energy.decode_power")
    return derive(name, "energy*rate", "kWh/day", energy=per_token, rate=rate).titled("Decode energy per day")
