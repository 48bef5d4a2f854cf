"""Money: chip-hours, electricity, and the price of compute. Prices come in as quantities with their sources.

Chip-hour prices usually contain the electricity: add the two only for chips that you own.
"""

from ridgeline.arithmetic.inputs import require_not_negative, require_positive, under
from ridgeline.core.quantity import Quantity, derive


def chip_hours(chips: Quantity, time: Quantity, prefix: str = "") -> Quantity:
    """``cost.chip_hours`` (chip*h)."""
    require_positive(chips, time)
    name = under(prefix, "cost.chip_hours")
    return derive(name, "chips*time", "chip*h", chips=chips, time=time).titled("Chip-hours")


def rent(chips: Quantity, time: Quantity, price: Quantity, prefix: str = "") -> Quantity:
    """``cost.rent`` (USD): chips * time * ``price`` (USD/(chip*h))."""
    require_not_negative(price)
    hours = chip_hours(chips, time, prefix)
    name = under(prefix, "cost.rent")
    return derive(name, "chip_hours*price", "USD", chip_hours=hours, price=price).titled("Cost of the chip-hours")


def electricity(energy: Quantity, price: Quantity, prefix: str = "") -> Quantity:
    """``cost.electricity`` (USD): ``energy`` (kWh or any energy) at ``price`` (USD/kWh)."""
    require_not_negative(energy, price)
    name = under(prefix, "cost.electricity")
    return derive(name, "energy*price", "USD", energy=energy, price=price).titled("Electricity")


def electricity_rate(power: Quantity, price: Quantity, prefix: str = "") -> Quantity:
    """``cost.electricity_rate`` (USD/day): ``power`` (kWh/day or W) at ``price`` (USD/kWh)."""
    require_not_negative(power, price)
    name = under(prefix, "cost.electricity_rate")
    return derive(name, "power*price", "USD/day", power=power, price=price).titled("Electricity per day")


def cost_of_compute(cost: Quantity, compute: Quantity, prefix: str = "") -> Quantity:
    """``cost.per_1e21`` (USD per 1e21 FLOP): what useful compute costs."""
    require_not_negative(cost)
    require_positive(compute)
    name = under(prefix, "cost.per_1e21")
    found = derive(name, "cost/compute", "USD/(1e21*FLOP)", cost=cost, compute=compute)
    return found.titled("Cost of 1e21 useful FLOPs")
