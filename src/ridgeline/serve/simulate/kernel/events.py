"""The event loop, compiled: arrivals, transfers and the steps of every worker in order of time."""

import math

from ridgeline.serve.simulate.engine.state import Costs, Memory, Records, State
from ridgeline.serve.simulate.kernel.advance import begin, draw, end
from ridgeline.serve.simulate.kernel.blocks import hits, release
from ridgeline.serve.simulate.kernel.coast import coast, steps_ahead
from ridgeline.serve.simulate.kernel.jit import jit
from ridgeline.serve.simulate.kernel.queue import next_event, push_back

DONE, LOG_FULL, STUCK = 0, 1, 2
MOST_STEPS = 1 << 30
ROUND_ROBIN, LEAST_LOADED, PREFIX, RANDOM = 0, 1, 2, 3


@jit
def turn(state: State, low: int, count: int) -> int:
    """The next worker of a pool in turn; each pool has its own."""
    p = state.progress[0]
    if low == 0:
        p.first_turn += 1
        return int((p.first_turn - 1) % count)
    p.turn += 1
    return int(low + (p.turn - 1) % count)


@jit
def route(state: State, memory: Memory, request: int, low: int, high: int) -> int:
    """The worker of a pool that takes a request."""
    c = state.config[0]
    if high - low == 1:
        return low
    if c.routing == ROUND_ROBIN:
        return turn(state, low, high - low)
    if c.routing == RANDOM:
        return low + int(draw(state, request) * (high - low))
    row = state.requests[request]
    best, least = low, -1
    for worker in range(low, high):
        score = state.workers[worker].load
        if c.routing == PREFIX and c.prefix and row.computed == 0:
            score += row.inputs - hits(state, memory, request, worker) * c.block_size
        if least < 0 or score < least:
            best, least = worker, score
    return best


@jit
def send(state: State, memory: Memory, request: int, time_s: float) -> None:
    """A request, or after prefill its cache, reaches the worker that takes it."""
    c = state.config[0]
    row = state.requests[request]
    low, high = 0, c.workers
    if c.prefill_workers > 0:
        low, high = (c.prefill_workers, c.workers) if row.emitted > 0 else (0, c.prefill_workers)
    if row.worker >= 0:
        release(state, memory, request)
        state.workers[row.worker].load -= row.inputs + row.outputs
        wake(state, row.worker, time_s)
    else:
        row.arrival_s = time_s
    worker = route(state, memory, request, low, high)
    row.worker = worker
    state.workers[worker].load += row.inputs + row.outputs
    push_back(state, worker, request)
    wake(state, worker, time_s)


@jit
def wake(state: State, worker: int, time_s: float) -> None:
    """A sleeping worker looks again."""
    w = state.workers[worker]
    if w.idle:
        w.idle = 0
        w.clock_s = max(w.clock_s, time_s)


@jit
def soonest(state: State) -> int:
    """The worker that is ready first, or -1 if all sleep."""
    best = -1
    for worker in range(len(state.workers)):
        if not state.workers[worker].idle and (best < 0 or state.workers[worker].clock_s < state.workers[best].clock_s):
            best = worker
    return best


@jit
def others_s(state: State, worker: int) -> float:
    """When another worker may first cause something to come: prefill workers, and in a closed loop all of them."""
    soon_s = math.inf
    closed = state.config[0].closed
    for other in range(len(state.workers)):
        w = state.workers[other]
        if other != worker and not w.idle and (closed or w.prefill):
            soon_s = min(soon_s, w.clock_s)
    return soon_s


@jit
def run(state: State, memory: Memory, costs: Costs, log: Records) -> int:
    """Go on until every request has finished (`DONE`) or the log is full (`LOG_FULL`: call again with a longer one)."""
    p, c = state.progress[0], state.config[0]
    total = len(state.requests)
    while p.finished < total:
        if len(log) > 0 and p.logged == len(log):
            return LOG_FULL
        worker = soonest(state)
        ready_s = math.inf if worker < 0 else state.workers[worker].clock_s
        arrival_s = math.inf
        if not c.closed and p.arrived < total:
            arrival_s = state.requests[p.arrived].arrival_s
        event_s = state.events[0].time_s if p.events > 0 else math.inf
        if arrival_s <= ready_s and arrival_s <= event_s and arrival_s < math.inf:
            p.arrived += 1
            send(state, memory, p.arrived - 1, arrival_s)
        elif event_s <= ready_s and event_s < math.inf:
            send(state, memory, next_event(state), event_s)
        elif worker < 0:
            return STUCK
        elif state.workers[worker].stepping:
            end(state, memory, worker)
        else:
            room = len(log) - p.logged if len(log) > 0 else MOST_STEPS
            ahead = steps_ahead(state, memory, worker, room)
            if ahead > 0:
                until_s = min(arrival_s, event_s, others_s(state, worker))
                coast(state, memory, costs, log, (worker, ready_s), (until_s, ahead))
            else:
                begin(state, memory, costs, log, (worker, ready_s))
    return DONE
