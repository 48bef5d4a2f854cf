"""What the fixes are worth, rung by rung, and when to stop.

At a fixed amount of work W (token budget), chip time is proportional to the step. With m the MFU, one more point saves
W*(1/m - 1/(m + 1)) of it: the value of a point falls with the square of the MFU, while its price rises from flags to
kernels. Stop where the next rung returns less than it costs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ridgeline.core.quantity import Quantity, Source, derive, leaf
from ridgeline.trace.attribution import LEVERS
from ridgeline.trace.bridge import Bar, Bridge
from ridgeline.trace.context import Lever, RunContext

UNIT = "chip*day"


@dataclass(frozen=True)
class Value:
    """Of all fixes together: ``share`` of the chip-hours saved (percent), ``chip_days`` and ``dollars`` a month.

    ``point`` is what one more MFU point saves at the target (chip-days a month, for the work that a month buys today),
    ``point_dollars`` its money. What the context does not allow is None.
    """

    share: Quantity
    chip_days: Quantity | None
    dollars: Quantity | None
    point: Quantity | None
    point_dollars: Quantity | None


@dataclass(frozen=True)
class Rung:
    """All fixes that pull one lever. ``pays``: whether a month returns more than the effort; None where not known."""

    lever: Lever
    bars: tuple[Bar, ...]
    seconds: Quantity
    points: Quantity | None
    chip_days: Quantity | None
    dollars: Quantity | None
    effort: Quantity | None
    pays: bool | None


def value(found: Bridge, context: RunContext) -> Value:
    """``value.*``: what the whole bridge is worth."""
    inputs = {"after": found.final, "before": found.ends.step}
    share = derive("value.share", "1 - after/before", "%", **inputs).titled("Chip-hours saved for the same work")
    days = _chip_days("value", share, context)
    point = _point(found, context)
    return Value(share, days, _dollars("value", days, context), point, _dollars("value.point", point, context))


def rungs(found: Bridge, context: RunContext) -> tuple[Rung, ...]:
    """The ladder, cheapest lever first; levers that no fix pulls are left out."""
    return tuple(_rung(lever, bars, found, context) for lever in LEVERS if (bars := _pulled(found, lever)))


def stop_at(ladder: Iterable[Rung]) -> Rung | None:
    """The first rung that does not pay within a month; None where all known ones do."""
    return next((rung for rung in ladder if rung.pays is False), None)


def _pulled(found: Bridge, lever: Lever) -> tuple[Bar, ...]:
    return tuple(bar for bar in found.bars if bar.cause.lever == lever)


def _rung(lever: Lever, bars: tuple[Bar, ...], found: Bridge, context: RunContext) -> Rung:
    name = f"ladder.{lever}"
    parts = {f"s_{number}": bar.seconds for number, bar in enumerate(bars)}
    seconds = derive(f"{name}.seconds", " + ".join(parts), "s", **parts).titled(f"Seconds per step, {lever}")
    share = derive(f"{name}.share", "seconds/step", "%", seconds=seconds, step=found.ends.step)
    days = _chip_days(name, share.titled(f"Chip-hours saved, {lever}"), context)
    dollars, effort = _dollars(name, days, context), _effort(name, bars)
    pays = None if dollars is None or effort is None else float(dollars.base) > float(effort.base)
    return Rung(lever, bars, seconds, _points(name, bars), days, dollars, effort, pays)


def _points(name: str, bars: tuple[Bar, ...]) -> Quantity | None:
    parts = {f"p_{number}": bar.mfu.even for number, bar in enumerate(bars) if bar.mfu}
    if not parts:
        return None
    return derive(f"{name}.points", " + ".join(parts), "%", **parts).titled("MFU points, independent of the order")


def _effort(name: str, bars: tuple[Bar, ...]) -> Quantity | None:
    known = [bar.cause.effort_dollars for bar in bars]
    if any(item is None for item in known):
        return None
    total = sum(item for item in known if item is not None)
    return leaf(f"{name}.effort", total, "USD", "specified", Source("given by the user", "cause.effort_dollars"))


def _chip_days(name: str, share: Quantity, context: RunContext) -> Quantity | None:
    if context.chips is None or context.month is None:
        return None
    inputs = {"share": share, "chips": context.chips, "month": context.month}
    return derive(f"{name}.chip_days", "share*chips*month", UNIT, **inputs).titled("Chip-days a month")


def _dollars(name: str, days: Quantity | None, context: RunContext) -> Quantity | None:
    if days is None or context.price is None:
        return None
    inputs = {"chip_days": days, "price": context.price}
    return derive(f"{name}.dollars", "chip_days*price", "USD", **inputs).titled("Dollars a month")


def _point(found: Bridge, context: RunContext) -> Quantity | None:
    """``value.point`` (chip-days): one more point at the expectation, else at the MFU with every cause fixed."""
    at = found.ends.expected or found.reached
    if at is None or found.observed is None or context.chips is None or context.month is None:
        return None
    inputs = {"chips": context.chips, "month": context.month, "mfu": found.observed, "at": at}
    text = "chips*month*mfu*(1/at - 1/(at + point))"
    one = leaf("value.one_point", 1, "%", "specified", Source("the question", "one MFU point"))
    return derive("value.point", text, UNIT, point=one, **inputs).titled("One MFU point at the expectation")
