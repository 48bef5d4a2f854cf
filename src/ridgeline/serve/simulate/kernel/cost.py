"""Seconds of a step, compiled: the arithmetic of `StepTable.seconds` in the same order."""

import math

from ridgeline.serve.simulate.engine.state import Costs, FlatGrid, Floats
from ridgeline.serve.simulate.kernel.jit import jit


@jit
def place(axes: Floats, axis: int, size: int, value: float) -> tuple[int, float]:
    """The node below and how far on to the next one (`table.place`)."""
    if size == 1 or value <= axes[axis, 0]:
        return 0, 0.0
    low, high = 0, size - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if axes[axis, middle] <= value:
            low = middle
        else:
            high = middle
    return low, (value - axes[axis, low]) / (axes[axis, low + 1] - axes[axis, low])


@jit
def between(values: Floats, at: int, step: int, part: float) -> float:
    """Between two nodes of the innermost axis."""
    return float(values[at] + part * (values[at + step] - values[at]))


@jit
def on_plane(values: Floats, at: int, steps: tuple[int, int], parts: tuple[float, float]) -> float:
    """Between four nodes of the two innermost axes."""
    below = between(values, at, steps[1], parts[1])
    above = between(values, at + steps[0], steps[1], parts[1])
    return below + parts[0] * (above - below)


@jit
def read(grid: FlatGrid, a: float, b: float, c: float, d: float) -> float:
    """The value of a grid at a point. A step of 0 stands where a node is met: both of its sides are then one."""
    values, axes, sizes = grid
    i, first = place(axes, 0, sizes[0], a)
    j, second = place(axes, 1, sizes[1], b)
    k, third = place(axes, 2, sizes[2], c)
    m, fourth = place(axes, 3, sizes[3], d)
    at = ((i * sizes[1] + j) * sizes[2] + k) * sizes[3] + m
    inner = (0 if third == 0.0 else sizes[3], 0 if fourth == 0.0 else 1)
    parts = (third, fourth)
    across = 0 if second == 0.0 else sizes[2] * sizes[3]
    below = on_plane(values, at, inner, parts)
    below = below + second * (on_plane(values, at + across, inner, parts) - below)
    if first == 0.0:
        return below
    at += sizes[1] * sizes[2] * sizes[3]
    above = on_plane(values, at, inner, parts)
    above = above + second * (on_plane(values, at + across, inner, parts) - above)
    return below + first * (above - below)


@jit
def attention_s(costs: Costs, prompt: tuple[int, float], decodes: tuple[int, int, int]) -> float:
    """Attention of a step from (tokens, work) of its prompts and (number, sum, longest) of its decodes' contexts."""
    chunk, past = 0.0, 0.0
    if prompt[0] > 0:
        past = prompt[1] / prompt[0] - prompt[0] / 2.0
        chunk = float(prompt[0])
        if past < 0.0:
            chunk, past = math.sqrt(2.0 * prompt[1]), 0.0
    count, longest = float(decodes[0]), float(decodes[2])
    if decodes[0] == 0:
        return read(costs.attention, chunk, past, 0.0, 0.0) if prompt[0] > 0 else 0.0
    mean = decodes[1] / decodes[0]
    level = read(costs.attention, chunk, past, count, mean)
    if longest <= mean or len(costs.skew.values) == 1:
        return level
    alpha = read(costs.skew, chunk, count, mean, longest / mean)
    if alpha == 0.0:
        return level
    return level + alpha * (read(costs.attention, chunk, past, count, longest) - level)


@jit
def step_s(
    costs: Costs, counts: tuple[int, int, int], prompt: tuple[int, float], decodes: tuple[int, int, int]
) -> float:
    """Seconds of a step of (tokens, sequences, samples)."""
    attention = attention_s(costs, prompt, decodes)
    return float(costs.by_tokens[counts[0]] + costs.by_samples[counts[2]] + attention + costs.by_sequences[counts[1]])
