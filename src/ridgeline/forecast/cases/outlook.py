"""The numbers of a forecast as quantities: the loss through the law, the interval through its parts."""

import math
from dataclasses import replace

from ridgeline.arithmetic import laws
from ridgeline.core.quantity import Quantity, Source, derive, given, leaf
from ridgeline.forecast.cases.derived import ON_FRONTIER, frontier, loss
from ridgeline.forecast.forecast import Forecast

_ROLLOUTS = Source("hold-outs of the ladder itself", "refits below inner cuts, asked about the runs above them")
_RESAMPLES = Source("bootstrap of whole budgets and whole sizes", "the wider one at each side")


def outlook(found: Forecast, known: dict[str, Quantity], top_flops: float) -> dict[str, Quantity]:
    """Every quantity of a forecast by name; ``known`` are the constants of its fit.

    ``top_flops`` is the compute of the ladder's largest run.
    """
    target = given("target", found.compute, "FLOP", "--target").titled("Compute of the target")
    largest = leaf("ladder.largest", top_flops, "FLOP", "measured", Source(found.fit.points.path, "largest run"))
    decades = derive("forecast.decades", "log10(target/largest)", "1", target=target, largest=largest)
    optimal, best = _place(found, known, target)
    made = [target, largest, decades.titled("Decades from the largest run to the target"), *best.values()]
    low, high = _ends(found, best["loss"], decades)
    made += [low, high, *_gain(found, known, optimal, largest), *_worth(found, known, optimal, (low, high))]
    return {item.name: item for item in made}


def _place(found: Forecast, known: dict[str, Quantity], target: Quantity) -> tuple[Quantity, dict[str, Quantity]]:
    """The loss of the compute-optimal run, and ``forecast.params``, ``.tokens`` and ``.loss`` of the target.

    The target is that run where only a compute was given.
    """
    best = frontier(found.fit, known, target, "forecast")
    if math.isclose(float(best["params"].value), found.n, rel_tol=1e-6):
        return best["loss"], best
    optimal = frontier(found.fit, known, target, "forecast.optimal")["loss"]
    params = given("forecast.params", found.n, "param", "--target").titled("Parameters of the target")
    tokens = given("forecast.tokens", found.d, "token", "--target").titled("Tokens of the target")
    at = {"N": params, "D": tokens, "C": target}
    return optimal, {"params": params, "tokens": tokens, "loss": loss(found.fit, known, at, "forecast.loss")}


def _ends(found: Forecast, middle: Quantity, decades: Quantity) -> tuple[Quantity, Quantity]:
    """``forecast.low`` and ``forecast.high``. Of the calibrated interval through its parts, else as measured."""
    level = f"{found.level:.0%} interval of one run"
    if found.kind != "calibrated":
        source = Source(f"interval {found.kind}", f"{found.fit.form.title}, seed and resamples as in the command")
        low, high = (leaf(f"forecast.{end}", value, "nat", "measured", source)
                     for end, value in (("low", found.low), ("high", found.high)))  # fmt: skip
        return low.titled(f"Low end of the {level}"), high.titled(f"High end of the {level}")
    growth = _growth(found, decades)
    residuals = Source(f"residuals of {found.fit.form.title}", f"{len(found.fit.points)} runs")
    noise = leaf("forecast.noise", float(found.parts.noise[0]), "1", "measured", residuals)
    noise = noise.titled("Half width from the noise of one run, of ln L")
    sides = []
    for end, sign, part in (("low", "-", found.parts.low), ("high", "", found.parts.high)):
        own = leaf(f"forecast.constants.{end}", float(part[0]), "1", "measured", _RESAMPLES)
        own = own.titled(f"Half width from the constants, {end} side, of ln L")
        text = f"loss*exp({sign}sqrt(noise**2 + constants**2 + growth**2))"
        inputs = {"loss": middle, "noise": noise, "constants": own, "growth": growth}
        sides.append(derive(f"forecast.{end}", text, "nat", **inputs).titled(f"{end.capitalize()} end of the {level}"))
    return sides[0], sides[1]


def _growth(found: Forecast, decades: Quantity) -> Quantity:
    """``forecast.growth``: what the law's own error comes to at the target."""
    rate = float(found.parts.growth[0])
    if found.decades <= 0 or not rate:
        within = Source("the target lies within the ladder", "no error is added for its distance")
        return leaf("forecast.growth", 0.0, "1", "measured", within).titled("Half width from the distance, of ln L")
    a_decade = leaf("forecast.per_decade", rate / found.decades, "1", "measured", _ROLLOUTS,
                    f"{found.growth.cuts} cuts and the assumed growth together, as a half width by Student's t with "
                    f"{found.growth.freedom:g} degrees of freedom")  # fmt: skip
    text, inputs = "per_decade*decades", {"per_decade": a_decade.titled("Error a decade, of ln L"), "decades": decades}
    return derive("forecast.growth", text, "1", **inputs).titled("Half width from the distance, of ln L")


def _gain(found: Forecast, known: dict[str, Quantity], optimal: Quantity, largest: Quantity) -> tuple[Quantity, ...]:
    """``forecast.gain``: what the compute from the largest run to the target buys, along the frontier."""
    if not math.isfinite(found.gain):
        return ()
    top = frontier(found.fit, known, largest, "ladder.top")["loss"]
    gain = derive("forecast.gain", "top - target", "nat", top=top, target=optimal)
    return (gain.titled("What the compute up to the target is to gain"),)


def _worth(
    found: Forecast, known: dict[str, Quantity], optimal: Quantity, ends: tuple[Quantity, Quantity]
) -> tuple[Quantity, ...]:
    """``forecast.worth``: the factor of compute that half the interval comes to on the frontier."""
    if not math.isfinite(found.worth) or found.fit.form.kind not in ON_FRONTIER:
        return ()
    law = replace(found.fit.law("forecast"), constants=known)
    off = derive("forecast.off", "loss + (high - low)/2", "nat", loss=optimal, low=ends[0], high=ends[1])
    share = laws.equivalent_compute(law, optimal, off.titled("The loss, half an interval worse"), "forecast.share")
    worth = derive("forecast.worth", "1/share", "1", share=share)
    return (worth.titled("Factor of compute that half the interval is worth"),)
