"""Strip charts for the tests of the rules: 15-second steps, with a stall planted where given."""

import numpy as np
from tests.trace.logs import Floats, samples, step_log
from tests.trace.runs import context, facts

from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.levels.l3 import strip_chart
from ridgeline.trace.levels.l4 import rank_spread


def steady(n: int = 600) -> Floats:
    """Steps of 14 s without anything in them."""
    return 14 + 0.05 * np.random.default_rng(8).standard_normal(n)


def of_log(x: Floats, phases: dict[str, Floats] | None = None, marks: dict[str, list[int]] | None = None) -> TraceFacts:
    """Facts with a strip chart and the context of the incident."""
    return facts(context(), l3=strip_chart(step_log(x, phases=phases, marks=marks)))


def stalled(phase: str, period: int, each_s: float) -> TraceFacts:
    """A stall that a phase carries."""
    part = np.zeros(600)
    part[period - 1 :: period] = each_s
    return of_log(steady() + part, {phase: part})


def of_devices(**by_gpu: list[float]) -> TraceFacts:
    """Facts with four sampled devices."""
    return facts(context(), l4=rank_spread(samples=[samples(**by_gpu)]))
