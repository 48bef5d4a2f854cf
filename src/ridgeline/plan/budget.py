"""The budget: what a cluster computes in a time, and the figures that the study did not give."""

from dataclasses import dataclass

from ridgeline.arithmetic.budget import compute_budget
from ridgeline.core.catalog import Device, constant, device
from ridgeline.core.errors import InputError, located
from ridgeline.core.quantity import Quantity, given
from ridgeline.plan.study import Study


@dataclass(frozen=True)
class Cluster:
    """The training cluster as quantities. ``price`` is None where neither study nor catalog gives one."""

    device: Device
    chips: Quantity
    time: Quantity
    mfu: Quantity
    peak: Quantity
    compute: Quantity
    price: Quantity | None
    pue: Quantity
    electricity: Quantity

    @property
    def tile(self) -> Quantity:
        """The matmul tile of the device, or the assumed one where no source states it."""
        return self.device.tile or constant("recipes.tile")


def cluster(study: Study) -> Cluster:
    """C = chips * peak * MFU * time.

    Raises `InputError` for an unknown device or a data type that the device has no dense peak for.
    """
    budget = study.budget
    count, name = budget.chips
    with located("$.budget.chips"):
        machine = device(name)
    with located("$.budget.dtype"):
        peak = machine.peak(budget.dtype)
    if peak is None:
        have = ", ".join(machine.dtypes)
        raise InputError.expected(
            f"a dtype with a published dense peak on {machine.name}", budget.dtype, where="$.budget.dtype", hint=have
        )
    peak = peak.titled(f"Dense peak, {budget.dtype}")
    chips = given("cluster.chips", count, "chip", "budget.chips").titled("Chips")
    time = given("cluster.time", budget.days / 86400, "day", "budget.days").titled("Wall-clock time")
    mfu = _given_or("cluster.mfu", budget.mfu, "1", "budget.mfu", "planning.mfu").titled("MFU, 6ND over the dense peak")
    compute = compute_budget(chips, peak, mfu, time)
    return Cluster(
        machine, chips, time, mfu, peak, compute,
        _price(budget.dollars_per_chip_hour, machine),
        _given_or("cluster.pue", budget.pue, "1", "budget.pue", "energy.pue"),
        _given_or(
            "cluster.electricity", budget.dollars_per_kwh, "USD/kWh", "budget.dollars_per_kwh", "prices.electricity"
        ),
    )  # fmt: skip


def _given_or(name: str, value: float | None, unit: str, where: str, default: str) -> Quantity:
    return constant(default) if value is None else given(name, value, unit, where)


def _price(value: float | None, machine: Device) -> Quantity | None:
    price = constant(f"prices.chip_hour.{machine.slug}", missing_ok=True)
    if value is not None:
        price = given("cluster.price", value, "USD/(chip*h)", "budget.dollars_per_chip_hour")
    return price.titled("Price of a chip-hour") if price else None
