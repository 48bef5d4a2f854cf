"""What lost seconds are worth: MFU points, chip-hours and dollars a month.

MFU = ideal/step is not linear in the step: the same seconds are worth more points on a shorter step. Every figure
here is for one fix alone, from the step as it is; `bridge` does several in order.
"""

from ridgeline.arithmetic.mfu import points_of
from ridgeline.core.finding import Cost
from ridgeline.core.quantity import Quantity, derive
from ridgeline.trace.context import RunContext


def cost(context: RunContext, seconds: Quantity, step: Quantity | None = None) -> Cost:
    """The cost of ``seconds`` lost in every step, as far as the context allows.

    ``step`` (s) is the step time that loses them, by default the context's. Names are those of ``seconds`` with
    ``.mfu_points`` (percent of peak), ``.chip_hours`` and ``.dollars`` (both a month) behind: unique where
    ``seconds.name`` is.
    """
    step = step or context.step
    if step is None or float(seconds.base) <= 0:
        return Cost(seconds=seconds)
    hours = _chip_hours(context, seconds, step)
    return Cost(seconds, _points(context, seconds, step), hours, _dollars(context, seconds, hours))


def _points(context: RunContext, seconds: Quantity, step: Quantity) -> Quantity | None:
    if context.ideal is None or float(seconds.base) >= float(step.base):
        return None
    return points_of(context.ideal, step, seconds, f"{seconds.name}.mfu_points")


def _chip_hours(context: RunContext, seconds: Quantity, step: Quantity) -> Quantity | None:
    if context.chips is None or context.month is None:
        return None
    inputs = {"lost": seconds, "step": step, "chips": context.chips, "month": context.month}
    found = derive(f"{seconds.name}.chip_hours", "lost/step*chips*month", "chip*h", **inputs)
    return found.titled("Chip-hours a month that the seconds take")


def _dollars(context: RunContext, seconds: Quantity, hours: Quantity | None) -> Quantity | None:
    if hours is None or context.price is None:
        return None
    inputs = {"chip_hours": hours, "price": context.price}
    return derive(f"{seconds.name}.dollars", "chip_hours*price", "USD", **inputs).titled("Cost a month")
