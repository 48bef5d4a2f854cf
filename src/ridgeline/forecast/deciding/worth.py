"""What FLOPs cost in chip-hours and dollars, and what a difference of loss is worth in compute.

A loss in nats has no price of its own. Along the compute-optimal frontier it has one: the compute that buys the same
step. Near a loss L with the floor E and L - E ~ C^-p, a small step dL costs dC/C = dL/(p (L - E)), the derivative of
the power law. `ridgeline.arithmetic.laws.equivalent_compute` is the exact share on the frontier of a published law.
"""

from dataclasses import dataclass

from ridgeline.arithmetic.budget import training_time
from ridgeline.arithmetic.inputs import one_chip, require_fraction, require_not_negative, require_positive, under
from ridgeline.arithmetic.money import chip_hours, rent
from ridgeline.core.catalog import constant, device
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive


@dataclass(frozen=True)
class Machine:
    """What turns FLOPs into hours and dollars: dense ``peak`` (FLOP/s/chip), ``mfu``, ``price`` (USD/(chip*h)).

    ``price`` is None where nobody gives one.
    """

    peak: Quantity
    mfu: Quantity
    price: Quantity | None = None


@dataclass(frozen=True)
class Bill:
    """``chip_hours`` (chip*h) and ``dollars`` (USD; None without a price)."""

    chip_hours: Quantity
    dollars: Quantity | None


def machine(
    name: str, dtype: str = "bf16", *, use: Quantity | None = None, price: Quantity | None = None, serving: bool = False
) -> Machine:
    """A device of the catalog; its MFU is the planned one, or ``use``. Raises `InputError` without a dense peak."""
    found = device(name)
    peak = found.peak(dtype)
    if peak is None:
        have = ", ".join(found.dtypes)
        raise InputError.expected(f"a dtype with a dense peak on {found.name}", dtype, where="the device", hint=have)
    mfu = constant("planning.serving_mfu" if serving else "planning.mfu") if use is None else use
    require_fraction(mfu)
    return Machine(peak, mfu, price or constant(f"prices.chip_hour.{found.slug}", missing_ok=True))


def bill(flops: Quantity, on: Machine, prefix: str) -> Bill:
    """``<prefix>.cost.chip_hours`` and ``<prefix>.cost.rent``: FLOP / (peak * MFU), in one chip's hours."""
    alone = one_chip()
    time = training_time(flops, alone, on.peak, on.mfu, prefix)
    if on.price is None:
        return Bill(chip_hours(alone, time, prefix), None)
    dollars = rent(alone, time, on.price, prefix)
    return Bill(dollars.inputs["chip_hours"], dollars)


def serving_flops(params: Quantity, prefix: str) -> Quantity:
    """``<prefix>.serving_flops`` (FLOP/token): 2N per token, prefilled or decoded; caches and attention left out."""
    require_positive(params)
    found = derive(under(prefix, "serving_flops"), "2*N", "FLOP/token", N=params)
    return found.titled("Serving, FLOPs per token")


def serving_price(params: Quantity, on: Machine, prefix: str) -> Quantity:
    """``<prefix>.serving_price`` (USD/(Mtoken)): what a million tokens cost at 2N FLOPs each on that machine.

    Raises `InputError` for a machine without a price.
    """
    if on.price is None:
        raise InputError.expected("a price per chip-hour", None, where="the serving machine")
    each = serving_flops(params, prefix)
    text, inputs = "each/(peak*mfu)*price", {"peak": on.peak, "mfu": on.mfu, "price": on.price}
    found = derive(under(prefix, "serving_price"), text, "USD/Mtoken", each=each, **inputs)
    return found.titled("Serving, price of a million tokens")


def first_order(step: Quantity, loss: Quantity, floor: Quantity, exponent: Quantity, name: str) -> Quantity:
    """The share of compute (percent) that a small step of loss is worth, dC/C = step/(p*(L - E)).

    ``exponent`` is p of L - E ~ C^-p. Exact as the step goes to zero; one that is not small against L - E costs more
    on the way down and saves less on the way up. Raises `InputError` for a loss at or below the floor.
    """
    require_not_negative(step)
    require_positive(exponent)
    if not float(loss.value) > float(floor.value):
        raise InputError.expected(f"a loss above the floor of {float(floor.value):g}", loss.value, where=loss.name)
    inputs = {"step": step, "loss": loss, "floor": floor, "exponent": exponent}
    return derive(name, "step/(exponent*(loss - floor))", "%", **inputs).titled("Worth in compute, to first order")
