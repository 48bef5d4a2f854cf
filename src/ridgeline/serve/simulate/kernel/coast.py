"""Many steps of a worker at once, compiled: while nobody comes, leaves or has a prompt to compute.

Each step still takes its own time from the step table; only the requests are written once at the end instead of once a
step. The results are the same to the last bit.
"""

from ridgeline.serve.simulate.engine.state import Costs, Memory, Records, State
from ridgeline.serve.simulate.kernel.blocks import blocks_for, grow
from ridgeline.serve.simulate.kernel.cost import step_s
from ridgeline.serve.simulate.kernel.jit import jit
from ridgeline.serve.simulate.kernel.queue import first
from ridgeline.serve.simulate.kernel.schedule import decoding, fitting


@jit
def nobody_joins(state: State, memory: Memory, worker: int) -> bool:
    """Whether the queue is empty or stays shut: decodes only take blocks, so what does not fit will not fit."""
    c, w = state.config[0], state.workers[worker]
    if w.waiting == 0 or w.running == c.max_seqs:
        return True
    budget = c.budget - w.running if c.mixed else c.budget
    return budget <= 0 or fitting(state, memory, worker, first(state, worker), budget)[1] < 0


@jit
def steps_ahead(state: State, memory: Memory, worker: int, most: int) -> int:
    """How many steps, at most ``most``, are certain to be the same decodes with a token and the blocks for each."""
    c, w = state.config[0], state.workers[worker]
    if c.drafts > 0 or c.drain or w.prefill or w.running == 0 or w.running > c.budget:
        return 0
    most = min(most, c.block_size * (w.free // w.running) if not c.reserve else most)
    requests, running = state.requests, state.running[worker]
    for at in range(w.running):
        row = requests[running[at]]
        if most < 1 or not decoding(row):
            return 0
        most = min(most, row.outputs - row.emitted - 1)
    return int(most) if most > 0 and nobody_joins(state, memory, worker) else 0


@jit
def survey(state: State, worker: int) -> tuple[int, int]:
    """Sum and longest of the contexts; ``due`` counts the requests that need a block in so many steps."""
    c, w = state.config[0], state.workers[worker]
    requests, running, due = state.requests, state.running[worker], state.due
    due[:] = 0
    context, longest = 0, 0
    for at in range(w.running):
        row = requests[running[at]]
        context += row.computed
        longest = max(longest, row.computed)
        if not c.reserve:
            due[row.held * c.block_size - row.computed] += 1
    return context, longest


@jit
def settle(state: State, memory: Memory, worker: int, steps: int, ends: tuple[float, float, float]) -> None:
    """Write ``steps`` tokens to every running request; ``ends`` is the first end, the last one, and the longest gap."""
    c, w = state.config[0], state.workers[worker]
    requests, running = state.requests, state.running[worker]
    for at in range(w.running):
        row = requests[running[at]]
        row.computed += steps
        row.emitted += steps
        row.gap_s = max(row.gap_s, ends[0] - row.last_s, ends[2])
        row.last_s = ends[1]
        if row.computed > row.held * c.block_size:
            grow(state, memory, running[at], blocks_for(row.computed, c.block_size))


@jit
def coast(
    state: State, memory: Memory, costs: Costs, log: Records, now: tuple[int, float], until: tuple[float, int]
) -> None:
    """Worker ``now[0]`` steps from ``now[1]`` while a step begins before ``until[0]``, ``until[1]`` times at most."""
    worker, time_s = now
    w, p = state.workers[worker], state.progress[0]
    context, longest = survey(state, worker)
    size, count = len(state.due), w.running
    used = w.blocks - w.free
    steps, first_s, gap_s = 0, 0.0, 0.0
    while steps == 0 or (steps < until[1] and time_s < until[0]):
        used += state.due[steps % size]
        steps += 1
        context += count
        seconds = step_s(costs, (count, count, count), (0, 0.0), (count, context, longest + steps))
        end_s = time_s + seconds
        if len(log) > 0:
            row = log[p.logged]
            p.logged += 1
            row.start_s, row.seconds, row.tokens, row.worker = time_s, seconds, count, worker
            row.prompt_tokens, row.decodes, row.waiting, row.blocks = 0, count, w.waiting, used
        if steps == 1:
            first_s = end_s
        else:
            gap_s = max(gap_s, end_s - time_s)
        time_s = end_s
        w.busy_s += seconds
        w.sequence_s += count * seconds
        w.block_s += used * seconds
    w.peak_blocks = max(w.peak_blocks, used)
    w.steps += steps
    w.decode_tokens += steps * count
    w.clock_s = time_s
    state.stages[worker, 0] = time_s
    settle(state, memory, worker, steps, (first_s, time_s, gap_s))
