"""What a step does, compiled: running requests, then the queue, within the token budget and the blocks."""

import math
from typing import Any

from ridgeline.serve.simulate.engine.state import Memory, State
from ridgeline.serve.simulate.kernel.blocks import blocks_for, grow, hits, publish, release, retract, share, unused_hits
from ridgeline.serve.simulate.kernel.jit import jit
from ridgeline.serve.simulate.kernel.queue import first, pop, push_front

ANY, PROMPTS, DECODES = 0, 1, 2


@jit
def decoding(row: Any) -> bool:
    """Whether only the last sampled token is left to compute."""
    return bool(row.emitted > 0 and row.computed + 1 >= row.inputs + row.emitted)


@jit
def wanted(row: Any, drafts: int) -> int:
    """Tokens that a request would put through the next step."""
    if decoding(row):
        return drafts + 1
    return int(row.inputs + row.emitted - row.computed)


@jit
def victim(state: State, worker: int) -> int:
    """Where in the running list the request stands that gives way: the last, or the least urgent and latest."""
    running = state.running[worker]
    best = state.workers[worker].running - 1
    if state.config[0].by_priority:
        for at in range(best):
            one, other = running[at], running[best]
            rank, top = state.requests[one].rank, state.requests[other].rank
            if rank > top or (rank == top and one > other):
                best = at
    return int(best)


@jit
def preempt(state: State, memory: Memory, worker: int, at: int) -> float:
    """The running request at a place goes back to the queue; returns the seconds of swapping it out."""
    running = state.running[worker]
    request = running[at]
    row = state.requests[request]
    for j in range(at, state.workers[worker].running - 1):
        running[j] = running[j + 1]
    state.workers[worker].running -= 1
    if state.config[0].prefix and row.planned > 0:
        retract(state, memory, row)
    release(state, memory, request)
    row.planned = 0
    row.preemptions += 1
    push_front(state, worker, request)
    if state.config[0].swap:
        row.swapped = 1
        return float(row.computed * state.config[0].swap_token_s)
    row.computed = 0
    return 0.0


@jit
def make_room(state: State, memory: Memory, worker: int, at: int, short: int) -> tuple[int, bool, int, float]:
    """Preempt until ``short`` blocks are free: where the request stands, if it stayed, tokens back, seconds."""
    request = state.running[worker, at]
    back, swap_s = 0, 0.0
    while state.workers[worker].free < short:
        place = victim(state, worker)
        other = state.running[worker, place]
        back += state.requests[other].planned
        swap_s += preempt(state, memory, worker, place)
        if other == request:
            return at, False, back, swap_s
        if place < at:
            at -= 1
    return at, True, back, swap_s


@jit
def plan_running(state: State, memory: Memory, worker: int, kind: int, budget: int) -> tuple[int, int, float]:
    """Give running requests their tokens: what is left of the budget, preempted requests, seconds of swapping."""
    c, w, requests, running = state.config[0], state.workers[worker], state.requests, state.running[worker]
    at, preempted, swap_s = 0, 0, 0.0
    while at < w.running and budget > 0:
        row = requests[running[at]]
        is_decode = decoding(row)
        if (kind == PROMPTS and is_decode) or (kind == DECODES and not is_decode):
            at += 1
            continue
        tokens = min(wanted(row, c.drafts), budget)
        if row.computed + tokens > row.held * c.block_size and math.isnan(row.finished_s):
            total = blocks_for(row.computed + tokens, c.block_size)
            if w.free < total - row.held:
                before = w.running
                at, stayed, back, seconds = make_room(state, memory, worker, at, total - row.held)
                budget += back
                swap_s += seconds
                preempted += before - w.running
                if not stayed:
                    continue
            grow(state, memory, running[at], total)
        row.planned = tokens
        budget -= tokens
        if c.prefix:
            publish(state, memory, row, row.computed + tokens)
        at += 1
    return budget, preempted, swap_s


@jit
def fitting(state: State, memory: Memory, worker: int, request: int, budget: int) -> tuple[int, int, int]:
    """If a waiting request could join now: blocks found, tokens in this step (-1: it does not fit), all blocks."""
    c = state.config[0]
    row = state.requests[request]
    found = 0
    done = row.computed
    if done == 0 and c.prefix:
        found = hits(state, memory, request, worker)
        done = found * c.block_size
    tokens = row.inputs + row.emitted - done
    if row.computed > 0 and decoding(row):
        tokens = min(c.drafts + 1, budget) if c.mixed else 0
    elif c.chunked:
        tokens = min(tokens, budget)
    elif tokens > budget:
        return 0, -1, 0
    total = blocks_for(done + tokens, c.block_size)
    if c.reserve:
        total = max(total, blocks_for(row.inputs + row.outputs - 1 + c.drafts, c.block_size))
    least = max(total, blocks_for(row.inputs + row.emitted, c.block_size)) if c.whole else total
    if least - found > state.workers[worker].free - (unused_hits(state, memory, request, found) if found else 0):
        return 0, -1, 0
    return found, int(tokens), int(total)


@jit
def join(state: State, memory: Memory, worker: int, request: int, fit: tuple[int, int, int]) -> None:
    """A waiting request becomes a running one, as `fitting` has it."""
    c = state.config[0]
    row = state.requests[request]
    found, tokens, total = fit
    pop(state, worker, request)
    state.running[worker, state.workers[worker].running] = request
    state.workers[worker].running += 1
    if found:
        share(state, memory, request, found)
        row.computed = found * c.block_size
    grow(state, memory, request, total)
    row.planned = tokens
    if c.prefix:
        publish(state, memory, row, row.computed + tokens)


@jit
def admit(state: State, memory: Memory, worker: int, budget: int, time_s: float) -> tuple[int, float]:
    """Let waiting requests join in order: what is left of the budget, and the seconds of swapping in."""
    c = state.config[0]
    swap_s = 0.0
    while budget > 0 and state.workers[worker].running < c.max_seqs:
        request = first(state, worker)
        if request < 0:
            break
        row = state.requests[request]
        fit = fitting(state, memory, worker, request, budget)
        if fit[1] < 0:
            break
        join(state, memory, worker, request, fit)
        budget -= fit[1]
        if row.swapped:
            row.swapped = 0
            swap_s += row.computed * c.swap_token_s
        if math.isnan(row.scheduled_s):
            row.scheduled_s = time_s
            row.hits = row.computed
    return budget, swap_s


@jit
def plan(state: State, memory: Memory, worker: int, time_s: float) -> float:
    """Plan a step; returns the seconds of swapping. ``planned`` of the running requests is the plan."""
    c = state.config[0]
    kind = ANY if c.mixed else PROMPTS
    closed = c.drain and state.workers[worker].running > 0
    budget, preempted, swap_s = plan_running(state, memory, worker, kind, c.budget)
    if preempted == 0 and not closed:
        budget, seconds = admit(state, memory, worker, budget, time_s)
        swap_s += seconds
    if not c.mixed and budget == c.budget:
        budget, preempted, seconds = plan_running(state, memory, worker, DECODES, budget)
        swap_s += seconds
    return swap_s
